"""Every planted bug of the Raft core is caught; the canary is not.

A mutant meets the directed tests first (the unit tests that need no fixture, and the transcripts),
then seeds of the simulation. Both are tried, because each finds what the other cannot: no nemesis
finds figure 8 by its consequences, and no directed test thinks of everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.datadriven.raft_env import RaftEnv
from tests.datadriven.runner import check_file
from tests.datadriven.test_datadriven import transcripts
from tests.mutants.hunt import Hunt
from tests.mutants.raft_mutants import CANARY, RAFT_MUTANTS
from tests.mutants.registry import Edit, Mutant
from tests.sim.raft_checker import Violation
from tests.sim.raft_sim import run_seed
from tests.unit.controller_quorum import test_raft_flow, test_raft_membership, test_raft_paper

SEEDS_MAX = 40
"""Enough for half of them; a directed test must catch what needs more."""

MUST_BE_DIRECTED = {
    "the vote is reset within its term": ("vote_once.txt", "M6"),
    "an older term's entry is committed by counting (figure 8)": ("figure8.txt", "M5"),
}
"""Bugs that a nemesis finds late or never (DESIGN.md section 8): a story of their own must end in
the violation itself, not only print something else.
"""


@dataclass(frozen=True, slots=True)
class Catch:
    """Who caught a mutant: the first directed test that failed, and how many seeds it took."""

    directed: str | None
    seed: int | None

    def __str__(self) -> str:
        seed = "not in " + str(SEEDS_MAX) if self.seed is None else str(self.seed)
        return f"seeds: {seed:9} directed: {self.directed or '-'}"


HUNT = Hunt("raft", RaftEnv, (test_raft_paper, test_raft_membership, test_raft_flow), run_seed)


def caught_by(mutant: Mutant) -> Catch:
    return Catch(HUNT.first_directed(mutant), HUNT.first_seed(mutant, SEEDS_MAX))


@pytest.mark.parametrize("mutant", RAFT_MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_caught(mutant: Mutant, capsys: pytest.CaptureFixture[str]) -> None:
    catch = caught_by(mutant)
    is_caught = catch != Catch(None, None)
    place = f"{RAFT_MUTANTS.index(mutant) + 1}/{len(RAFT_MUTANTS)}"
    with capsys.disabled():
        verdict = "caught" if is_caught else "MISSED"
        print(f"\n  {place:6} {verdict} {mutant.breaks:9} {mutant.name:60} {catch}", end="")
    assert is_caught


@pytest.mark.parametrize("name", MUST_BE_DIRECTED)
def test_a_story_of_its_own_ends_in_the_violation(name: str) -> None:
    file, invariant = MUST_BE_DIRECTED[name]
    (mutant,) = (mutant for mutant in RAFT_MUTANTS if mutant.name == name)
    (path,) = (path for path in transcripts("raft") if path.name == file)
    with mutant.planted(), pytest.raises(Violation, match=invariant):
        check_file(path, RaftEnv())


def test_the_canary_is_not_caught() -> None:
    assert caught_by(CANARY) == Catch(None, None)


def test_there_are_enough_of_them() -> None:
    names = [mutant.name for mutant in RAFT_MUTANTS]
    assert len(names) == len(set(names)) >= 12


def test_a_mutant_whose_text_is_gone_is_an_error() -> None:
    edit = CANARY.edits[0]
    stale = Mutant("stale", "nothing", (Edit(edit.function, "voters // 3", "voters"),))
    with pytest.raises(AssertionError, match="0 times"), stale.planted():
        pass
