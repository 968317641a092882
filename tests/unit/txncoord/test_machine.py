"""The transaction machine, rule by rule; the stories are in the transcripts."""

from __future__ import annotations

import pytest
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    ConcurrentTransaction,
    InvalidRequest,
    InvalidTransaction,
    ProducerFenced,
    TransactionTimedOut,
    Unavailable,
)
from suiro.model.ids import ProducerId

from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.producer_ids import ProducerIds
from cluster.txncoord.requests import Completing, Init, Places
from cluster.txncoord.table import TxnLimits, moved
from cluster.txncoord.txn import LEGAL, Txn, TxnState
from tests.unit.txncoord.kit import IN_BOTH, IN_T0, T0, T1, Coordinator, identity

FIRST, SECOND = identity(1, 0), identity(1, 1)


def test_the_table_of_transitions_is_complete() -> None:
    assert LEGAL.keys() == set(TxnState)
    reachable = {TxnState.DEAD}
    while more := {after for state in reachable for after in LEGAL[state]} - reachable:
        reachable |= more
    assert reachable == set(TxnState)


def test_what_the_table_forbids_cannot_be_written() -> None:
    txn = Txn("id", TxnState.PREPARE_COMMIT, 0)
    for state in (TxnState.PREPARE_ABORT, TxnState.ONGOING, TxnState.EMPTY, TxnState.DEAD):
        with pytest.raises(AssertionError):
            moved(txn, state=state)


def test_a_decision_changes_nothing_until_it_is_applied() -> None:
    coordinator = Coordinator()
    coordinator.init()
    before = coordinator.machine.get("id")
    coordinator.machine.decide_add("id", FIRST, IN_T0, 0)
    coordinator.machine.decide_end("id", FIRST, commit=True, now_ms=0)
    coordinator.machine.decide_init(Init("id", 10, "other"), 0)
    assert coordinator.machine.get("id") == before
    assert len(coordinator.machine.table.ids) == 98


def test_an_empty_transaction_that_ends_raises_the_epoch() -> None:
    """A registration that is late must not open the next transaction under the old name."""
    coordinator = Coordinator()
    assert coordinator.init() == FIRST
    assert coordinator.end(FIRST) == SECOND
    with pytest.raises(InvalidTransaction):
        coordinator.add(FIRST)
    coordinator.add(SECOND)


def test_the_next_one_cannot_end_before_the_last_is_complete() -> None:
    """It was told that it is fenced: a producer that aborts at once was lost for good."""
    coordinator = Coordinator()
    coordinator.init()
    coordinator.add(FIRST)
    assert coordinator.end(FIRST) == SECOND
    with pytest.raises(ConcurrentTransaction):
        coordinator.end(SECOND, commit=False)


def test_nothing_joins_what_is_decided() -> None:
    coordinator = Coordinator()
    coordinator.init()
    coordinator.add(FIRST)
    assert coordinator.end(FIRST) == SECOND
    with pytest.raises(InvalidTransaction):
        coordinator.add(FIRST, IN_BOTH)
    with pytest.raises(ConcurrentTransaction):
        coordinator.add(SECOND)
    assert coordinator.marked(SECOND)
    coordinator.add(SECOND)


def test_a_producer_that_missed_the_answer_to_its_end_may_go_on() -> None:
    coordinator = Coordinator()
    coordinator.init()
    coordinator.add(FIRST)
    coordinator.end(FIRST)
    coordinator.marked(SECOND)
    assert coordinator.init(go_on=FIRST) == identity(1, 2)
    with pytest.raises(SuiroError):
        coordinator.init(go_on=SECOND)  # it was never told of that one
    with pytest.raises(ProducerFenced):
        coordinator.end(SECOND)


def test_the_answer_to_a_repeated_end_is_not_what_somebody_else_was_given() -> None:
    coordinator = Coordinator()
    coordinator.init()
    coordinator.end(FIRST)
    assert coordinator.init() == identity(1, 2)
    assert coordinator.end(FIRST) == SECOND
    with pytest.raises(ProducerFenced):
        coordinator.add(SECOND)


