"""The client's transaction: what is sent when, and what an error does."""

from __future__ import annotations

import pytest
from suiro.model.errors import (
    ConcurrentTransaction,
    InvalidTransaction,
    NotCoordinator,
    OutOfOrderSequence,
    ProducerFenced,
    TransactionAborted,
    TransactionTimedOut,
)
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition
from suiro.transaction import (
    LEGAL,
    NOBODY,
    EndTxn,
    InitProducer,
    Register,
    State,
    Transaction,
    Verdict,
)

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def identity(epoch: int) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(1), ProducerEpoch(epoch))


def begun() -> Transaction:
    transaction = Transaction("id")
    assert transaction.next_step() == InitProducer(NOBODY)
    transaction.on_initialised(identity(0))
    transaction.begin()
    return transaction


def written() -> Transaction:
    """A transaction with A in it."""
    transaction = begun()
    transaction.write_to([A])
    step = transaction.next_step()
    assert isinstance(step, Register)
    transaction.on_registered(step)
    return transaction


def test_the_table_is_complete() -> None:
    assert LEGAL.keys() == set(State)


def test_nothing_is_written_before_it_is_registered() -> None:
    transaction = begun()
    assert transaction.next_step() is None
    transaction.write_to([A, "group"])
    assert not transaction.may_write(A)
    step = transaction.next_step()
    assert step == Register(identity(0), (A,), ("group",))
    transaction.write_to([B])  # while the first question is out
    assert isinstance(step, Register)
    transaction.on_registered(step)
    assert transaction.may_write(A)
    assert transaction.may_write("group")
    assert not transaction.may_write(B)
    transaction.write_to([A])
    assert transaction.next_step() == Register(identity(0), (B,), ())


def test_a_late_answer_registers_nothing_of_the_next_transaction() -> None:
    transaction = written()
    late = Register(identity(0), (B,), ())
    transaction.commit()
    transaction.on_ended(identity(1))
    transaction.begin()
    transaction.write_to([B])
    transaction.on_registered(late)
    assert not transaction.may_write(B)
    assert not transaction.may_write(A)


def test_an_end_is_asked_for_until_it_is_answered_and_never_turned() -> None:
    transaction = written()
    transaction.commit()
    assert transaction.next_step() == EndTxn(identity(0), commit=True)
    assert transaction.on_error(NotCoordinator("elsewhere")) is Verdict.RETRY
    assert transaction.on_error(ConcurrentTransaction("wait")) is Verdict.RETRY
    with pytest.raises(InvalidTransaction):
        transaction.abort()
    transaction.commit()
    assert transaction.next_step() == EndTxn(identity(0), commit=True)
    transaction.on_ended(identity(1))
    assert transaction.state is State.READY
    assert transaction.identity == identity(1)


def test_what_wrote_nowhere_ends_without_a_word() -> None:
    transaction = begun()
    transaction.commit()
    assert transaction.state is State.READY
    transaction.begin()
    transaction.abort()
    assert transaction.next_step() is None


def test_what_only_asked_to_write_ends_at_the_coordinator() -> None:
    transaction = begun()
    transaction.write_to([A])
    transaction.abort()
    assert transaction.next_step() == EndTxn(identity(0), commit=False)


@pytest.mark.parametrize("error", [OutOfOrderSequence("gap"), TransactionTimedOut("late")])
def test_a_lost_transaction_is_aborted_by_a_new_identity(error: OutOfOrderSequence) -> None:
    transaction = written()
    assert transaction.on_refused(error) is Verdict.ABORT
    assert not transaction.may_write(A)
    with pytest.raises(TransactionAborted):
        transaction.commit()
    transaction.abort()
    assert transaction.next_step() == InitProducer(identity(0))
    transaction.on_initialised(identity(2))
    assert transaction.state is State.READY
    transaction.begin()
    assert not transaction.may_write(A)


def test_a_timeout_that_is_learnt_at_the_end_renews_the_identity() -> None:
    transaction = written()
    transaction.commit()
    assert transaction.on_error(TransactionTimedOut("late")) is Verdict.ABORT
    transaction.abort()
    assert transaction.next_step() == InitProducer(identity(0))


def test_an_abort_that_is_refused_renews_the_identity() -> None:
    transaction = written()
    transaction.abort()
    assert transaction.on_error(InvalidTransaction("over")) is Verdict.ABORT
    assert transaction.next_step() == InitProducer(identity(0))


def test_a_broker_that_says_fenced_is_not_the_last_word() -> None:
    transaction = written()
    assert transaction.on_refused(ProducerFenced("epoch 1 was seen")) is Verdict.ABORT
    transaction.abort()
    assert transaction.next_step() == EndTxn(identity(0), commit=False)
    assert transaction.on_error(ProducerFenced("b took it")) is Verdict.FATAL
    assert transaction.next_step() is None
    for act in (transaction.begin, transaction.commit, transaction.abort):
        with pytest.raises(ProducerFenced):
            act()


def test_late_errors_of_an_ended_transaction_do_nothing() -> None:
    transaction = written()
    transaction.commit()
    transaction.on_ended(identity(1))
    transaction.on_refused(OutOfOrderSequence("gap"))
    assert transaction.state is State.READY
    transaction.begin()


def test_calls_out_of_order_are_refused() -> None:
    transaction = Transaction("id")
    for act in (transaction.begin, transaction.commit, transaction.abort):
        with pytest.raises(InvalidTransaction):
            act()
    transaction = begun()
    with pytest.raises(InvalidTransaction):
        transaction.begin()
