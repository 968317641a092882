"""Every planted bug between the areas is caught: all but one by a directed test, that by seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.datadriven.metadata_env import MetadataEnv
from tests.mutants.hunt import Hunt
from tests.mutants.system_mutants import CANARY, SYSTEM_MUTANTS
from tests.sim import test_ready_world
from tests.sim.swarm import run_seed
from tests.unit.client import test_fetch_buffer, test_partitioner
from tests.unit.log import test_answers, test_pure

if TYPE_CHECKING:
    from tests.mutants.registry import Mutant

MODULES = (test_fetch_buffer, test_partitioner, test_pure, test_answers, test_ready_world)
SEEDS = 5

HUNT = Hunt("metadata", MetadataEnv, MODULES, run_seed)


@pytest.mark.parametrize("mutant", SYSTEM_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught(mutant: Mutant) -> None:
    assert HUNT.first_directed(mutant) is not None or HUNT.first_seed(mutant, SEEDS) is not None


def test_the_canary_is_not_caught() -> None:
    assert HUNT.first_directed(CANARY) is None
