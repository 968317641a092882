"""What becomes of a replica that cannot be used: every case, and what must never happen."""

from __future__ import annotations

from itertools import product

import pytest
from suiro.model.ids import NO_LEADER, NodeId, TopicId
from suiro.model.records import PartitionState

from cluster.broker.offline import Offline, Remedy, may_stay, remedy, why_missing

ME, OTHER = NodeId(1), NodeId(2)
STORED_BADLY = {Offline.LOST, Offline.DAMAGED}
"""Where to wait does not help."""


def state(
    isr: tuple[NodeId, ...], leader: NodeId, offline: tuple[NodeId, ...] = (ME,)
) -> PartitionState:
    return PartitionState(TopicId(bytes(16)), 0, (ME, OTHER), isr, leader, offline=offline)


@pytest.mark.parametrize(
    ("facts", "isr", "marked", "expected"),
    [
        ((False, True, True), (ME,), False, None),  # new here while the broker runs
        ((True, True, False), (OTHER,), False, Offline.FAILED),  # perhaps on the failed disk
        ((True, False, True), (ME,), False, Offline.LOST),
        ((True, False, True), (OTHER,), False, None),  # nobody counts on it: begin anew
        ((True, False, False), (ME, OTHER), False, None),  # created, and never opened before
        ((True, False, False), (ME,), True, Offline.LOST),  # lost before an earlier start
    ],
)
def test_why_a_replica_is_in_no_directory(
    facts: tuple[bool, bool, bool],
    isr: tuple[NodeId, ...],
    marked: bool,
    expected: Offline | None,
) -> None:
    is_starting, any_failed, any_lost = facts
    found = why_missing(
        ME,
        state(isr, NO_LEADER, (ME,) if marked else ()),
        is_starting=is_starting,
        any_failed=any_failed,
        any_lost=any_lost,
    )
    assert found is expected


def test_nothing_begins_anew_while_somebody_counts_on_it() -> None:
    """Over every state: only with the controllers' mark, outside the ISR, and with a leader."""
    isrs = ((ME,), (OTHER,), (ME, OTHER))
    for why, isr, marked, leader in product(Offline, isrs, (False, True), (NO_LEADER, OTHER)):
        found = remedy(ME, state(isr, leader, (ME,) if marked else ()), why)
        may = why in STORED_BADLY and marked and ME not in isr and leader == OTHER
        assert (found is Remedy.BEGIN_ANEW) is may


def test_the_only_one_left_comes_back_with_its_damage_and_never_without_a_log() -> None:
    alone = state((ME,), NO_LEADER)
    assert remedy(ME, alone, Offline.DAMAGED) is Remedy.COME_BACK
    assert remedy(ME, alone, Offline.LOST) is Remedy.WAIT
    assert may_stay(ME, alone)
    assert not may_stay(ME, state((ME, OTHER), ME, ()))
