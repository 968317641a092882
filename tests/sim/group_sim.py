"""The micro-simulation of consumer groups: a phase full of faults, then calm and liveness.

    python -m tests.sim.group_sim --seeds 20000 --jobs 2      many seeds
    python -m tests.sim.group_sim --seed 7 --verbose          one, with its story

The invariants of `group_checker` hold after every event. After the faults the group must become
stable and complete, every partition be held by one process and its offset move, and stay so.
"""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING

from cluster.groupcoord.requests import GroupPhase
from tests.sim.group_checker import Violation
from tests.sim.group_faults import Nemesis, make_peace
from tests.sim.group_plan import draw_plan
from tests.sim.group_world import World
from tests.sim.seeds import Outcome, main

if TYPE_CHECKING:
    from suiro.model.ids import TopicPartition

SETTLE_MS = 40_000
"""Several sessions and rebalance timeouts: far more than a sound group needs."""

LINGER_MS = 4_500
"""The longest that a fault goes on after peace was made: late messages, pauses."""

QUIET_MS = 1_500
"""Once it has settled, nothing may move for so long."""


def run_seed(seed: int, *, verbose: bool = False) -> Outcome:
    """One run; a violation is an outcome, not an exception."""
    random = Random(seed)
    world = World(seed, draw_plan(random), random, verbose=verbose)
    failure = None
    try:
        Nemesis(world)
        world.run_until(world.now + world.plan.duration_ms)
        _settle(world)
    except AssertionError as violation:
        is_named = isinstance(violation, Violation)
        failure = str(violation) if is_named else f"assert: {violation!r}"
        world.tell(f"!! {failure}")
    story = world.story if world.story is not None else []
    counts = world.counts + world.checker.counts
    return Outcome(seed, world.trace, world.events, counts, failure, story)


def _settle(world: World) -> None:
    make_peace(world)
    world.run_until(world.now + LINGER_MS)
    if not world.run_until(world.now + SETTLE_MS, lambda: _is_settled(world)):
        held = {str(p): len(h) for p, h in world.checker.holders.items()}
        members = sorted(world.checker.members())
        raise Violation(f"G4: not settled: members {members}, holders {held}")
    world.run_until(world.now + world.plan.commit_max_ms)
    rebalances = world.checker.counts["rebalances"]
    before = dict(world.checker.floor)
    world.run_until(world.now + QUIET_MS)
    if world.checker.counts["rebalances"] != rebalances:
        raise Violation("G4: a settled group rebalances by itself")
    if not _is_settled(world):
        raise Violation("G4: a settled group fell apart by itself")
    for partition in _wanted(world):
        if world.checker.floor[partition] <= before.get(partition, -1):
            raise Violation(f"G5: {partition} is not consumed")


def _wanted(world: World) -> list[TopicPartition]:
    machine = world.coordinator.machine
    assert machine is not None
    return machine.topics.wanted(machine.groups["g"].members.values())


def _is_settled(world: World) -> bool:
    """The group is stable, its members are the processes, everyone holds what it shall."""
    machine = world.coordinator.machine
    if machine is None or "g" not in machine.groups or len(world.processes) < world.plan.processes:
        return False
    group = machine.groups["g"]
    if group.phase is not GroupPhase.STABLE:
        return False
    held = {p.membership.member_id: tuple(sorted(p.membership.held)) for p in world.processes}
    assigned = {member_id: member.assigned for member_id, member in group.members.items()}
    starting = any(partition not in p.positions for p in world.processes for partition in p.grants)
    covered = sorted(p for partitions in assigned.values() for p in partitions)
    return held == assigned and not starting and covered == _wanted(world)


if __name__ == "__main__":
    sys.exit(main(__doc__, run_seed))
