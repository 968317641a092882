"""Where a transaction writes: partitions and groups are registered before the first append.

A place that is registered gets a marker, whatever happens; a place that is not can hold nothing of
the transaction, because its broker asks here before it opens one (`verify`). So no partition can
hold an open transaction that its coordinator does not know of (T6).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from suiro.model.errors import ConcurrentTransaction, InvalidRequest, InvalidTransaction

from cluster.host.machine import Decision
from cluster.txncoord.table import moved, refusal
from cluster.txncoord.txn import DECIDED, TxnState, Writer

if TYPE_CHECKING:
    from suiro.model.ids import ProducerIdentity

    from cluster.txncoord.requests import Places
    from cluster.txncoord.table import TxnTable
    from cluster.txncoord.txn import Txn


def add(
    table: TxnTable, transactional_id: str, identity: ProducerIdentity, places: Places, now_ms: int
) -> Decision[None]:
    """These join the transaction; the first ones open it."""
    txn = table.known(transactional_id)
    writer = _shared_writer(txn, identity) if txn.is_shared else _plain_writer(txn, identity)
    grown = replace(
        writer,
        partitions=tuple(sorted({*writer.partitions, *places.partitions})),
        groups=tuple(sorted({*writer.groups, *places.groups})),
    )
    if grown == writer:
        return Decision((), None)
    count = len(grown.partitions) + len(grown.groups)
    if count > table.limits.places_max:
        raise InvalidRequest(f"a transaction over {count} partitions and groups")
    opened = txn.opened_ms if txn.state is TxnState.ONGOING else now_ms
    renewed = now_ms if txn.is_shared else opened
    known = txn.writer(identity) is not None
    writers = tuple(grown if w.identity == identity else w for w in txn.writers)
    joined = moved(
        txn,
        state=TxnState.ONGOING,
        changed_ms=now_ms,
        opened_ms=opened,
        renewed_ms=renewed,
        writers=writers if known else (*writers, grown),
    )
    return Decision((joined,), None)


def verify(
    table: TxnTable, transactional_id: str, identity: ProducerIdentity, places: Places
) -> Decision[None]:
    """Before a broker or a group coordinator lets the transaction in: is it registered there?"""
    txn = table.known(transactional_id)
    writer = txn.writer(identity)
    if txn.state is not TxnState.ONGOING or writer is None:
        _check_holder(txn, identity)
        raise InvalidTransaction(f"{transactional_id!r} has no open transaction")
    missing = [str(p) for p in places.partitions if p not in writer.partitions]
    missing += [group for group in places.groups if group not in writer.groups]
    if missing:
        raise InvalidTransaction(
            f"{', '.join(missing)} is not in the transaction of {transactional_id!r}"
        )
    return Decision((), None)


def _plain_writer(txn: Txn, identity: ProducerIdentity) -> Writer:
    """The writer of the transaction under way, or of the one that this opens."""
    _check_holder(txn, identity)
    if txn.state in DECIDED:
        raise ConcurrentTransaction(
            f"the last transaction of {txn.transactional_id!r} is being completed"
        )
    return txn.writer(identity) or Writer(identity)


def _shared_writer(txn: Txn, identity: ProducerIdentity) -> Writer:
    writer = txn.writer(identity)
    if txn.state is not TxnState.ONGOING or writer is None:
        raise refusal(txn, identity)
    if writer.prepared:
        raise InvalidTransaction(f"the writer {writer.name!r} has said that it is done")
    return writer


def _check_holder(txn: Txn, identity: ProducerIdentity) -> None:
    if not identity == txn.identity == txn.holder:
        raise refusal(txn, identity)
