"""Arrow in and out: every type, slice and chunk gives the bytes that the lists give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suiro.model.arrow import HEADERS_TYPE, SCHEMA, SCHEMA_WITH_HEADERS, encode_arrow, to_arrow
from suiro.model.columns import BatchOptions, decode, encode_lists
from suiro.model.compact import empty_batch
from suiro.model.errors import BatchTooLarge, InvalidRequest

from tests.unit.model.rows import NOW_MS, batch_options, encode_rows, row_lists

if TYPE_CHECKING:
    from suiro.model.record import Headers

    from tests.unit.model.slow_twin import Row


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([row.key for row in rows], pa.binary()),
            "value": pa.array([row.value for row in rows], pa.binary()),
            "timestamp": pa.array([row.timestamp_ms for row in rows], pa.timestamp("ms", "UTC")),
            "headers": pa.array(
                [[{"key": name, "value": value} for name, value in row.headers] for row in rows],
                HEADERS_TYPE,
            ),
        }
    )


@given(row_lists(), batch_options, st.data())
@settings(max_examples=100, deadline=None)
def test_arrow_gives_the_bytes_of_the_lists(
    rows: list[Row], options: BatchOptions, data: st.DataObject
) -> None:
    table = table_of(rows)
    expected = encode_rows(rows, options)
    assert encode_arrow(table, options=options) == expected
    # the same rows as a slice out of the middle, in chunks that are cut anywhere
    around = pa.concat_tables([table, table, table]).combine_chunks()
    middle = around.slice(len(rows), len(rows))
    cut = data.draw(st.integers(0, len(rows)))
    assert encode_arrow(middle, options=options) == expected
    assert encode_arrow(middle.to_batches()[0], options=options) == expected
    chunked = pa.concat_tables([middle.slice(0, cut), middle.slice(cut)])
    assert encode_arrow(chunked, options=options) == expected


@given(st.lists(row_lists(33), min_size=1, max_size=3), batch_options, st.booleans())
@settings(max_examples=60, deadline=None)
def test_batches_come_back_as_one_record_batch(
    lists: list[list[Row]], options: BatchOptions, headers: bool
) -> None:
    columns = [decode(encode_rows(rows, options)) for rows in lists]
    found = to_arrow(columns, headers=headers)
    found.validate(full=True)
    assert found.schema == (SCHEMA_WITH_HEADERS if headers else SCHEMA)
    together = table_of([row for rows in lists for row in rows])
    for name in ["key", "value", "timestamp", *(["headers"] if headers else [])]:
        assert found.column(name) == together.column(name).combine_chunks(), name
    assert found.column("offset").to_pylist() == [i for rows in lists for i in range(len(rows))]


def test_one_batch_is_not_copied() -> None:
    batch = bytes(encode_lists(None, [b"x" * 1000] * 100, timestamps_ms=0))
    values = to_arrow(decode(batch)).column("value")
    held = np.frombuffer(batch, np.uint8).ctypes.data
    assert held <= values.buffers()[2].address < held + len(batch)


def test_what_was_read_can_be_written_elsewhere() -> None:
    batch = encode_lists(
        [b"k", None], [b"v", b"w"], timestamps_ms=[5, 9], headers=[(), [("h", b"")]]
    )
    assert encode_arrow(to_arrow(decode(batch), headers=True)) == batch


def test_nothing_is_an_empty_record_batch() -> None:
    assert to_arrow([]).num_rows == 0
    assert to_arrow([], headers=True).schema == SCHEMA_WITH_HEADERS
    header = decode(encode_lists(None, [b"v"], timestamps_ms=NOW_MS)).header
    assert to_arrow(decode(empty_batch(header)), headers=True).num_rows == 0


TEXTS = ["a", None, "", "bcd", "a", None, "naïve"]
BYTES = [None if text is None else text.encode() for text in TEXTS]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TEXTS, pa.string()),
        pa.array(TEXTS, pa.large_string()),
        pa.array(BYTES, pa.binary()),
        pa.array(BYTES, pa.large_binary()),
        pa.array(BYTES, pa.binary_view()),
        pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS, pa.string()).dictionary_encode(),
        pa.array(BYTES, pa.large_binary()).dictionary_encode(),
    ],
    ids=lambda column: str(column.type).split("<")[0],
)
def test_every_type_of_string(column: pa.Array) -> None:
    for start, end in [(0, 7), (1, 6), (2, 4), (1, 2)]:
        part = BYTES[start:end]
        batch = encode_arrow(
            pa.table({"value": column, "key": column}).slice(start, end - start), timestamp_ms=5
        )
        assert batch == encode_lists(part, part, timestamps_ms=5)


def test_fixed_size_and_null_columns() -> None:
    ids = [b"0123", None, b"4567"]
    table = pa.table({"key": pa.array(ids, pa.binary(4)), "value": pa.nulls(3)})
    assert encode_arrow(table, timestamp_ms=5) == encode_lists(ids, [None] * 3, timestamps_ms=5)


def test_a_null_may_cover_bytes() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 5, 6], np.int32))
    valid = pa.py_buffer(bytes([0b101]))
    column = pa.Array.from_buffers(pa.binary(), 3, [valid, offsets, pa.py_buffer(b"aaXXXb")])
    batch = encode_arrow(pa.table({"value": column}), timestamp_ms=5)
    assert batch == encode_lists(None, [b"aa", None, b"b"], timestamps_ms=5)
    batch = encode_arrow(pa.table({"value": column}).slice(1), timestamp_ms=5)
    assert batch == encode_lists(None, [None, b"b"], timestamps_ms=5)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1500, None, 2500], pa.timestamp("ms")),
        pa.array([1_500_999, None, 2_500_001], pa.timestamp("us", "UTC")),
        pa.array([1500, None, 2500], pa.int64()),
        pa.array([1500, None, 2500], pa.int32()),
    ],
    ids=lambda column: str(column.type),
)
def test_every_type_of_timestamp(column: pa.Array) -> None:
    table = pa.table({"value": pa.array([b"v"] * 3), "timestamp": column})
    assert decode(encode_arrow(table, timestamp_ms=7)).timestamps_list() == [1500, 7, 2500]


def test_headers_as_map_large_list_and_with_nulls() -> None:
    wanted: list[Headers] = [(("a", b"1"), ("a", None)), (), (("b", b""),)]
    expected = encode_lists(None, [b"v"] * 3, timestamps_ms=5, headers=wanted)
    values = pa.array([b"v"] * 3)
    as_map = pa.array(wanted, pa.map_(pa.string(), pa.binary()))
    pairs = [[{"key": k, "value": v} for k, v in one] or None for one in wanted]
    as_large = pa.array(
        pairs, pa.large_list(pa.struct([("key", pa.binary()), ("value", pa.large_binary())]))
    )
    assert (
        encode_arrow(pa.table([values, as_map], ["value", "headers"]), timestamp_ms=5) == expected
    )
    assert (
        encode_arrow(pa.table([values, as_large], ["value", "headers"]), timestamp_ms=5) == expected
    )


def test_refusals_are_typed() -> None:
    values = pa.array([b"v"])
    with pytest.raises(InvalidRequest, match="at least one record"):
        encode_arrow(pa.table({"value": pa.array([], pa.binary())}))
    with pytest.raises(InvalidRequest, match="each at most once"):
        encode_arrow(pa.table({"value": values, "topic": values}))
    with pytest.raises(InvalidRequest, match="each at most once"):
        encode_arrow(pa.table([values, values], ["value", "value"]))
    with pytest.raises(InvalidRequest, match="does not have the type"):
        encode_arrow(pa.table({"value": pa.array([[1]])}))
    with pytest.raises(InvalidRequest, match="does not have the type"):
        encode_arrow(pa.table({"value": values, "timestamp": pa.array(["noon"])}))
    nameless = pa.array([[{"key": None, "value": b""}]], HEADERS_TYPE)
    with pytest.raises(InvalidRequest, match="no name"):
        encode_arrow(pa.table({"value": values, "headers": nameless}))
    broken = pa.array(
        [[{"key": b"\xff", "value": b""}]],
        pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
    )
    with pytest.raises(InvalidRequest, match="does not have the type"):
        encode_arrow(pa.table({"value": values, "headers": broken}))
    with pytest.raises(BatchTooLarge):
        encode_arrow(pa.table({"value": pa.array([bytes(1 << 24)] * 17, pa.large_binary())}))
