"""Records of groups to keys and values and back; equal keys give equal bytes, as compaction needs.

A kind of record that this version does not know is refused, never skipped: a coordinator that
skipped it would hold another state than the one that wrote it.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, assert_never

from google.protobuf.message import DecodeError
from suiro._proto import group_records_pb2 as pb
from suiro.model.errors import CorruptBatch, UnsupportedVersion
from suiro.model.ids import (
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)

from cluster.groupcoord.records import (
    GroupState,
    Key,
    Kind,
    MemberState,
    OffsetState,
    Outcome,
    Owned,
    PartitionMove,
    ProducerState,
    Rebalance,
    Removed,
    TargetState,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cluster.groupcoord.records import GroupRecord, State


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value of a record in the topic; no value is a tombstone."""
    if isinstance(record, Removed):
        return encode_key(record.key), None
    return encode_key(record.key), _value(record).SerializeToString(deterministic=True)


def decode(key: bytes, value: bytes | None) -> GroupRecord:
    """The record; raises UnsupportedVersion for what a later version has written."""
    named = decode_key(key)
    if value is None:
        return Removed(named)
    try:
        envelope = pb.GroupRecordValue.FromString(value)
    except DecodeError:
        raise CorruptBatch(f"{len(value)} bytes are not the value of a group record") from None
    field = envelope.WhichOneof("value")
    if field != _FIELDS[named.kind]:
        raise UnsupportedVersion(f"a value of kind {field} under a key of kind {named.kind.name}")
    return _state(named, getattr(envelope, field))


def encode_key(key: Key) -> bytes:
    partition = key.partition
    return pb.GroupRecordKey(
        kind=key.kind,
        group=key.group,
        member_id=key.member_id,
        topic=partition.topic if partition else "",
        partition=partition.partition if partition else 0,
        number=key.number,
    ).SerializeToString(deterministic=True)


def decode_key(data: bytes) -> Key:
    try:
        key = pb.GroupRecordKey.FromString(data)
    except DecodeError:
        raise CorruptBatch(f"{len(data)} bytes are not the key of a group record") from None
    try:
        kind = Kind(key.kind)
    except ValueError:
        raise UnsupportedVersion(f"group records of kind {key.kind} are not known here") from None
    partition = TopicPartition(key.topic, key.partition) if kind is Kind.OFFSET else None
    return Key(kind, key.group, key.member_id, partition, key.number)


# -- there ----------------------------------------------------------------------------------------


def _value(record: State) -> pb.GroupRecordValue:
    match record:
        case GroupState():
            return pb.GroupRecordValue(group=_group_value(record))
        case MemberState():
            return pb.GroupRecordValue(member=_member_value(record))
        case TargetState():
            parts = [
                pb.PartitionsValue(topic=topic, partitions=[p.partition for p in partitions])
                for topic, partitions in groupby(sorted(record.partitions), lambda p: p.topic)
            ]
            return pb.GroupRecordValue(target=pb.TargetStateValue(partitions=parts))
        case OffsetState():
            return pb.GroupRecordValue(offset=_offset_value(record))
        case ProducerState():
            return pb.GroupRecordValue(producer=_producer_value(record))
        case Rebalance():
            return pb.GroupRecordValue(rebalance=_rebalance_value(record))
        case _:
            assert_never(record)


def _group_value(state: GroupState) -> pb.GroupStateValue:
    return pb.GroupStateValue(
        epoch=state.epoch,
        target_epoch=state.target_epoch,
        given_epoch=state.given_epoch,
        assignor=state.assignor,
        reasons=state.reasons,
        asked=state.asked,
        empty_since_ms=state.empty_since_ms,
    )


def _member_value(member: MemberState) -> pb.MemberStateValue:
    return pb.MemberStateValue(
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.host,
        rack=member.rack,
        topics=member.topics,
        pattern=member.pattern,
        assignors=member.assignors,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscription_version=member.subscription_version,
        joined_epoch=member.joined_epoch,
        owned=[
            _owned_value(topic, list(owned))
            for topic, owned in groupby(member.owned, lambda o: o.partition.topic)
        ],
    )


def _owned_value(topic: str, owned: list[Owned]) -> pb.OwnedValue:
    return pb.OwnedValue(
        topic=topic,
        partitions=[o.partition.partition for o in owned],
        granted_epochs=[o.granted_epoch for o in owned],
        revoked_epochs=[o.revoked_epoch for o in owned],
    )


