"""Control batches: Kafka's bytes in the record, and nothing else taken for a marker."""

from __future__ import annotations

import pytest
from suiro.model.batch import read_header
from suiro.model.columns import BatchOptions, decode, encode_lists
from suiro.model.control import ControlType, Marker, decode_marker, encode_marker
from suiro.model.errors import CorruptBatch
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity

PRODUCER = ProducerIdentity(ProducerId(42), ProducerEpoch(3))


@pytest.mark.parametrize("kind", list(ControlType))
def test_a_marker_survives(kind: ControlType) -> None:
    batch = encode_marker(Marker(kind, coordinator_epoch=9), PRODUCER, timestamp_ms=5)
    assert decode_marker(batch) == Marker(kind, 9)
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (42, 3, -1)
    columns = decode(batch)
    assert columns.keys_list() == [bytes([0, 0, 0, kind])]
    assert columns.values_list() == [bytes([0, 0, 0, 0, 0, 9])]


@pytest.mark.parametrize(
    ("key", "value", "control"),
    [
        (b"\0\0\0\1", b"\0\0\0\0\0\1", False),
        (b"\0\0\0\2", b"\0\0\0\0\0\1", True),
        (b"\0\0\0", b"\0\0\0\0\0\1", True),
        (b"\0\0\0\1", b"\0", True),
        (None, b"\0\0\0\0\0\1", True),
        (b"\0\0\0\1", None, True),
    ],
)
def test_anything_else_is_refused(key: bytes | None, value: bytes | None, control: bool) -> None:
    batch = encode_lists([key], [value], timestamps_ms=5, options=BatchOptions(control=control))
    with pytest.raises(CorruptBatch):
        decode_marker(batch)


def test_a_later_version_may_add_fields() -> None:
    key, value = b"\0\1\0\0more", b"\0\1\0\0\0\7more"
    batch = encode_lists([key], [value], timestamps_ms=5, options=BatchOptions(control=True))
    assert decode_marker(batch) == Marker(ControlType.ABORT, 7)


def test_a_marker_that_was_damaged_is_refused() -> None:
    batch = encode_marker(Marker(ControlType.COMMIT, 9), PRODUCER, timestamp_ms=5)
    batch[-7] ^= 1  # the kind
    with pytest.raises(CorruptBatch):
        decode_marker(batch)
    assert decode_marker(batch, verify_crc=False) == Marker(ControlType.ABORT, 9)
