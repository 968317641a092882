"""The whole small space in the suite, the large one in `make txn-model`; and bugs that it finds."""

from __future__ import annotations

import pytest

from cluster.txncoord.txn import TxnState
from tests.model.txn_model import search
from tests.model.txn_states import Bounds
from tests.mutants.txn_mutants import TXN_MUTANTS

SMALL = Bounds(inits=1, begun=2)
FOUND = (
    "row 20: a late marker ends the transaction of its own epoch",
    "row 20: the next transaction begins while the last one's markers are under way",
    "row 21: visible when the marker is written, not when it is committed",
    "row 22: an abort leaves no range",
)


def test_every_state_of_the_small_space_is_sound() -> None:
    found = search(SMALL, 50_000)
    assert found.broken is None
    assert found.is_complete
    assert found.states > 5_000
    assert set(found.seen) == set(TxnState) - {TxnState.DEAD}


@pytest.mark.parametrize("name", FOUND)
def test_the_model_finds(name: str) -> None:
    (mutant,) = [mutant for mutant in TXN_MUTANTS if mutant.name == name]
    with mutant.planted():
        assert search(SMALL, 50_000).broken is not None