def _offset_value(offset: OffsetState) -> pb.OffsetStateValue:
    return pb.OffsetStateValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        topic_id=offset.topic_id,
        committed_at_ms=offset.committed_at_ms,
    )


def _producer_value(producer: ProducerState) -> pb.ProducerStateValue:
    return pb.ProducerStateValue(
        producer_epoch=producer.producer_epoch,
        outcome=producer.outcome,
        at_ms=producer.at_ms,
        offsets=[
            pb.PendingOffsetValue(
                topic=offset.partition.topic,
                partition=offset.partition.partition,
                offset=_offset_value(offset),
            )
            for offset in producer.offsets
        ],
    )


def _rebalance_value(rebalance: Rebalance) -> pb.RebalanceValue:
    return pb.RebalanceValue(
        at_ms=rebalance.at_ms,
        epoch=rebalance.epoch,
        reason=rebalance.reason,
        moved=rebalance.moved,
        moves=[
            pb.MoveValue(
                topic=move.partition.topic,
                partition=move.partition.partition,
                source=move.source,
                destination=move.destination,
            )
            for move in rebalance.moves
        ],
    )


# -- and back -------------------------------------------------------------------------------------


def _state(key: Key, value: Any) -> State:
    match key.kind:
        case Kind.GROUP:
            return _group(key, value)
        case Kind.MEMBER:
            return _member(key, value)
        case Kind.TARGET:
            return TargetState(key.group, key.member_id, tuple(_partitions(value.partitions)))
        case Kind.OFFSET:
            assert key.partition is not None
            return _offset(key.group, key.partition, value)
        case Kind.PRODUCER:
            return _producer(key, value)
        case Kind.HISTORY:
            return _rebalance(key, value)
        case _:
            assert_never(key.kind)


def _group(key: Key, value: pb.GroupStateValue) -> GroupState:
    return GroupState(
        key.group,
        value.epoch,
        value.target_epoch,
        value.given_epoch,
        value.assignor,
        tuple(value.reasons),
        value.asked,
        value.empty_since_ms,
    )


def _member(key: Key, value: pb.MemberStateValue) -> MemberState:
    return MemberState(
        group=key.group,
        member_id=key.member_id,
        member_epoch=value.member_epoch,
        instance_id=value.instance_id,
        client_id=value.client_id,
        host=value.host,
        rack=value.rack,
        topics=tuple(value.topics),
        pattern=value.pattern,
        assignors=tuple(value.assignors),
        session_timeout_ms=value.session_timeout_ms,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        subscription_version=value.subscription_version,
        joined_epoch=value.joined_epoch,
        owned=tuple(
            Owned(TopicPartition(part.topic, partition), granted, revoked)
            for part in value.owned
            for partition, granted, revoked in zip(
                part.partitions, part.granted_epochs, part.revoked_epochs, strict=True
            )
        ),
    )


def _partitions(parts: Iterable[pb.PartitionsValue]) -> Iterable[TopicPartition]:
    return (TopicPartition(part.topic, number) for part in parts for number in part.partitions)


def _offset(group: str, partition: TopicPartition, value: pb.OffsetStateValue) -> OffsetState:
    return OffsetState(
        group,
        partition,
        Offset(value.offset),
        LeaderEpoch(value.leader_epoch),
        value.metadata,
        TopicId(value.topic_id),
        value.committed_at_ms,
    )


def _producer(key: Key, value: pb.ProducerStateValue) -> ProducerState:
    return ProducerState(
        key.group,
        ProducerId(key.number),
        ProducerEpoch(value.producer_epoch),
        Outcome(value.outcome),
        value.at_ms,
        tuple(
            _offset(key.group, TopicPartition(o.topic, o.partition), o.offset)
            for o in value.offsets
        ),
    )


def _rebalance(key: Key, value: pb.RebalanceValue) -> Rebalance:
    moves = tuple(
        PartitionMove(TopicPartition(m.topic, m.partition), m.source, m.destination)
        for m in value.moves
    )
    return Rebalance(
        key.group, key.number, value.at_ms, value.epoch, value.reason, value.moved, moves
    )


_FIELDS = {
    Kind.GROUP: "group",
    Kind.MEMBER: "member",
    Kind.TARGET: "target",
    Kind.OFFSET: "offset",
    Kind.PRODUCER: "producer",
    Kind.HISTORY: "rebalance",
}
assert _FIELDS.keys() == set(Kind)
