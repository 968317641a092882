"""The header: what is checked before a byte of the payload is looked at."""

from __future__ import annotations

import pytest
from suiro.model.batch import (
    HEADER,
    HEADER_BYTES,
    BatchHeader,
    Compression,
    check_crc,
    read_header,
    stamp,
    walk,
)
from suiro.model.columns import BatchOptions, encode_lists
from suiro.model.errors import CorruptBatch
from suiro.model.limits import BATCH_BYTES_MAX, BATCH_RECORDS_MAX

OPTIONS = BatchOptions(producer_id=5, producer_epoch=2, base_sequence=2**31 - 1, transactional=True)
BATCH = bytes(encode_lists(None, [b"a", b"b", b"c"], timestamps_ms=[3, 1, 2], options=OPTIONS))


def test_fields_are_where_kafka_has_them() -> None:
    header = read_header(BATCH)
    assert header.size == len(BATCH)
    assert (header.base_offset, header.last_offset, header.end) == (0, 2, 3)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1, 3)
    assert header.last_sequence == 1, "sequences wrap"
    assert header.compression is Compression.NONE
    assert header.is_transactional
    assert not header.is_control
    assert header.has_producer
    assert BATCH[16] == 2
    assert BATCH[43:53] == b"\0\0\0\0\0\0\0\5\0\2"


def test_a_stamp_leaves_the_crc_alone() -> None:
    header = read_header(BATCH)
    stamped = stamp(header, base_offset=77, leader_epoch=4) + BATCH[16:]
    found = read_header(stamped)
    assert (found.base_offset, found.end, found.leader_epoch) == (77, 80, 4)
    check_crc(stamped, found)


def test_walk_visits_every_batch() -> None:
    run = BATCH * 3
    assert [position for position, _ in walk(run)] == [0, len(BATCH), 2 * len(BATCH)]
    with pytest.raises(CorruptBatch, match="only"):
        list(walk(run[:-1]))
    with pytest.raises(CorruptBatch, match="cannot hold"):
        list(walk(run + bytes(HEADER_BYTES - 1)))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("magic", 1, "magic"),
        ("length", BATCH_BYTES_MAX, "outside"),
        ("length", HEADER_BYTES - 13, "outside"),
        ("length", -1, "outside"),
        ("last_offset_delta", -1, "last offset delta"),
        ("last_offset_delta", BATCH_RECORDS_MAX, "last offset delta"),
        ("base_offset", -1, "base offset"),
        ("base_offset", 2**63 - 1, "base offset"),
        ("record_count", 4, "4 records"),
        ("record_count", -1, "-1 records"),
        ("attributes", 0x4005, "attributes"),
        ("attributes", 0x4040, "attributes"),
        ("attributes", -1, "attributes"),
    ],
)
def test_an_impossible_field_is_refused(field: str, value: int, message: str) -> None:
    header: BatchHeader = read_header(BATCH)._replace(**{field: value})
    with pytest.raises(CorruptBatch, match=message):
        read_header(HEADER.pack(*header) + BATCH[HEADER_BYTES:])


def test_a_wrong_crc_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="CRC"):
        check_crc(BATCH[:-1] + b"x", read_header(BATCH))
