"""Every planted bug of the disk is caught by a directed test, the canary by none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.datadriven.partition_env import PartitionEnv
from tests.mutants.hunt import Hunt
from tests.mutants.storage_mutants import CANARY, STORAGE_MUTANTS
from tests.sim.swarm import run_seed
from tests.unit.broker import test_replicas_deletion
from tests.unit.host import test_durable_directory
from tests.unit.log import test_corruption, test_crash, test_recovery

if TYPE_CHECKING:
    from tests.mutants.registry import Mutant

MODULES = (
    test_durable_directory, test_replicas_deletion, test_corruption,
    test_recovery, test_crash,
)  # fmt: skip

HUNT = Hunt("storage", PartitionEnv, MODULES, run_seed)


@pytest.mark.parametrize("mutant", STORAGE_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught_by_a_directed_test(mutant: Mutant) -> None:
    assert HUNT.first_directed(mutant) is not None


def test_the_canary_is_not_caught() -> None:
    assert HUNT.first_directed(CANARY) is None
