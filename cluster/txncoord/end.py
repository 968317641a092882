"""The end of a transaction: the decision, its markers, and the word that all have them.

The decision is one record, and no marker leaves before it is committed. It cannot be changed: only
the places that still owe an answer become fewer, until none is left. The same question later has
the same answer; a question about another transaction decides nothing (row 18).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from suiro.model.errors import ConcurrentTransaction, InvalidTransaction

from cluster.host.machine import Decision
from cluster.txncoord.moment import at_time
from cluster.txncoord.table import Ending, ended, markers_of, moved, refusal
from cluster.txncoord.txn import DECIDED, EndedBy, TxnState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import ProducerIdentity

    from cluster.txncoord.requests import Marked
    from cluster.txncoord.table import TxnTable
    from cluster.txncoord.txn import Txn, Writer


def end(
    table: TxnTable, transactional_id: str, identity: ProducerIdentity, commit: bool, now_ms: int
) -> Decision[ProducerIdentity]:
    """Commit or abort; replies what the producer goes on with.

    A transaction that wrote nowhere ends as well: its epoch is over, so that nothing late can open
    it under the name of the next one.
    """
    txn = table.known(transactional_id)
    if identity == txn.identity == txn.holder:
        if txn.state in DECIDED:
            raise ConcurrentTransaction(f"the last one of {transactional_id!r} is being completed")
        how = Ending(EndedBy.CLIENT, txn.client, now_ms, commit)
        record = ended(table, txn, how)
        return Decision((record,), record.txn.holder, markers_of(record.txn))
    last = txn.ended
    if last is None or last.identity != identity or last.by is not EndedBy.CLIENT:
        raise refusal(txn, identity)
    if last.commit != commit:
        outcome = "committed" if last.commit else "aborted"
        raise InvalidTransaction(f"the transaction was {outcome} {at_time(last.at_ms)}")
    return Decision((), last.successor)


def abort(table: TxnTable, transactional_id: str, who: str, now_ms: int) -> Decision[None]:
    """An operator ends what is open; a decision to commit stays."""
    txn = table.known(transactional_id)
    if txn.state is TxnState.PREPARE_COMMIT:
        raise InvalidTransaction(f"{transactional_id!r} is committed and being completed")
    if txn.state is not TxnState.ONGOING:
        return Decision((), None)
    record = ended(table, txn, Ending(EndedBy.OPERATOR, who, now_ms), over=over_after(table, txn))
    return Decision((record,), None, markers_of(record.txn))


def over_after(table: TxnTable, txn: Txn) -> tuple[str, ...]:
    """The attempts that may not come back once the open one of a shared transaction is aborted."""
    if txn.token is None:
        return txn.over
    return (*txn.over, txn.token.attempt)[-table.limits.attempts_remembered :]


def marked(
    table: TxnTable, transactional_id: str, answers: Sequence[Marked], now_ms: int
) -> Decision[bool]:
    """Places have answered; replies whether the transaction is complete. Late answers, which are
    about the markers of an earlier transaction, change nothing.
    """
    txn = table.txns.get(transactional_id)
    if txn is None or txn.state not in DECIDED:
        return Decision((), True)
    writers = tuple(_without(writer, answers) for writer in txn.writers)
    if writers == txn.writers:
        return Decision((), False)
    left = tuple(writer for writer in writers if not writer.is_settled)
    if left:
        return Decision((moved(txn, writers=left, changed_ms=now_ms),), False)
    is_commit = txn.state is TxnState.PREPARE_COMMIT
    state = TxnState.COMPLETE_COMMIT if is_commit else TxnState.COMPLETE_ABORT
    return Decision((moved(txn, state=state, writers=(), changed_ms=now_ms),), True)


def _without(writer: Writer, answers: Sequence[Marked]) -> Writer:
    for answer in answers:
        if answer.marker == writer.marker:
            gone = answer.places
            writer = replace(
                writer,
                partitions=tuple(p for p in writer.partitions if p not in gone.partitions),
                groups=tuple(g for g in writer.groups if g not in gone.groups),
            )
    return writer
