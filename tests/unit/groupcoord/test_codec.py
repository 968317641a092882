"""Records of groups: there and back, keys that are equal when they mean the same."""

from __future__ import annotations

import pytest
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

from cluster.groupcoord.codec import decode, encode
from cluster.groupcoord.records import (
    GroupRecord,
    GroupState,
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

A0, A1, B0 = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0))
OFFSET = OffsetState("g", A1, Offset(5), LeaderEpoch(-1), "note", TopicId(b"x" * 16), 99)
MEMBER = MemberState(
    group="g",
    member_id="m",
    member_epoch=7,
    instance_id="i",
    client_id="c",
    host="h",
    rack="r",
    topics=("a", "b"),
    pattern="x.*",
    assignors=("range", "sticky"),
    session_timeout_ms=1_000,
    rebalance_timeout_ms=2_000,
    subscription_version=3,
    joined_epoch=2,
    owned=(Owned(A0, 3), Owned(A1, 4, 7), Owned(B0, 5)),
)
RECORDS: tuple[GroupRecord, ...] = (
    GroupState("g", 3, 2, 9, "range", ("one", "two"), "m", 1234),
    GroupState("g"),
    MEMBER,
    TargetState("g", "m", (A0, A1, B0)),
    OFFSET,
    OffsetState("g", A0, Offset(0), LeaderEpoch(3)),
    ProducerState("g", ProducerId(8), ProducerEpoch(2), Outcome.PENDING, 5, (OFFSET,)),
    ProducerState("g", ProducerId(0), ProducerEpoch(0), Outcome.ABORTED, 5),
    Rebalance("g", 3, 55, 19, "why", 2, (PartitionMove(A0, "", "m"), PartitionMove(A1, "m", "n"))),
)


def test_there_and_back() -> None:
    for record in RECORDS:
        assert decode(*encode(record)) == record
        tombstone = Removed(record.key)
        key, value = encode(tombstone)
        assert value is None
        assert key == encode(record)[0]
        assert decode(key, None) == tombstone


def test_different_things_have_different_keys() -> None:
    keys = {encode(record)[0] for record in RECORDS}
    assert len(keys) == len({record.key for record in RECORDS}) == 8


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (b"\xff", b"", CorruptBatch),
        (encode(MEMBER)[0], b"\xff", CorruptBatch),
        (pb.GroupRecordKey(kind=77, group="g").SerializeToString(), b"", UnsupportedVersion),
        (encode(MEMBER)[0], b"", UnsupportedVersion),
        (encode(MEMBER)[0], encode(OFFSET)[1], UnsupportedVersion),
    ],
)
def test_what_is_not_known_is_refused(key: bytes, value: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode(key, value)
