"""How planted bugs are hunted: by the directed tests of their area, then by its simulation.

A crash is a catch as good as any. Directed tests are the area's transcripts and those of its unit
tests that need no fixture.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.datadriven.runner import check_file
from tests.datadriven.test_datadriven import transcripts

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator
    from types import ModuleType

    from tests.mutants.registry import Mutant
    from tests.sim.seeds import RunSeed


@dataclass(frozen=True)
class Hunt:
    """One area: the folder of its transcripts, what reads them, its unit tests, its simulation."""

    folder: str
    make_env: Callable[[], Any]
    modules: tuple[ModuleType, ...]
    run_seed: RunSeed

    def first_directed(self, mutant: Mutant) -> str | None:
        """The first directed test that catches it."""
        with mutant.planted():
            return next((name for name, test in self._directed_tests() if _fails(test)), None)

    def first_seed(self, mutant: Mutant, seeds: int) -> int | None:
        """How many seeds it took, of so many."""
        with mutant.planted():
            for seed in range(seeds):
                if _fails(lambda seed=seed: self._run(seed)):  # type: ignore[misc]
                    return seed + 1
        return None

    def print_table(self, mutants: Iterable[Mutant], seeds: int) -> None:
        """For each of them the number of seeds and the test."""
        for mutant in mutants:
            taken = self.first_seed(mutant, seeds) or "-"
            directed = self.first_directed(mutant) or "-"
            print(f"{taken:>6}  {mutant.breaks:8} {mutant.name:75} {directed}", flush=True)

    def _directed_tests(self) -> Iterator[tuple[str, Callable[[], None]]]:
        for path in transcripts(self.folder):
            yield path.name, lambda path=path: check_file(path, self.make_env())  # type: ignore[misc]
        for module in self.modules:
            for name, test in vars(module).items():
                if name.startswith("test_") and not inspect.signature(test).parameters:
                    yield name, _waited_for(test) if inspect.iscoroutinefunction(test) else test

    def _run(self, seed: int) -> None:
        assert self.run_seed(seed).failure is None


def _waited_for(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    return lambda: asyncio.run(test())


def _fails(test: Callable[[], None]) -> bool:
    try:
        test()
    except (Exception, pytest.fail.Exception):
        return True
    return False
