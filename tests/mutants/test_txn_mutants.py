"""Every planted bug of transactions is caught by a directed test; most by a few seeds too.

    python -m tests.mutants.test_txn_mutants 500      the table: the first seed for each

The seeds take minutes, so the suite runs the directed tests for all, and some seeds for those that
a few of them catch.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

import pytest

from tests.datadriven.runner import check_file
from tests.datadriven.test_datadriven import transcripts
from tests.datadriven.txn_env import TxnEnv
from tests.mutants.txn_mutants import CANARY, TXN_MUTANTS
from tests.sim.txn_sim import run_seed
from tests.unit.broker import test_txn_verify, test_visible
from tests.unit.client import test_transaction
from tests.unit.log import test_producers
from tests.unit.txncoord import test_machine, test_shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.mutants.registry import Mutant

MODULES = (
    test_machine, test_shared, test_transaction, test_producers, test_txn_verify, test_visible,
)  # fmt: skip
SEEDS = 8
CAUGHT_BY_FEW_SEEDS = 6
"""At least so many of every third mutant fall to the first seeds: else the nemesis is tame."""


def directed_tests() -> Iterator[tuple[str, Callable[[], None]]]:
    for path in transcripts("txn"):
        yield path.name, lambda path=path: check_file(path, TxnEnv())  # type: ignore[misc]
    for module in MODULES:
        for name, test in vars(module).items():
            is_test = name.startswith("test_") and not inspect.iscoroutinefunction(test)
            if is_test and not inspect.signature(test).parameters:
                yield name, test


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


@pytest.mark.parametrize("mutant", TXN_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught_by_a_directed_test(mutant: Mutant) -> None:
    assert first_directed(mutant) is not None


def test_many_are_caught_by_a_few_seeds() -> None:
    caught = [mutant.name for mutant in TXN_MUTANTS[::3] if first_seed(mutant, SEEDS)]
    assert len(caught) >= CAUGHT_BY_FEW_SEEDS, caught


def test_the_canary_is_not_caught() -> None:
    assert first_directed(CANARY) is None
    assert first_seed(CANARY, SEEDS) is None


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in TXN_MUTANTS]
    assert len(names) == len(set(names)) >= 30


def main() -> None:
    seeds = int(sys.argv[1])
    for mutant in (*TXN_MUTANTS, CANARY):
        found = first_seed(mutant, seeds)
        taken = "-" if found is None else str(found)
        directed = first_directed(mutant) or "-"
        print(f"{taken:>6}  {mutant.breaks:5} {mutant.name:72} {directed}", flush=True)


if __name__ == "__main__":
    main()