def test_a_timeout_counts_from_the_first_registration() -> None:
    coordinator = Coordinator()
    coordinator.init(now_ms=0)
    assert coordinator.machine.next_deadline_ms() is None
    coordinator.add(FIRST, now_ms=5000)
    coordinator.add(FIRST, IN_BOTH, now_ms=5900)
    assert coordinator.machine.next_deadline_ms() == 6000
    assert coordinator.do(coordinator.machine.decide_expire(5999)) == 0
    assert coordinator.do(coordinator.machine.decide_expire(6000)) == 1
    assert coordinator.machine.next_deadline_ms() is None
    with pytest.raises(TransactionTimedOut):
        coordinator.end(FIRST)
    assert isinstance(coordinator.init(go_on=FIRST), Completing)
    assert coordinator.marked(SECOND, IN_BOTH)
    assert coordinator.init(go_on=FIRST) == identity(1, 2)


def test_a_marker_that_is_answered_in_part_is_owed_by_the_rest() -> None:
    coordinator = Coordinator()
    coordinator.init()
    coordinator.add(FIRST, Places((T0, T1), ("g",)))
    coordinator.end(FIRST)
    assert not coordinator.marked(SECOND, IN_T0)
    (work,) = coordinator.machine.open_work()
    assert work.writers[0].places == Places((T1,), ("g",))
    assert not coordinator.marked(SECOND, Places((), ("g",)))
    assert coordinator.marked(SECOND, Places((T1,)))
    assert coordinator.machine.open_work() == ()


def test_an_id_is_verified_for_the_places_that_it_registered() -> None:
    coordinator = Coordinator()
    coordinator.init()
    verify = coordinator.machine.decide_verify
    with pytest.raises(InvalidTransaction):
        verify("id", FIRST, IN_T0)
    coordinator.add(FIRST, Places((T0,), ("g",)))
    verify("id", FIRST, Places((T0,), ("g",)))
    for who, places in (
        (FIRST, IN_BOTH),
        (FIRST, Places((), ("other",))),
        (SECOND, IN_T0),
        (identity(2, 0), IN_T0),
    ):
        with pytest.raises(SuiroError):
            verify("id", who, places)


def test_bounds_are_kept() -> None:
    coordinator = Coordinator()
    coordinator.machine = TxnMachine(TxnLimits(places_max=1, timeout_ms_max=10))
    coordinator.machine.on_producer_ids(ProducerId(1), ProducerId(2))
    for timeout_ms in (0, 11):
        with pytest.raises(InvalidRequest):
            coordinator.machine.decide_init(Init("id", timeout_ms, "me"), 0)
    with pytest.raises(InvalidRequest):
        coordinator.machine.decide_init(Init("", 10, "me"), 0)
    coordinator.do(coordinator.machine.decide_init(Init("id", 10, "me"), 0))
    with pytest.raises(InvalidRequest):
        coordinator.add(FIRST, IN_BOTH)


def test_without_producer_ids_only_what_needs_one_waits() -> None:
    coordinator = Coordinator(epoch_max=2)
    machine = coordinator.machine = TxnMachine(TxnLimits(epoch_max=2))
    assert machine.wants_producer_ids
    with pytest.raises(Unavailable):
        coordinator.init()
    machine.on_producer_ids(ProducerId(7), ProducerId(8))
    assert coordinator.init() == identity(7, 0)
    assert machine.wants_producer_ids
    assert coordinator.end(identity(7, 0)) == identity(7, 1)
    coordinator.add(identity(7, 1))
    with pytest.raises(Unavailable):
        coordinator.end(identity(7, 1))
    assert coordinator.do(machine.decide_expire(5000)) == 1  # an abort by itself needs none


def test_a_list_can_be_narrowed() -> None:
    coordinator = Coordinator()
    coordinator.init("idle")
    coordinator.init()
    coordinator.add(identity(2, 0), now_ms=50)
    machine = coordinator.machine
    assert [t.transactional_id for t in machine.transactions()] == ["id", "idle"]
    assert [t.transactional_id for t in machine.transactions([TxnState.EMPTY])] == ["idle"]
    assert [t.transactional_id for t in machine.transactions(opened_before_ms=50)] == ["id"]
    assert machine.transactions(opened_before_ms=49) == []


def test_ids_come_from_blocks_in_order_and_once() -> None:
    ids = ProducerIds(low=2)
    ids.add(ProducerId(5), ProducerId(7))
    ids.add(ProducerId(20), ProducerId(21))
    assert len(ids) == 3
    assert [ids.take() for _ in range(3)] == [5, 6, 20]
    assert ids.wants_block
    with pytest.raises(Unavailable):
        ids.peek()
    ids.add(ProducerId(30), ProducerId(33))
    ids.use([ProducerId(5), ProducerId(20)])  # of blocks that others had
    assert ids.peek() == 30
