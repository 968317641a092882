"""Every planted bug of consumer groups is caught by a transcript; most by a few seeds too.

python -m tests.mutants.test_group_mutants 200      the table: the first seed for each
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.datadriven.group_env import GroupEnv
from tests.mutants.group_mutants import CANARY, GROUP_MUTANTS
from tests.mutants.hunt import Hunt
from tests.sim.group_sim import run_seed
from tests.unit.client import test_membership
from tests.unit.groupcoord import test_codec, test_machine

if TYPE_CHECKING:
    from tests.mutants.registry import Mutant

SEEDS = 3
CAUGHT_BY_FEW_SEEDS = 8
"""At least so many mutants fall to the first seeds: else the nemesis has become tame."""


HUNT = Hunt("group", GroupEnv, (test_membership, test_codec, test_machine), run_seed)


@pytest.mark.parametrize("mutant", GROUP_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught_by_a_directed_test(mutant: Mutant) -> None:
    assert HUNT.first_directed(mutant) is not None


def test_many_are_caught_by_a_few_seeds() -> None:
    caught = 0
    for mutant in GROUP_MUTANTS:
        caught += HUNT.first_seed(mutant, SEEDS) is not None
        if caught == CAUGHT_BY_FEW_SEEDS:
            return
    pytest.fail(f"only {caught} of {len(GROUP_MUTANTS)} were caught")


def test_the_canary_is_not_caught() -> None:
    assert HUNT.first_directed(CANARY) is None
    assert HUNT.first_seed(CANARY, SEEDS) is None


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in GROUP_MUTANTS]
    assert len(names) == len(set(names)) >= 20


if __name__ == "__main__":
    HUNT.print_table((*GROUP_MUTANTS, CANARY), int(sys.argv[1]))
