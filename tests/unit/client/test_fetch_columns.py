"""Polls of records and of columns see the same rows, in any mixture, also of compacted batches."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from suiro.fetch_buffer import FetchBuffer
from suiro.model.encode import encode_lists
from suiro.model.ids import TopicPartition
from suiro.polled import Polled
from suiro.polled_table import polled_table

if TYPE_CHECKING:
    import pyarrow as pa

WHERE = TopicPartition("t", 3)


def batch(base: int, count: int) -> bytes:
    values: list[bytes | None] = [b"%d" % (base + i) for i in range(count)]
    encoded = encode_lists(None, values, timestamps_ms=7)
    struct.pack_into(">q", encoded, 0, base)
    return bytes(encoded)


@settings(deadline=None)  # the first table of a process takes its time
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=8),
    st.integers(0, 6),
    st.lists(st.tuples(st.booleans(), st.integers(1, 7)), max_size=40),
)
def test_every_row_once_in_order(
    counts: list[int], start: int, polls: list[tuple[bool, int]]
) -> None:
    buffer = FetchBuffer(WHERE, start)
    end = 0
    for count in counts:
        if end + count > start:
            buffer.add(batch(end, count), end + count)
        end += count
    seen: list[int] = []
    for as_columns, wanted in polls:
        if as_columns:
            table: pa.Table = polled_table([(WHERE, buffer.take(wanted))])
            seen += [int(value) for value in table["value"].to_pylist()]
            assert table["offset"].to_pylist() == seen[len(seen) - table.num_rows :]
        else:
            seen += [record.offset for record in Polled(buffer.take(wanted))]
        assert not seen or buffer.position == max(seen[-1] + 1, start)
    assert seen == list(range(start, start + len(seen)))


def test_a_table_has_what_a_record_has() -> None:
    buffer = FetchBuffer(WHERE, 1)
    buffer.add(batch(0, 3), 3)
    rows = polled_table([(WHERE, buffer.take(10))]).to_pylist()
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        ("t", 3, 1),
        ("t", 3, 2),
    ]
    assert rows[0]["value"] == b"1"


def test_nothing_polled_is_an_empty_table() -> None:
    table = polled_table([], headers=True)
    assert (table.num_rows, table.schema.names[-1]) == (0, "headers")
