"""The micro-simulation of partition replication: a phase full of faults, then calm and liveness.

    python -m tests.sim.replication_sim --seeds 20000 --jobs 2      many seeds
    python -m tests.sim.replication_sim --seed 7 --verbose          one, with its story

The invariants of `replication_checker` hold after every event. After the faults every replica must
come back into the ISR, every producer succeed again, and all logs be equal.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from suiro.model.ids import NO_LEADER

from tests.sim.replication_checker import Violation
from tests.sim.replication_faults import Nemesis, make_peace
from tests.sim.replication_plan import draw_plan
from tests.sim.replication_world import World

if TYPE_CHECKING:
    from collections.abc import Callable

SETTLE_MS = 40_000
"""Several sessions, lag times and elections: far more than a sound partition needs."""


@dataclass(slots=True)
class Outcome:
    """What a seed came to."""

    seed: int
    trace: int
    events: int
    counts: Counter[str]
    failure: str | None = None
    story: list[str] = field(default_factory=list)


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


@dataclass(slots=True)
class Total:
    """Many seeds together."""

    seeds: int = 0
    events: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def add(self, other: Total) -> None:
        self.seeds += other.seeds
        self.events += other.events
        self.counts.update(other.counts)
        self.failures += other.failures


def run_range(bounds: tuple[int, int]) -> Total:
    total = Total()
    for seed in range(*bounds):
        outcome = run_seed(seed)
        total.seeds += 1
        total.events += outcome.events
        total.counts.update(outcome.counts)
        if outcome.failure is not None:
            total.failures.append((seed, outcome.failure))
    return total


def run_many(first: int, seeds: int, jobs: int, heard: Callable[[Total], None]) -> Total:
    """Seeds in chunks over processes; the sum does not depend on the number of them."""
    end = first + seeds
    chunks = [(start, min(start + 50, end)) for start in range(first, end, 50)]
    total = Total()
    with ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(run_range, chunks):
            total.add(part)
            heard(total)
    return total


def _print_progress(so_far: Total) -> None:
    """Hours may pass: say how far it is, and what has failed, as soon as it is known."""
    if so_far.seeds % 1000 == 0:
        failed = [seed for seed, _ in so_far.failures]
        print(f"  {so_far.seeds:,} seeds, failed: {failed or 'none'}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.seed is not None:
        outcome = run_seed(options.seed, verbose=options.verbose)
        print("\n".join(outcome.story))
        print(f"seed {outcome.seed}: {outcome.failure or 'clean'}", end=", ")
        print(f"{outcome.events} events, trace {outcome.trace:012x}")
        return outcome.failure is not None
    started = time.monotonic()
    total = run_many(options.first, options.seeds, options.jobs, _print_progress)
    took = time.monotonic() - started
    print(f"{total.seeds} seeds from {options.first}, {options.jobs} jobs, {took:.1f} s:", end=" ")
    print(f"{60 * total.seeds / took:,.0f} seeds/min, {total.events:,} events,", end=" ")
    print(f"{total.events / took:,.0f} events/s, {len(total.failures)} failures")
    for name, count in sorted(total.counts.items()):
        print(f"  {name:40} {count:,}")
    for seed, failure in total.failures[:20]:
        print(f"  FAILED seed {seed}: {failure}")
    return bool(total.failures)


if __name__ == "__main__":
    sys.exit(main())
