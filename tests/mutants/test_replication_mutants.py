"""Every planted bug of partition replication is caught by a directed test; most by a few seeds too.

    python -m tests.mutants.test_replication_mutants 5000      the table: the first seed for each

The seeds take minutes, so the suite runs the directed tests for all and some seeds for those that
a few of them catch. What no seed finds is guarded twice: by the check that the mutant takes away,
and by the order of a stream, which the simulation never breaks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.datadriven.partition_env import PartitionEnv
from tests.mutants.hunt import Hunt
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


HUNT = Hunt("partition", PartitionEnv, DIRECTED, run_seed)


@pytest.mark.parametrize("mutant", REPLICATION_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught_by_a_directed_test(mutant: Mutant) -> None:
    assert HUNT.first_directed(mutant) is not None


def test_many_are_caught_by_a_few_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    taken = {mutant.name: HUNT.first_seed(mutant, SEEDS) for mutant in REPLICATION_MUTANTS}
    caught = [name for name, seeds in taken.items() if seeds]
    directed = {mutant.name: HUNT.first_directed(mutant) for mutant in REPLICATION_MUTANTS}
    with capsys.disabled():
        print(f"\nplanted bugs of replication: {len(directed) - _missed(directed)}/{len(directed)}")
        print(f"caught by a directed test, {len(caught)} by the first {SEEDS} seeds, which took:")
        for name, seeds in taken.items():
            print(f"  {seeds or '-':>3}  {name:75} {directed[name]}")
    assert len(caught) >= CAUGHT_BY_FEW_SEEDS, caught


def _missed(directed: dict[str, str | None]) -> int:
    return list(directed.values()).count(None)


def test_the_canary_is_not_caught() -> None:
    assert HUNT.first_directed(CANARY) is None
    assert HUNT.first_seed(CANARY, SEEDS) is None


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in REPLICATION_MUTANTS]
    assert len(names) == len(set(names)) >= 15


if __name__ == "__main__":
    HUNT.print_table((*REPLICATION_MUTANTS, CANARY), int(sys.argv[1]))
