"""Shared transactions, what the transcripts do not tell."""

from __future__ import annotations

import pytest
from suiro.model.errors import InvalidRequest, StaleBatch, TransactionAborted
from suiro.model.ids import ProducerId, ProducerIdentity, shared_id

from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.requests import (
    ALREADY_COMMITTED,
    DONE,
    Completing,
    EndShared,
    Joined,
    Open,
    SharedEnd,
)
from cluster.txncoord.table import TxnLimits
from cluster.txncoord.txn import after
from tests.unit.txncoord.kit import IN_T0, Coordinator


class Query(Coordinator):
    """One name's shared transactions."""

    def open(
        self, sequence: int, attempt: str, writer: str = "w"
    ) -> Joined | SharedEnd | Completing:
        request = Open("q", sequence, attempt, writer, 1000)
        return self.do(self.machine.decide_open_shared(request, 0))

    def write(self, sequence: int, attempt: str, writer: str = "w") -> ProducerIdentity:
        joined = self.open(sequence, attempt, writer)
        assert isinstance(joined, Joined)
        name, who = joined.transactional_id, joined.identity
        self.do(self.machine.decide_add(name, who, IN_T0, 0))
        self.do(self.machine.decide_prepare_writer(name, who, 0))
        return who

    def close(self, sequence: int, attempt: str, *writers: ProducerIdentity) -> SharedEnd:
        counted = tuple(int(writer.producer_id) for writer in writers)
        request = EndShared("q", sequence, attempt, commit=True, producer_ids=counted)
        return self.do(self.machine.decide_end_shared(request, 0))


def test_an_abort_after_the_commit_undoes_nothing() -> None:
    query = Query()
    who = query.write(1, "a")
    assert query.close(1, "a", who) == DONE
    for attempt in ("a", "", "b"):
        request = EndShared("q", 1, attempt, commit=False)
        assert query.do(query.machine.decide_end_shared(request, 0)) == ALREADY_COMMITTED
    (work,) = query.machine.open_work()
    assert work.writers[0].commit


def test_the_token_is_remembered_in_the_record_of_the_decision() -> None:
    query = Query()
    who = query.write(1, "a")
    request = EndShared("q", 1, "a", commit=True, producer_ids=(int(who.producer_id),))
    decision = query.machine.decide_end_shared(request, 0)
    (record,) = decision.records
    assert record.txn.committed_sequence == 1
    assert record.txn.writers[0].commits


def test_a_batch_may_be_committed_by_one_attempt_only() -> None:
    query = Query()
    old = query.write(1, "a")
    assert isinstance(query.open(1, "b"), Completing)
    with pytest.raises(TransactionAborted):
        query.close(1, "a", old)
    query.marked(after(old), name=shared_id("q"))
    new = query.write(1, "b")
    with pytest.raises(TransactionAborted):
        query.close(1, "a", old)
    assert query.close(1, "b", new) == DONE
    assert query.close(1, "a", old) == ALREADY_COMMITTED
    assert new.producer_id != old.producer_id


def test_a_lower_batch_is_stale() -> None:
    query = Query()
    query.close(5, "a")
    for sequence in (0, 4):
        with pytest.raises(StaleBatch):
            query.open(sequence, "b")
        with pytest.raises(StaleBatch):
            query.close(sequence, "b")
    assert isinstance(query.open(6, "b"), Joined)


def test_a_commit_that_names_nobody_of_an_open_attempt_aborts_all_writers() -> None:
    query = Query()
    query.write(1, "a")
    assert query.close(1, "a") == DONE
    (work,) = query.machine.open_work()
    assert not work.writers[0].commit


def test_nothing_can_be_committed_beside_an_open_attempt() -> None:
    query = Query()
    query.write(1, "a")
    with pytest.raises(TransactionAborted):
        query.close(1, "b")
    with pytest.raises(TransactionAborted):
        query.close(2, "b")


def test_an_attempt_that_was_ended_is_remembered_for_some_time() -> None:
    query = Query()
    query.machine = TxnMachine(TxnLimits(attempts_remembered=2))
    query.machine.on_producer_ids(ProducerId(1), ProducerId(99))
    for attempt in ("a", "b", "c"):
        query.open(1, attempt)
        query.do(query.machine.decide_abort(shared_id("q"), "operator", 0))
    for attempt in ("b", "c"):
        with pytest.raises(TransactionAborted):
            query.open(1, attempt)


def test_bounds_are_kept() -> None:
    query = Query()
    for request in (
        Open("", 1, "a", "w", 10),
        Open("q", -1, "a", "w", 10),
        Open("q", 1, "", "w", 10),
        Open("q", 1, "a", "", 10),
        Open("q", 1, "a", "w", 0),
    ):
        with pytest.raises(InvalidRequest):
            query.machine.decide_open_shared(request, 0)
