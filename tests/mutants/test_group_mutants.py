"""Every planted bug of consumer groups is caught by a transcript; most by a few seeds too.

python -m tests.mutants.test_group_mutants 200      the table: the first seed for each
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

import pytest

from tests.datadriven.group_env import GroupEnv
from tests.datadriven.runner import check_file
from tests.datadriven.test_datadriven import transcripts
from tests.mutants.group_mutants import CANARY, GROUP_MUTANTS
from tests.sim.group_sim import run_seed
from tests.unit.client import test_membership
from tests.unit.groupcoord import test_codec, test_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.mutants.registry import Mutant

SEEDS = 3
CAUGHT_BY_FEW_SEEDS = 8
"""At least so many mutants fall to the first seeds: else the nemesis has become tame."""


def directed_tests() -> Iterator[tuple[str, Callable[[], None]]]:
    for path in transcripts("group"):
        yield path.name, lambda path=path: check_file(path, GroupEnv())  # type: ignore[misc]
    for module in (test_membership, test_codec, test_machine):
        for name, test in vars(module).items():
            if name.startswith("test_") and not inspect.signature(test).parameters:
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


@pytest.mark.parametrize("mutant", GROUP_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught_by_a_directed_test(mutant: Mutant) -> None:
    assert first_directed(mutant) is not None


def test_many_are_caught_by_a_few_seeds() -> None:
    caught = 0
    for mutant in GROUP_MUTANTS:
        caught += first_seed(mutant, SEEDS) is not None
        if caught == CAUGHT_BY_FEW_SEEDS:
            return
    pytest.fail(f"only {caught} of {len(GROUP_MUTANTS)} were caught")


def test_the_canary_is_not_caught() -> None:
    assert first_directed(CANARY) is None
    assert first_seed(CANARY, SEEDS) is None


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in GROUP_MUTANTS]
    assert len(names) == len(set(names)) >= 20


def main() -> None:
    seeds = int(sys.argv[1])
    for mutant in (*GROUP_MUTANTS, CANARY):
        found = first_seed(mutant, seeds)
        taken = "-" if found is None else str(found)
        directed = first_directed(mutant) or "-"
        print(f"{taken:>6}  {mutant.breaks:4} {mutant.name:72} {directed}", flush=True)


if __name__ == "__main__":
    main()
