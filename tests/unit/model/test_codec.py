"""Records and their bytes: nothing is lost, nothing unknown is skipped."""

from __future__ import annotations

import dataclasses
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suiro._proto import records_pb2
from suiro.model.codec import decode, encode
from suiro.model.errors import CorruptBatch, UnsupportedVersion
from suiro.model.ids import NO_LEADER, BrokerEpoch, NodeId, TopicId
from suiro.model.records import (
    ConfigResource,
    ConfigSet,
    MetadataRecord,
    NodeFenced,
    PartitionChanged,
    PartitionState,
    Reassignment,
    Recovery,
)

KINDS: tuple[type, ...] = get_args(MetadataRecord)
SCALARS: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(0, 2**31 - 1),
    float: st.floats(allow_nan=False),
    str: st.text(),
    bytes: st.binary(max_size=20),
    bool: st.booleans(),
    NoneType: st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type may have, within the bounds of the wire."""
    kind = getattr(kind, "__supertype__", kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        fields = {name: values(hint) for name, hint in get_type_hints(kind).items()}
        return st.builds(kind, **fields)
    if get_origin(kind) is tuple:
        return st.lists(values(get_args(kind)[0]), max_size=4).map(tuple)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if NoneType in get_args(kind):
        return st.one_of([values(part) for part in get_args(kind)])
    return SCALARS[kind]


records = st.one_of([values(kind) for kind in KINDS])


@given(record=records)
def test_what_goes_in_comes_out(record: Any) -> None:
    data = encode(record)
    assert decode(data) == record
    assert encode(decode(data)) == data


@given(record=records)
def test_the_envelope_is_the_one_that_protobuf_writes(record: Any) -> None:
    data = encode(record)
    envelope = records_pb2.MetadataRecord.FromString(data)
    assert envelope.SerializeToString(deterministic=True) == data


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_records_are_frozen(kind: type) -> None:
    parameters = getattr(kind, "__dataclass_params__")  # noqa: B009 - not in the type
    assert dataclasses.is_dataclass(kind)
    assert parameters.frozen
    assert "__slots__" in vars(kind)


def test_bytes_on_disk_do_not_change() -> None:
    state = PartitionState(
        TopicId(bytes(range(16))),
        300,
        (NodeId(1), NodeId(2), NodeId(3)),
        (NodeId(2),),
        NO_LEADER,
        reassignment=Reassignment((NodeId(3),), ()),
        recovery=Recovery.LAST_STANDING,
        offline=(NodeId(2),),
    )
    assert encode(PartitionChanged(state)).hex() == (
        "6a320a10000102030405060708090a0b0c0d0e0f10ac021a0301020322010228ffffffffffffffffff01"
        "400152030a01035a0102"
    )
    unset = ConfigSet(ConfigResource.CLUSTER, "", "retention.ms", None)
    assert encode(unset).hex() == "a2011008021a0c726574656e74696f6e2e6d73"
    assert decode(encode(unset)) != dataclasses.replace(unset, value="")


def test_a_kind_from_the_future_is_refused() -> None:
    future = bytes((0xD2, 0x0F, 2, 8, 1))  # field 250, a message
    with pytest.raises(UnsupportedVersion, match="kind that this version does not know"):
        decode(future)
    with pytest.raises(UnsupportedVersion):
        decode(b"")


def test_a_value_from_the_future_is_refused() -> None:
    message = records_pb2.MetadataRecord(
        partition_changed=records_pb2.PartitionState(recovery=99, replicas=[1])
    )
    with pytest.raises(UnsupportedVersion, match="partition_changed: 99 is not known"):
        decode(message.SerializeToString())


@given(data=st.binary(max_size=40))
def test_garbage_is_refused_with_a_type(data: bytes) -> None:
    try:
        record = decode(data)
    except (CorruptBatch, UnsupportedVersion):
        return
    assert type(record) in KINDS


def test_torn_bytes_are_corrupt() -> None:
    data = encode(NodeFenced(NodeId(1), BrokerEpoch(2)))
    with pytest.raises(CorruptBatch):
        decode(data[:-1])
