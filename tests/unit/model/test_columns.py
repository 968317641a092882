"""The codec against its slow twin, and what it must refuse."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suiro.model.batch import CRC_END, TIMESTAMP_TYPE_BIT, Compression, read_header, seal
from suiro.model.columns import BatchOptions, decode, encode_lists, read_keys
from suiro.model.errors import BatchTooLarge, CorruptBatch, InvalidRequest
from suiro.model.limits import BATCH_BYTES_MAX, BATCH_RECORDS_MAX, HEADERS_PER_RECORD_MAX
from suiro.model.record import Headers, Record

from tests.unit.model import slow_twin
from tests.unit.model.rows import (
    NOW_MS,
    batch_options,
    encode_rows,
    envelope_of,
    row_lists,
    rows_of,
)
from tests.unit.model.slow_twin import Row


@given(row_lists(), batch_options)
@settings(max_examples=200, deadline=None)
def test_bytes_are_the_twins(rows: list[Row], options: BatchOptions) -> None:
    assert encode_rows(rows, options) == slow_twin.encode(rows, envelope_of(options))


@given(row_lists(), batch_options)
@settings(max_examples=120, deadline=None)
def test_values_are_the_twins(rows: list[Row], options: BatchOptions) -> None:
    batch = slow_twin.encode(rows, envelope_of(options))
    columns = decode(batch)
    assert rows_of(columns) == slow_twin.decode(batch)[1] == rows
    assert columns.header.compression is options.compression
    assert columns.offsets().tolist() == list(columns.offsets_list()) == list(range(len(rows)))
    assert columns.timestamps_ms().tolist() == [row.timestamp_ms for row in rows]


@given(row_lists(), batch_options)
@settings(max_examples=100, deadline=None)
def test_read_keys_needs_no_value_section(rows: list[Row], options: BatchOptions) -> None:
    batch = encode_rows(rows, options)
    whole = decode(batch)
    value_start = 80 + int.from_bytes(batch[68:72], "big")
    batch[value_start:] = bytes(len(batch) - value_start)  # whatever was there is gone
    keys = read_keys(batch, verify_crc=False)
    assert keys.keys_list() == [row.key for row in rows]
    assert keys.tombstones().tolist() == [row.value is None for row in rows]
    assert keys.tombstones().tolist() == whole.tombstones().tolist()


@pytest.mark.parametrize("key", [None, b"", b"k", b"k" * 255, b"k" * 256, b"k" * 65_536])
@pytest.mark.parametrize("value", [None, b"", b"v", b"v" * 65_535, b"v" * 65_536])
def test_one_record_is_the_twins(key: bytes | None, value: bytes | None) -> None:
    expected = slow_twin.encode([Row(NOW_MS, key, value)], slow_twin.Envelope())
    assert encode_lists([key], [value], timestamps_ms=NOW_MS) == expected
    assert encode_lists([key], [value], timestamps_ms=[NOW_MS]) == expected
    assert encode_lists([key], [value], timestamps_ms=[NOW_MS], headers=[()]) == expected
    if key is None:
        assert encode_lists(None, [value], timestamps_ms=NOW_MS) == expected


@pytest.mark.parametrize("count", [2, 32, 33, 1000])
def test_timestamps_may_come_in_any_sequence(count: int) -> None:
    times = [NOW_MS + 7 * i for i in range(count)]
    values = [b"v"] * count
    batch = encode_lists(None, values, timestamps_ms=times)
    assert encode_lists(None, values, timestamps_ms=array("q", times)) == batch
    assert encode_lists(None, values, timestamps_ms=np.array(times)) == batch
    assert encode_lists(None, values, timestamps_ms=tuple(times)) == batch
    assert decode(batch).timestamps_list() == times


@pytest.mark.parametrize("compression", list(Compression))
def test_a_batch_of_many_records(compression: Compression) -> None:
    count = 5000
    keys = [None if i % 7 == 0 else b"key-%d" % i for i in range(count)]
    values = [None if i % 11 == 0 else b"value-%d" % i * (i % 50) for i in range(count)]
    headers = [[("h", b"%d" % i)] * (i % 3) for i in range(count)]
    batch = encode_lists(
        keys,
        values,
        timestamps_ms=range(count),
        headers=headers,
        options=BatchOptions(compression=compression),
    )
    columns = decode(batch)
    assert columns.keys_list() == keys
    assert columns.values_list() == values
    assert columns.headers_list() == [tuple(pairs) for pairs in headers]
    assert columns.timestamps_list() == list(range(count))


def test_a_batch_in_the_middle_of_others() -> None:
    first = encode_lists([b"a"], [b"1"], timestamps_ms=1)
    second = encode_lists([b"b", None], [b"2", None], timestamps_ms=[5, 3])
    run = bytes(first + second + first)
    columns = decode(run, len(first))
    assert columns.keys_list() == [b"b", None]
    assert columns.timestamps_list() == [5, 3]
    assert columns.header.base_timestamp_ms == 3
    assert columns.header.max_timestamp_ms == 5


def test_the_broker_may_stamp_without_touching_the_crc() -> None:
    batch = encode_lists(None, [b"v", b"w"], timestamps_ms=NOW_MS)
    batch[0:8] = (1_000).to_bytes(8, "big")
    batch[12:16] = (7).to_bytes(4, "big")
    columns = decode(batch)
    assert columns.offsets().tolist() == [1_000, 1_001]
    assert columns.header.leader_epoch == 7


def test_append_time_replaces_every_timestamp() -> None:
    batch = encode_lists(None, [b"v"] * 3, timestamps_ms=[3, 1, 2])
    batch[21:23] = (read_header(batch).attributes | TIMESTAMP_TYPE_BIT).to_bytes(2, "big")
    batch[35:43] = NOW_MS.to_bytes(8, "big")
    seal(batch)
    assert decode(batch).timestamps_list() == [NOW_MS] * 3
    assert decode(batch).timestamps_ms().tolist() == [NOW_MS] * 3


def test_records_are_made_as_asked_for() -> None:
    batch = encode_lists([b"a", None], [b"1", None], timestamps_ms=9, headers=[[("h", None)], []])
    records = decode(batch).records("orders", 3)
    first = Record("orders", 3, 0, 9, b"a", b"1", (("h", None),))
    last = Record("orders", 3, 1, 9, None, None, ())
    assert list(records) == [first, last]
    assert list(records) == [first, last], "a second walk gives the same"
    assert (records[0], records[-1], len(records)) == (first, last, 2)
    assert records[::-1] == [last, first]
    assert isinstance(next(iter(records)), Record)
    with pytest.raises(IndexError):
        records[2]


# -- refusals -------------------------------------------------------------------------------------


def test_encode_refuses_what_does_not_fit_together() -> None:
    with pytest.raises(InvalidRequest, match="at least one record"):
        encode_lists([], [], timestamps_ms=0)
    with pytest.raises(InvalidRequest, match="number of keys"):
        encode_lists([b"a"], [b"1", b"2"], timestamps_ms=0)
    with pytest.raises(InvalidRequest, match="number of keys or headers"):
        encode_lists(None, [b"1"], timestamps_ms=0, headers=[(), ()])
    with pytest.raises(InvalidRequest, match="2 timestamps for 1 records"):
        encode_lists(None, [b"1"], timestamps_ms=[1, 2])
    with pytest.raises(InvalidRequest, match="not text"):
        encode_lists(None, [b"1"], timestamps_ms=0, headers=[[("\ud800", b"")]])
    with pytest.raises(TypeError):
        encode_lists(None, ["text"], timestamps_ms=0)  # type: ignore[list-item]


@pytest.mark.parametrize("times", [2**63, [2**63], [-1, 2**63 - 1], [2**63] * 40])
def test_encode_refuses_timestamps_over_64_bits(times: int | list[int]) -> None:
    count = 1 if isinstance(times, int) else len(times)
    with pytest.raises(InvalidRequest, match="64 bits"):
        encode_lists(None, [b""] * count, timestamps_ms=times)


def test_encode_refuses_what_is_too_large() -> None:
    with pytest.raises(BatchTooLarge):
        encode_lists(None, [b"x" * BATCH_BYTES_MAX], timestamps_ms=0)
    with pytest.raises(BatchTooLarge):
        encode_lists(None, [b"x" * BATCH_BYTES_MAX] * 2, timestamps_ms=0)
    with pytest.raises(BatchTooLarge):
        encode_lists(None, [None] * (BATCH_RECORDS_MAX + 1), timestamps_ms=0)
    headers = [[("h", None)] * (HEADERS_PER_RECORD_MAX + 1)]
    with pytest.raises(BatchTooLarge):
        encode_lists(None, [None], timestamps_ms=0, headers=headers)
    zeros = [bytes(1 << 24)] * 17  # 272 MiB that would compress to almost nothing
    with pytest.raises(BatchTooLarge):
        encode_lists(
            None, zeros, timestamps_ms=0, options=BatchOptions(compression=Compression.ZSTD)
        )


def test_a_flipped_bit_is_found_by_the_crc() -> None:
    batch = encode_lists([b"key"], [b"value"], timestamps_ms=NOW_MS)
    for position in range(CRC_END, len(batch)):
        flipped = bytearray(batch)
        flipped[position] ^= 0x10
        with pytest.raises(CorruptBatch):
            decode(flipped)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (61, b"\x02", "layout version 2"),
        (62, b"\x08", "unknown flags"),
        (63, bytes([0b1010101]), "unknown flags"),
        (21, b"\x00", "not columnar"),
        (57, (2).to_bytes(4, "big"), "2 records"),
        (68, (9).to_bytes(4, "big"), "do not fill a batch"),
        (64, (1 << 29).to_bytes(4, "big"), "over the limit"),
        (64, (3).to_bytes(4, "big"), "more bytes than it has"),
        (64, (6).to_bytes(4, "big"), "without compression"),
        (80, b"\x04", "keys of 4 bytes"),
        (81, b"\x04", "values of 4 bytes"),
        (35, (8).to_bytes(8, "big"), "timestamps"),
        (0, b"\x80", "base offset"),
    ],
)
def test_decode_refuses_each_lie(position: int, value: bytes, message: str) -> None:
    batch = encode_lists([b"key"], [b"value"], timestamps_ms=5)
    batch[position : position + len(value)] = value
    seal(batch)
    with pytest.raises(CorruptBatch, match=message):
        decode(batch)


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, 0x7C, "impossible header widths"),
        (0, 0xD5, "impossible header widths"),
        (0, 0x45, "no validity bitmap"),
        (4, 0, "0 headers"),
        (1, 1, "headers are outside"),
        (5, 2, "do not add up"),
        (9, 9, "header values of 9 bytes"),
        (11, 0xFF, "bits after its last"),
        (10, 0x02, "a null has a length"),
        (12, 0xFF, "not UTF-8"),
        (7, 2, "starts inside a character"),
    ],
)
def test_decode_refuses_each_lie_about_headers(position: int, value: int, message: str) -> None:
    # widths 0x55 | total 2 | counts 1 1 | name lengths 1 2 | value lengths 2 0 | bits | a é | vv
    headers: list[Headers] = [(("a", b"vv"),), (("é", None),)]
    batch = encode_lists(None, [b"", b""], timestamps_ms=5, headers=headers)
    start = batch.index(b"\x55\x00\x00\x00\x02\x01\x01\x01\x02\x02\x00\x01a\xc3\xa9vv")
    batch[start + position] = value
    if position == 7:
        batch[start + 8] = 1  # the names' lengths still add up
    seal(batch)
    with pytest.raises(CorruptBatch, match=message):
        decode(batch)


def test_decode_refuses_a_null_with_a_length() -> None:
    batch = encode_lists([b"a", None], [b"", b""], timestamps_ms=5)
    assert batch[80:85] == b"\x01\x00\x00\x00\x01"
    batch[80:82] = b"\x00\x01"
    seal(batch)
    with pytest.raises(CorruptBatch, match="a null has a length"):
        decode(batch)


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decode(noise)
