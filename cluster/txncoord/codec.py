"""Records of `__transaction_state` to keys and values, and back.

A key is one byte for its kind, then the transactional id; a record without a value is a tombstone.
What this version does not know is refused, never skipped: a coordinator that skipped it would
decide from another state than the one that was written.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError
from suiro._proto import txn_records_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.model.errors import CorruptBatch, UnsupportedVersion
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity, TopicPartition

from cluster.txncoord.records import TxnChanged, TxnForgotten, TxnRecord
from cluster.txncoord.txn import NOBODY, Ended, EndedBy, Token, Txn, TxnState, Writer

_TXN_KEY: Final = b"\x01"


def encode(record: TxnRecord) -> tuple[bytes, bytes | None]:
    """The key and value of a record; equal records give equal bytes."""
    if isinstance(record, TxnForgotten):
        return _TXN_KEY + record.transactional_id.encode(), None
    key = _TXN_KEY + record.txn.transactional_id.encode()
    return key, _value(record.txn).SerializeToString(deterministic=True)


def decode(key: bytes, value: bytes | None) -> TxnRecord:
    """The inverse of `encode`; raises UnsupportedVersion for what a later version has written."""
    if key[:1] != _TXN_KEY:
        raise UnsupportedVersion("a transaction record of a kind that this version does not know")
    try:
        transactional_id = key[1:].decode()
        if value is None:
            return TxnForgotten(transactional_id)
        message = pb.TxnValue.FromString(value)
    except (UnicodeDecodeError, DecodeError):
        raise CorruptBatch("a key or value that is not a transaction record") from None
    try:
        return TxnChanged(_txn(transactional_id, message))
    except ValueError as error:
        raise UnsupportedVersion(f"{transactional_id!r}: {error}") from None


def _value(txn: Txn) -> pb.TxnValue:
    ended, token = txn.ended, txn.token
    return pb.TxnValue(
        state=txn.state.value,
        changed_ms=txn.changed_ms,
        timeout_ms=txn.timeout_ms,
        identity=_identity(txn.identity),
        holder=_identity(txn.holder),
        came_from=_identity(txn.came_from),
        client=txn.client,
        fenced_by=txn.fenced_by,
        fenced_ms=txn.fenced_ms,
        opened_ms=txn.opened_ms,
        renewed_ms=txn.renewed_ms,
        writers=[_writer(writer) for writer in txn.writers],
        ended=None if ended is None else _ended(ended),
        token=None
        if token is None
        else pb.TxnToken(sequence=token.sequence, attempt=token.attempt),
        committed_sequence=txn.committed_sequence,
        over=txn.over,
    )


def _txn(transactional_id: str, message: pb.TxnValue) -> Txn:
    token = message.token
    return Txn(
        transactional_id=transactional_id,
        state=TxnState(message.state),
        changed_ms=message.changed_ms,
        timeout_ms=message.timeout_ms,
        identity=_read_identity(message, "identity"),
        holder=_read_identity(message, "holder"),
        came_from=_read_identity(message, "came_from"),
        client=message.client,
        fenced_by=message.fenced_by,
        fenced_ms=message.fenced_ms,
        opened_ms=message.opened_ms,
        renewed_ms=message.renewed_ms,
        writers=tuple(_read_writer(writer) for writer in message.writers),
        ended=_read_ended(message.ended) if message.HasField("ended") else None,
        token=Token(token.sequence, token.attempt) if message.HasField("token") else None,
        committed_sequence=message.committed_sequence,
        over=tuple(message.over),
    )


def _identity(identity: ProducerIdentity) -> pb.TxnIdentity | None:
    if identity == NOBODY:
        return None
    return pb.TxnIdentity(producer_id=identity.producer_id, producer_epoch=identity.producer_epoch)


def _read_identity(message: Any, name: str) -> ProducerIdentity:
    if not message.HasField(name):
        return NOBODY
    found = getattr(message, name)
    return ProducerIdentity(ProducerId(found.producer_id), ProducerEpoch(found.producer_epoch))


def _writer(writer: Writer) -> pb.TxnWriter:
    return pb.TxnWriter(
        identity=_identity(writer.identity),
        partitions=[WirePartition(topic=p.topic, partition=p.partition) for p in writer.partitions],
        groups=writer.groups,
        name=writer.name,
        prepared=writer.prepared,
        commits=writer.commits,
    )


def _read_writer(message: pb.TxnWriter) -> Writer:
    return Writer(
        identity=_read_identity(message, "identity"),
        partitions=tuple(TopicPartition(p.topic, p.partition) for p in message.partitions),
        groups=tuple(message.groups),
        name=message.name,
        prepared=message.prepared,
        commits=message.commits,
    )


def _ended(ended: Ended) -> pb.TxnEnded:
    return pb.TxnEnded(
        identity=_identity(ended.identity),
        successor=_identity(ended.successor),
        commit=ended.commit,
        by=ended.by,
        who=ended.who,
        at_ms=ended.at_ms,
    )


def _read_ended(message: pb.TxnEnded) -> Ended:
    return Ended(
        identity=_read_identity(message, "identity"),
        successor=_read_identity(message, "successor"),
        commit=message.commit,
        by=EndedBy(message.by),
        who=message.who,
        at_ms=message.at_ms,
    )
