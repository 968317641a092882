"""Every planted bug of transactions is caught by a directed test; most by a few seeds too.

    python -m tests.mutants.test_txn_mutants 500      the table: the first seed for each

The seeds take minutes, so the suite runs the directed tests for all, and some seeds for those that
a few of them catch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.datadriven.txn_env import TxnEnv
from tests.mutants.hunt import Hunt
from tests.mutants.txn_mutants import CANARY, TXN_MUTANTS
from tests.sim.txn_sim import run_seed
from tests.unit.broker import test_txn_verify, test_visible
from tests.unit.client import test_transaction
from tests.unit.log import test_producers
from tests.unit.txncoord import test_machine, test_shared

if TYPE_CHECKING:
    from tests.mutants.registry import Mutant

MODULES = (
    test_machine, test_shared, test_transaction, test_producers, test_txn_verify, test_visible,
)  # fmt: skip
SEEDS = 8
CAUGHT_BY_FEW_SEEDS = 6
"""At least so many of every third mutant fall to the first seeds: else the nemesis is tame."""


HUNT = Hunt("txn", TxnEnv, MODULES, run_seed)


@pytest.mark.parametrize("mutant", TXN_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught_by_a_directed_test(mutant: Mutant) -> None:
    assert HUNT.first_directed(mutant) is not None


def test_many_are_caught_by_a_few_seeds() -> None:
    caught = [mutant.name for mutant in TXN_MUTANTS[::3] if HUNT.first_seed(mutant, SEEDS)]
    assert len(caught) >= CAUGHT_BY_FEW_SEEDS, caught


def test_the_canary_is_not_caught() -> None:
    assert HUNT.first_directed(CANARY) is None
    assert HUNT.first_seed(CANARY, SEEDS) is None


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in TXN_MUTANTS]
    assert len(names) == len(set(names)) >= 30


if __name__ == "__main__":
    HUNT.print_table((*TXN_MUTANTS, CANARY), int(sys.argv[1]))
