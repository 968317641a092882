"""The micro-simulation of consumer groups: a phase full of faults, then calm and liveness.

    python -m tests.sim.group_sim --seeds 20000 --jobs 2      many seeds
    python -m tests.sim.group_sim --seed 7 --verbose          one, with its story

The invariants of `group_checker` hold after every event. After the faults the group must become
stable and complete, every partition be held by one process and its offset move, and stay so.
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

from cluster.groupcoord.requests import GroupPhase
from tests.sim.group_checker import Violation
from tests.sim.group_faults import Nemesis, make_peace
from tests.sim.group_plan import draw_plan
from tests.sim.group_world import World

if TYPE_CHECKING:
    from suiro.model.ids import TopicPartition

SETTLE_MS = 40_000
"""Several sessions and rebalance timeouts: far more than a sound group needs."""

LINGER_MS = 4_500
"""The longest that a fault goes on after peace was made: late messages, pauses."""

QUIET_MS = 1_500
"""Once it has settled, nothing may move for so long."""

PROGRESS_SEEDS = 1_000


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


def run_many(first: int, seeds: int, jobs: int) -> Total:
    """Seeds in chunks over processes; the sum does not depend on the number of them."""
    end = first + seeds
    chunks = [(start, min(start + 50, end)) for start in range(first, end, 50)]
    total = Total()
    if jobs == 1:
        for chunk in chunks:
            total.add(run_range(chunk))
            _say_progress(total)
        return total
    with ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(run_range, chunks):
            total.add(part)
            _say_progress(total)
    return total


def _say_progress(total: Total) -> None:
    """A line for every thousand seeds: a long run is watched by somebody."""
    if total.seeds % PROGRESS_SEEDS == 0:
        print(f"{total.seeds} seeds, {len(total.failures)} failures", file=sys.stderr, flush=True)


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
    total = run_many(options.first, options.seeds, options.jobs)
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
