"""Records come out in order, once, from the position on; credit comes back for what was used."""

from __future__ import annotations

import struct

import pytest
from suiro.fetch_buffer import FetchBuffer
from suiro.model.encode import encode_lists
from suiro.model.ids import TopicPartition
from suiro.polled import Polled

WHERE = TopicPartition("t", 0)


def batch(base: int, values: list[bytes]) -> bytes:
    encoded = encode_lists(None, list(values), timestamps_ms=0)
    struct.pack_into(">q", encoded, 0, base)
    return bytes(encoded)


def test_the_first_batch_may_begin_before_the_position() -> None:
    buffer = FetchBuffer(WHERE, 2)
    buffer.add(batch(0, [b"0", b"1", b"2", b"3"]), 4)
    assert [record.offset for record in Polled(buffer.take(10))] == [2, 3]
    assert buffer.position == 4


def test_a_small_poll_goes_on_where_the_last_one_ended() -> None:
    buffer = FetchBuffer(WHERE, 0)
    data = batch(0, [b"a", b"b", b"c"]) + batch(3, [b"d"])
    buffer.add(data, 4)
    assert [record.value for record in Polled(buffer.take(2))] == [b"a", b"b"]
    assert buffer.position == 2
    assert buffer.take_credit() == 0
    assert [record.value for record in Polled(buffer.take(9))] == [b"c", b"d"]
    assert not buffer.take(9)
    assert buffer.take_credit(len(data) + 1) == 0, "not worth a message yet"
    assert buffer.take_credit(len(data)) == len(data)
    assert buffer.take_credit() == 0


def test_the_position_moves_over_what_was_left_out() -> None:
    """A range of only aborted or control records brings no batch, and must not be asked again."""
    buffer = FetchBuffer(WHERE, 5)
    buffer.add(b"", 9)
    assert buffer
    assert buffer.take(1) == []
    assert (buffer.position, buffer.fetch_end) == (9, 9)


def test_what_was_polled_is_like_a_list() -> None:
    buffer = FetchBuffer(WHERE, 1)
    buffer.add(batch(0, [b"a", b"b", b"c"]) + batch(3, [b"d", b"e"]), 5)
    polled = Polled(buffer.take(3))
    records = list(polled)
    assert [record.value for record in records] == [b"b", b"c", b"d"]
    assert (polled == records, len(polled), bool(polled)) == (True, 3, True)
    assert [polled[i] for i in range(-3, 3)] == records * 2
    assert (polled[1:], repr(polled)) == (records[1:], repr(records))
    with pytest.raises(IndexError):
        polled[3]
    assert Polled([]) == []
