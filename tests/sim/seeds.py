"""Many seeds of a simulation: run them, add them up, print what came of them.

A simulation is its `run_seed`; whatever is the same for all of them is here.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

CHUNK_SEEDS = 10
PROGRESS_S = 30.0
RUSAGE = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


@dataclass(slots=True)
class Outcome:
    """What a seed came to."""

    seed: int
    trace: int
    events: int
    counts: Counter[str]
    failure: str | None = None
    story: list[str] = field(default_factory=list)


class RunSeed(Protocol):
    """One run; a violation is an outcome, not an exception."""

    def __call__(self, seed: int, *, verbose: bool = False) -> Outcome: ...


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


def run_range(run_seed: RunSeed, bounds: tuple[int, int]) -> Total:
    total = Total()
    for seed in range(*bounds):
        outcome = run_seed(seed)
        total.seeds += 1
        total.events += outcome.events
        total.counts.update(outcome.counts)
        if outcome.failure is not None:
            total.failures.append((seed, outcome.failure))
            print(f"  FAILED seed {seed}: {outcome.failure}", file=sys.stderr, flush=True)
    return total


def run_many(run_seed: RunSeed, first: int, seeds: int, jobs: int) -> Total:
    """Seeds in chunks over processes; the sum does not depend on the number of them."""
    end = first + seeds
    chunks = [(start, min(start + CHUNK_SEEDS, end)) for start in range(first, end, CHUNK_SEEDS)]
    run_chunk = partial(run_range, run_seed)
    if jobs == 1:
        return _add_up(map(run_chunk, chunks))
    with ProcessPoolExecutor(jobs) as pool:
        return _add_up(pool.map(run_chunk, chunks))


def _add_up(parts: Iterable[Total]) -> Total:
    """Long runs are watched by somebody: say how far it is, and what has failed."""
    total = Total()
    told = time.monotonic()
    for part in parts:
        total.add(part)
        if time.monotonic() - told >= PROGRESS_S:
            told = time.monotonic()
            failed = [seed for seed, _ in total.failures]
            print(
                f"  {total.seeds:,} seeds, failed: {failed or 'none'}", file=sys.stderr, flush=True
            )
    return total


def main(about: str | None, run_seed: RunSeed) -> int:
    """The command line of a simulation."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if options.seed is not None:
        return _tell_one(run_seed(options.seed, verbose=options.verbose))
    started = time.monotonic()
    total = run_many(run_seed, options.first, options.seeds, options.jobs)
    took = time.monotonic() - started
    cpu = sum(sum(resource.getrusage(who)[:2]) for who in RUSAGE)
    print(f"{total.seeds} seeds from {options.first}, {options.jobs} jobs, {took:.1f} s:", end=" ")
    print(f"{60 * total.seeds / took:,.0f} seeds/min, {total.events:,} events,", end=" ")
    print(f"{total.events / took:,.0f} events/s, {len(total.failures)} failures")
    print(f"  {cpu:.1f} s of processor time: {60 * total.seeds / cpu:,.0f} seeds/min per core")
    for name, count in sorted(total.counts.items()):
        print(f"  {name:40} {count:,}")
    for seed, failure in total.failures[:20]:
        print(f"  FAILED seed {seed}: {failure}")
    return bool(total.failures)


def _tell_one(outcome: Outcome) -> int:
    print("\n".join(outcome.story))
    print(f"seed {outcome.seed}: {outcome.failure or 'clean'}", end=", ")
    print(f"{outcome.events} events, trace {outcome.trace:012x}")
    return outcome.failure is not None
