"""Every planted bug of partition replication is caught by a directed test; most by a few seeds too.

    python -m tests.mutants.test_replication_mutants 5000      the table: the first seed for each

The seeds take minutes, so the suite runs the directed tests for all and some seeds for those that
a few of them catch. What no seed finds is guarded twice: by the check that the mutant takes away,
and by the order of a stream, which the simulation never breaks.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.datadriven.partition_env import PartitionEnv
from tests.datadriven.runner import check_file
from tests.datadriven.test_datadriven import transcripts
from tests.mutants.replication_mutants import CANARY, REPLICATION_MUTANTS
from tests.sim.replication_sim import run_seed
from tests.unit.broker import (
    test_follower,
    test_follower_epochs,
    test_leader,
    test_leader_lease,
    test_partition_acks,
)
from tests.unit.log import test_producers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from tests.mutants.registry import Mutant

DIRECTED = (
    test_leader,
    test_follower,
    test_leader_lease,
    test_follower_epochs,
    test_partition_acks,
    test_producers,
)

SEEDS = 12
CAUGHT_BY_FEW_SEEDS = 10
"""At least so many mutants fall to the first dozen seeds: else the nemesis has become tame."""


def directed_tests() -> Iterator[tuple[str, Callable[[], None]]]:
    for path in transcripts("partition"):
        yield path.name, lambda path=path: check_file(path, PartitionEnv())  # type: ignore[misc]
    for module in DIRECTED:
        for name, test in vars(module).items():
            if name.startswith("test_") and not inspect.signature(test).parameters:
                yield name, _waited_for(test) if inspect.iscoroutinefunction(test) else test


def _waited_for(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(test())


@cache
def first_directed(mutant: Mutant) -> str | None:
    with mutant.planted():
        return next((name for name, test in directed_tests() if _fails(test)), None)


def first_seed(mutant: Mutant, seeds: int) -> int | None:
    """How many seeds it took; a crash is a catch as good as any."""
    with mutant.planted():
        for seed in range(seeds):
            if _fails(lambda seed=seed: _run(seed)):  # type: ignore[misc]
                return seed + 1
    return None


def _run(seed: int) -> None:
    assert run_seed(seed).failure is None


def _fails(test: Callable[[], None]) -> bool:
    try:
        test()
    except (Exception, pytest.fail.Exception):
        return True
    return False


@pytest.mark.parametrize("mutant", REPLICATION_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught_by_a_directed_test(mutant: Mutant) -> None:
    assert first_directed(mutant) is not None


def test_many_are_caught_by_a_few_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    taken = {mutant.name: first_seed(mutant, SEEDS) for mutant in REPLICATION_MUTANTS}
    caught = [name for name, seeds in taken.items() if seeds]
    directed = {mutant.name: first_directed(mutant) for mutant in REPLICATION_MUTANTS}
    with capsys.disabled():
        print(f"\nplanted bugs of replication: {len(directed) - _missed(directed)}/{len(directed)}")
        print(f"caught by a directed test, {len(caught)} by the first {SEEDS} seeds, which took:")
        for name, seeds in taken.items():
            print(f"  {seeds or '-':>3}  {name:75} {directed[name]}")
    assert len(caught) >= CAUGHT_BY_FEW_SEEDS, caught


def _missed(directed: dict[str, str | None]) -> int:
    return list(directed.values()).count(None)


def test_the_canary_is_not_caught() -> None:
    assert first_directed(CANARY) is None
    assert first_seed(CANARY, SEEDS) is None


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in REPLICATION_MUTANTS]
    assert len(names) == len(set(names)) >= 15


def main() -> None:
    seeds = int(sys.argv[1])
    for mutant in (*REPLICATION_MUTANTS, CANARY):
        found = first_seed(mutant, seeds)
        taken = "-" if found is None else str(found)
        directed = first_directed(mutant) or "-"
        print(f"{taken:>6}  {mutant.breaks:8} {mutant.name:68} {directed}", flush=True)


if __name__ == "__main__":
    main()
