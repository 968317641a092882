"""What the transaction machine holds, and the few moves that all of its rules are made of.

The rules, by subject, are in the modules beside this one: they read a `TxnTable` and return
decisions. Only the machine's `apply` changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from suiro.model.errors import (
    InvalidTransaction,
    ProducerFenced,
    TransactionAborted,
    TransactionTimedOut,
)
from suiro.model.ids import ProducerEpoch, ProducerIdentity

from cluster.txncoord.moment import at_time
from cluster.txncoord.producer_ids import ProducerIds
from cluster.txncoord.records import TxnChanged
from cluster.txncoord.requests import Places, SendMarkers, WriterMarkers
from cluster.txncoord.txn import (
    DECIDED,
    LEGAL,
    NO_TIME_MS,
    NOBODY,
    Ended,
    EndedBy,
    Txn,
    TxnState,
    Writer,
    after,
)

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError

PRODUCER_EPOCH_MAX: Final = (1 << 15) - 1
"""An epoch has 16 bits in a batch's header."""


@dataclass(frozen=True, slots=True)
class TxnLimits:
    """The bounds of one coordinator; tests use a tiny epoch space."""

    epoch_max: int = PRODUCER_EPOCH_MAX
    """The last epoch that exists; only markers carry it."""
    timeout_ms_max: int = 15 * 60 * 1000
    shared_timeout_ms_max: int = 24 * 3600 * 1000
    """A micro-batch may take long; a newer attempt ends it at once, so this is only for the dead.
    """
    places_max: int = 10_000
    writers_max: int = 10_000
    attempts_remembered: int = 16
    id_retention_ms: int = 7 * 24 * 3600 * 1000
    token_retention_ms: int = 90 * 24 * 3600 * 1000
    """A query that comes back after longer than this may write a batch twice."""


@dataclass(slots=True)
class TxnTable:
    """The transactional ids of one shard."""

    limits: TxnLimits = field(default_factory=TxnLimits)
    ids: ProducerIds = field(default_factory=ProducerIds)
    txns: dict[str, Txn] = field(default_factory=dict)

    def known(self, transactional_id: str) -> Txn:
        """Raises InvalidTransaction where nobody has taken the id."""
        txn = self.txns.get(transactional_id)
        if txn is None:
            raise InvalidTransaction(f"nobody has taken the transactional id {transactional_id!r}")
        return txn

    def next_identity(self, identity: ProducerIdentity) -> ProducerIdentity:
        """Above all that was used. Of a new producer id when an epoch is no longer enough for the
        transaction and for the marker that ends it.
        """
        if identity.producer_epoch + 2 <= self.limits.epoch_max and identity != NOBODY:
            return after(identity)
        return self.first_identity()

    def first_identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.ids.peek(), ProducerEpoch(0))


def moved(old: Txn, **changes: Any) -> TxnChanged:
    """The record of one step, which the table of transitions allows."""
    new = replace(old, **changes)
    assert new.state in LEGAL[old.state], (old.state, new.state)
    return TxnChanged(new)


def born(txn: Txn) -> TxnChanged:
    """The record of an id that was not known."""
    assert txn.state in LEGAL[TxnState.DEAD]
    return TxnChanged(txn)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a transaction is to end, and who wants it."""

    by: EndedBy
    who: str
    now_ms: int
    commit: bool = False
    counted: tuple[int, ...] = ()
    """Shared only: the producer ids that commit."""


def ended(table: TxnTable, txn: Txn, how: Ending, **changes: Any) -> TxnChanged:
    """The decision: the one record after which a transaction has its outcome.

    The producer goes on at the epoch of its markers if it asked; if it did not, it keeps nothing
    that counts, and has to come back with what it had.
    """
    asked = how.by is EndedBy.CLIENT
    writers = _decided(txn, how)
    successor, holder = NOBODY, txn.holder
    identity = txn.identity if txn.is_shared else after(txn.identity)
    if asked and not txn.is_shared:
        identity = successor = holder = table.next_identity(txn.identity)
    elif how.by is EndedBy.FENCED:
        holder = NOBODY
    return moved(
        txn,
        state=_state_after(how.commit, is_complete=all(w.is_settled for w in writers)),
        changed_ms=how.now_ms,
        identity=identity,
        holder=holder,
        came_from=NOBODY,
        opened_ms=NO_TIME_MS,
        writers=() if all(w.is_settled for w in writers) else writers,
        ended=Ended(
            identity=txn.identity,
            successor=successor,
            commit=how.commit,
            by=how.by,
            who=how.who,
            at_ms=how.now_ms,
        ),
        **changes,
    )


def _decided(txn: Txn, how: Ending) -> tuple[Writer, ...]:
    """The writers with their outcome. Those that have written nowhere need no marker."""
    return tuple(
        replace(
            writer,
            commits=how.commit
            and (not txn.is_shared or writer.identity.producer_id in how.counted),
        )
        for writer in txn.writers
        if not writer.is_settled
    )


def _state_after(commit: bool, *, is_complete: bool) -> TxnState:
    if is_complete:
        return TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT
    return TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT


def markers_of(txn: Txn) -> tuple[SendMarkers, ...]:
    """The effect of a decision: what is owed, if anything is."""
    if txn.state not in DECIDED:
        return ()
    owed = tuple(
        WriterMarkers(w.identity, w.commits, Places(w.partitions, w.groups)) for w in txn.writers
    )
    return (SendMarkers(txn.transactional_id, owed),)


def refusal(txn: Txn, identity: ProducerIdentity) -> SuiroError:
    """Why this identity may not act: what became of it, by whom and when."""
    name = _named(identity)
    last = txn.ended
    if txn.is_shared:
        why = "" if last is None else f": {last.who} {at_time(last.at_ms)}"
        return TransactionAborted(f"{name}: that shared transaction is over{why}")
    if last is not None and last.identity == identity and last.by is not EndedBy.FENCED:
        match last.by:
            case EndedBy.TIMEOUT:
                return TransactionTimedOut(f"{name}: aborted {at_time(last.at_ms)}: {last.who}")
            case EndedBy.OPERATOR | EndedBy.RESTARTED:
                return TransactionAborted(f"{name}: aborted {at_time(last.at_ms)} by {last.who}")
            case EndedBy.CLIENT:
                return InvalidTransaction(f"{name}: that transaction ended {at_time(last.at_ms)}")
    hints: dict[str, str | int] = {}
    text = f"{name}: the id {txn.transactional_id!r} is at {_named(txn.identity)}"
    if txn.fenced_by:
        text += f"; {txn.fenced_by} took it {at_time(txn.fenced_ms)}"
        hints = {"fenced_by": txn.fenced_by, "fenced_at_ms": txn.fenced_ms}
    return ProducerFenced(text, **hints)


def _named(identity: ProducerIdentity) -> str:
    return f"producer {identity.producer_id} epoch {identity.producer_epoch}"
