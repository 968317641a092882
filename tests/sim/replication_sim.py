"""The micro-simulation of partition replication: a phase full of faults, then calm and liveness.

    python -m tests.sim.replication_sim --seeds 20000 --jobs 2      many seeds
    python -m tests.sim.replication_sim --seed 7 --verbose          one, with its story

The invariants of `replication_checker` hold after every event. After the faults every replica must
come back into the ISR, every producer succeed again, and all logs be equal.
"""

from __future__ import annotations

import sys
from random import Random

from suiro.model.ids import NO_LEADER

from tests.sim.replication_checker import Violation
from tests.sim.replication_faults import Nemesis, make_peace
from tests.sim.replication_plan import draw_plan
from tests.sim.replication_world import World
from tests.sim.seeds import Outcome, main

SETTLE_MS = 40_000
"""Several sessions, lag times and elections: far more than a sound partition needs."""


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
        name = "" if isinstance(violation, Violation) else "assert: "
        failure = f"{name}{violation!r}" if name else str(violation)
        world.tell(f"!! {failure}")
    counts = world.counts + world.checker.counts
    story = world.story if world.story is not None else []
    return Outcome(seed, world.trace, world.events, counts, failure, story)


def _settle(world: World) -> None:
    """Everything comes back, everyone succeeds, all replicas agree."""
    make_peace(world)
    before = [producer.succeeded for producer in world.producers]

    def has_settled() -> bool:
        state = world.controller.state
        assert state is not None
        if state.leader == NO_LEADER or set(state.isr) != set(state.replicas):
            return False
        leader = world.brokers[state.leader]
        return (
            leader.leader is not None
            and leader.leader.state == state
            and leader.leader.high_watermark_known
            and all(p.succeeded > b for p, b in zip(world.producers, before, strict=True))
        )

    if not world.run_until(world.now + SETTLE_MS, has_settled):
        raise Violation(f"L1: not settled: {_standing(world)}")
    _drain(world)


def _drain(world: World) -> None:
    """No more sends: the logs become equal, and the consumer reaches their end."""
    for producer in world.producers:
        producer.stop()

    def has_drained() -> bool:
        state = world.controller.state
        assert state is not None
        if state.leader == NO_LEADER:
            return False
        end = world.brokers[state.leader].log.log_end
        return world.consumer.position == end and all(
            world.brokers[node].log.log_end == world.brokers[node].high_watermark == end
            for node in state.replicas
        )

    if not world.run_until(world.now + SETTLE_MS, has_drained):
        reader = f"the consumer is at {world.consumer.position}"
        raise Violation(f"L1: not drained: {_standing(world)}, {reader}")
    assert world.controller.state is not None
    world.checker.check_end(world.controller.state.leader)


def _standing(world: World) -> str:
    brokers = [
        f"{b.node} {'leads' if b.leader else 'follows' if b.follower else 'waits'}"
        f" [{b.log.log_start}, {b.log.log_end}) high watermark {b.high_watermark}"
        for b in world.brokers.values()
    ]
    return f"{world.controller.state}, {brokers}"


if __name__ == "__main__":
    sys.exit(main(__doc__, run_seed))
