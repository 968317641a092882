"""The micro-simulation of the quorum: a safety phase full of faults, then calm, then liveness.

    python -m tests.sim.raft_sim --seeds 20000 --jobs 2      many seeds
    python -m tests.sim.raft_sim --seed 7 --verbose          one, with its story

The invariants of `raft_checker` hold after every event. After the faults a random quorum, then
everyone, must elect a leader, commit something new and reach the same state.
"""

from __future__ import annotations

import sys
from random import Random

from cluster.controller_quorum.quorum import majority
from tests.sim.raft_checker import Violation
from tests.sim.raft_faults import Nemesis, can_agree, is_settled
from tests.sim.raft_plan import TICK, draw_plan
from tests.sim.raft_world import World
from tests.sim.seeds import Outcome, main

SETTLE_TICKS = 600
"""About a hundred election timeouts: far more than a sound quorum needs, even an unlucky one."""


def run_seed(seed: int, *, verbose: bool = False) -> Outcome:
    """One run; a violation is an outcome, not an exception."""
    random = Random(seed)
    world = World(seed, draw_plan(random), random, verbose=verbose)
    failure: str | None = None
    try:
        Nemesis(world)
        world.run_until(world.plan.duration)
        _settle(world)
    except Violation as violation:
        failure = str(violation)
    except Exception as error:  # whatever else the core raises is a finding too
        failure = f"{type(error).__name__}: {error}"
    if failure is not None:
        world.tell(f"!! {failure}")
    world.counts["acknowledged"] += world.checker.acknowledged_count
    world.counts["reads served"] += world.checker.reads_served
    world.counts["leaders elected"] += world.checker.elections
    world.counts["snapshots installed"] += world.checker.snapshots_installed
    story = world.story if world.story is not None else []
    return Outcome(seed, world.trace, world.events, world.counts, failure, story)


def _settle(world: World) -> None:
    """Calm the world; a quorum alone, then all of it, must come to agree on something new."""
    world.note("calm")
    world.is_calm = True
    world.cut = set()
    world.paused = {}
    for node in world.nodes.values():
        world.start(node)
    if not can_agree(world):
        world.counts["no quorum left"] += 1
        return
    if world.plan.quorum_first:
        _settle_quorum(world)
    _expect_agreement(world, "everyone")


def _settle_quorum(world: World) -> None:
    confs = {node.raft.log.conf for node in world.nodes.values() if node.raft.log.conf.voters}
    if len(confs) != 1:
        return  # a change is under way: which majority is enough depends on where it got to
    voters = confs.pop().voters
    if world.lost.intersection(voters):
        return
    chosen = {member.node for member in world.random.sample(voters, majority(len(voters)))}
    for node in world.running():
        if node.member.node not in chosen:
            world.crash(node)
    world.counts["quorum alone"] += 1
    _expect_agreement(world, f"the quorum {sorted(chosen)}")
    for node in world.nodes.values():
        world.start(node)


def _expect_agreement(world: World, who: str) -> None:
    def has_settled() -> bool:
        leader = world.leader()
        if leader is not None and leader.raft.log.commit <= before:
            world.propose(leader, 1)
        return is_settled(world, before)

    before = max((node.raft.log.last for node in world.running()), default=0)
    if not world.run_until(world.now + SETTLE_TICKS * TICK, has_settled):
        states = [
            f"{n.member} {n.raft.role.value} term={n.raft.term} commit={n.raft.log.commit}"
            f" last={n.raft.log.last} applied={n.machine.applied}"
            for n in world.running()
        ]
        raise Violation(f"liveness: {who} did not agree within {SETTLE_TICKS} ticks: {states}")


if __name__ == "__main__":
    sys.exit(main(__doc__, run_seed))
