"""Shared transactions: many writers, one decision, and a token that is remembered with it.

A name (a Spark query) has one transaction at a time. Its token is (name, sequence); an attempt at a
sequence is a random word that all writers of the attempt know. A new attempt ends the one before
it, and an attempt that was ended cannot come back. The commit names the writers that count: these
commit, all others abort, and the sequence is remembered, in the record of the decision. After that
the answer for the sequence is *already committed*, to whoever asks for whatever (C4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from suiro.model.errors import (
    InvalidRequest,
    InvalidTransaction,
    StaleBatch,
    TransactionAborted,
)
from suiro.model.ids import shared_id

from cluster.host.machine import Decision
from cluster.txncoord.end import over_after
from cluster.txncoord.moment import at_time
from cluster.txncoord.requests import ALREADY_COMMITTED, DONE, Completing, Joined, SharedEnd
from cluster.txncoord.table import Ending, born, ended, markers_of, moved, refusal
from cluster.txncoord.txn import DECIDED, EndedBy, Token, Txn, TxnState, Writer

if TYPE_CHECKING:
    from suiro.model.ids import ProducerIdentity

    from cluster.txncoord.requests import EndShared, Open
    from cluster.txncoord.table import TxnTable

Opened = Joined | SharedEnd | Completing


def open_or_join(table: TxnTable, request: Open, now_ms: int) -> Decision[Opened]:
    """The first writer of an attempt opens the transaction, the others join it."""
    _check(table, request)
    txn = table.txns.get(shared_id(request.name))
    if txn is not None and is_committed(txn, request.sequence):
        return Decision((), ALREADY_COMMITTED)
    if txn is not None:
        _check_attempt(txn, request.attempt)
    token = Token(request.sequence, request.attempt)
    if txn is not None and txn.state is TxnState.ONGOING and txn.token == token:
        return _join(table, txn, request, now_ms)
    if txn is not None and txn.state is TxnState.ONGOING:
        how = Ending(EndedBy.FENCED, f"attempt {request.attempt!r}", now_ms)
        record = ended(
            table, txn, how,
            over=over_after(table, txn), fenced_by=how.who, fenced_ms=now_ms,
        )  # fmt: skip
        return Decision((record,), Completing(), markers_of(record.txn))
    if txn is not None and txn.state in DECIDED:
        return Decision((), Completing())
    return _open(table, txn, request, now_ms)


def prepare(
    table: TxnTable, transactional_id: str, identity: ProducerIdentity, now_ms: int
) -> Decision[None]:
    """This writer has written all it will: only such a one can count."""
    txn = table.known(transactional_id)
    writer = txn.writer(identity)
    if not txn.is_shared:
        raise InvalidTransaction(f"{transactional_id!r} is no shared transaction")
    if txn.state is not TxnState.ONGOING or writer is None:
        raise refusal(txn, identity)
    if writer.prepared:
        return Decision((), None)
    writers = tuple(replace(w, prepared=True) if w is writer else w for w in txn.writers)
    return Decision((moved(txn, writers=writers, changed_ms=now_ms, renewed_ms=now_ms),), None)


def end(table: TxnTable, request: EndShared, now_ms: int) -> Decision[SharedEnd]:
    """The decision. An abort never undoes a commit, and an abort of what is over is fine."""
    txn = table.txns.get(shared_id(request.name))
    if txn is not None and is_committed(txn, request.sequence):
        return Decision((), ALREADY_COMMITTED)
    is_open = (
        txn is not None
        and txn.state is TxnState.ONGOING
        and txn.token is not None
        and txn.token.sequence == request.sequence
        and (txn.token.attempt == request.attempt or (not request.attempt and not request.commit))
    )
    if txn is not None and is_open:
        return _decide(table, txn, request, now_ms)
    if not request.commit:
        return Decision((), DONE)
    return _commit_nothing(txn, request, now_ms)


def is_committed(txn: Txn, sequence: int) -> bool:
    """Raises StaleBatch if a later one was: whoever asks has fallen behind its own past."""
    if sequence < txn.committed_sequence:
        raise StaleBatch(
            f"batch {sequence} comes after batch {txn.committed_sequence} was committed",
            committed=txn.committed_sequence,
        )
    return sequence == txn.committed_sequence


def _check(table: TxnTable, request: Open) -> None:
    if not (request.name and request.attempt and request.writer) or request.sequence < 0:
        raise InvalidRequest("a shared transaction needs a name, a sequence, attempt and writer")
    if not 0 < request.timeout_ms <= table.limits.shared_timeout_ms_max:
        raise InvalidRequest(
            f"a timeout of {request.timeout_ms} ms; "
            f"1 to {table.limits.shared_timeout_ms_max} are allowed"
        )


def _check_attempt(txn: Txn, attempt: str) -> None:
    if attempt in txn.over:
        raise TransactionAborted(
            f"attempt {attempt!r} of {txn.transactional_id!r} is over{_why(txn)}"
        )


def _why(txn: Txn) -> str:
    return "" if txn.ended is None else f": {txn.ended.who} {at_time(txn.ended.at_ms)}"


def _open(table: TxnTable, txn: Txn | None, request: Open, now_ms: int) -> Decision[Opened]:
    writer = Writer(table.first_identity(), name=request.writer)
    opened = Txn(
        transactional_id=shared_id(request.name),
        state=TxnState.ONGOING,
        changed_ms=now_ms,
        timeout_ms=request.timeout_ms,
        opened_ms=now_ms,
        renewed_ms=now_ms,
        writers=(writer,),
        token=Token(request.sequence, request.attempt),
        client=request.client,
    )
    if txn is None:
        record = born(opened)
    else:
        record = moved(
            txn,
            state=opened.state,
            changed_ms=now_ms,
            timeout_ms=opened.timeout_ms,
            opened_ms=now_ms,
            renewed_ms=now_ms,
            writers=opened.writers,
            token=opened.token,
            client=opened.client,
        )
    return Decision((record,), Joined(opened.transactional_id, writer.identity))


def _join(table: TxnTable, txn: Txn, request: Open, now_ms: int) -> Decision[Opened]:
    known = next((w for w in txn.writers if w.name == request.writer), None)
    if known is not None:
        return Decision((), Joined(txn.transactional_id, known.identity))
    if len(txn.writers) >= table.limits.writers_max:
        raise InvalidRequest(f"a shared transaction of more than {len(txn.writers)} writers")
    writer = Writer(table.first_identity(), name=request.writer)
    record = moved(txn, writers=(*txn.writers, writer), changed_ms=now_ms, renewed_ms=now_ms)
    return Decision((record,), Joined(txn.transactional_id, writer.identity))


def _decide(table: TxnTable, txn: Txn, request: EndShared, now_ms: int) -> Decision[SharedEnd]:
    if not request.commit:
        how = Ending(EndedBy.CLIENT, "its own abort", now_ms)
        record = ended(table, txn, how, over=over_after(table, txn))
        return Decision((record,), DONE, markers_of(record.txn))
    prepared = {w.identity.producer_id for w in txn.writers if w.prepared}
    missing = [number for number in request.producer_ids if number not in prepared]
    if missing:
        raise InvalidTransaction(f"the writers {missing} are not there or have not said: done")
    how = Ending(EndedBy.CLIENT, "its own commit", now_ms, True, request.producer_ids)
    record = ended(table, txn, how, committed_sequence=request.sequence)
    return Decision((record,), DONE, markers_of(record.txn))


def _commit_nothing(txn: Txn | None, request: EndShared, now_ms: int) -> Decision[SharedEnd]:
    """A batch that nobody wrote for is remembered too; one whose writers are gone is refused."""
    name = shared_id(request.name)
    if txn is not None:
        _check_attempt(txn, request.attempt)
    if request.producer_ids or (txn is not None and txn.state is TxnState.ONGOING):
        raise TransactionAborted(f"attempt {request.attempt!r} of {name!r} is not open")
    if txn is not None and txn.state in DECIDED:
        raise TransactionAborted(f"{name!r} is being completed; open the batch again")
    token = Token(request.sequence, request.attempt)
    if txn is None:
        nothing = Txn(name, TxnState.COMPLETE_COMMIT, now_ms)
        record = born(replace(nothing, token=token, committed_sequence=request.sequence))
    else:
        record = moved(
            txn,
            state=TxnState.COMPLETE_COMMIT,
            changed_ms=now_ms,
            token=token,
            committed_sequence=request.sequence,
        )
    return Decision((record,), DONE)
