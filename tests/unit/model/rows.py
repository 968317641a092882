"""Records to test with: hypothesis strategies, and the same records in every shape."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from suiro.model.batch import COLUMNAR_BIT, CONTROL_BIT, TRANSACTIONAL_BIT, Compression
from suiro.model.columns import BatchOptions, Columns, encode_lists

from tests.unit.model.slow_twin import Envelope, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW_MS = 1_700_000_000_000

short = st.binary(max_size=12)
long = st.integers(0, 70_000).map(lambda size: b"\x00long" * (size // 5))
names = st.sampled_from(["trace", "", "naïve", "水路", "a"]) | st.text(max_size=5)
headers = st.lists(st.tuples(names, st.none() | short), max_size=4)
compressions = st.sampled_from(list(Compression))


@st.composite
def timestamps(draw: st.DrawFn, count: int) -> list[int]:
    """Constant, rising, falling, or anywhere within a span of some width."""
    span = draw(st.sampled_from([0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**62]))
    base = draw(st.sampled_from([NOW_MS, -1, 0, -(2**61)]))
    order = draw(st.sampled_from(["rising", "falling", "any"]))
    deltas = draw(st.lists(st.integers(0, span), min_size=count, max_size=count))
    if order != "any":
        deltas.sort(reverse=order == "falling")
    return [base + delta for delta in deltas]


@st.composite
def row_lists(draw: st.DrawFn, max_size: int = 80) -> list[Row]:
    """Keys, values and headers that are all there, partly there, or not there at all."""
    count = draw(st.sampled_from([1, 1, 2, 7, 8, 9, 31, 32, 33, max_size]))
    some = [st.none(), short, st.just(b""), st.none() | short, st.none() | short | long]
    keys = draw(st.lists(draw(st.sampled_from(some)), min_size=count, max_size=count))
    values = draw(st.lists(draw(st.sampled_from(some)), min_size=count, max_size=count))
    of_row = draw(st.sampled_from([st.just([]), headers, st.just([("one", b"1"), ("two", None)])]))
    all_headers = draw(st.lists(of_row, min_size=count, max_size=count))
    times = draw(timestamps(count))
    return [
        Row(*fields) for fields in zip(times, keys, values, map(list, all_headers), strict=True)
    ]


batch_options = st.builds(
    BatchOptions,
    compression=compressions,
    producer_id=st.integers(-1, 2**63 - 1),
    producer_epoch=st.integers(-1, 2**15 - 1),
    base_sequence=st.integers(-1, 2**31 - 1),
    transactional=st.booleans(),
    control=st.booleans(),
)


def encode_rows(rows: Sequence[Row], options: BatchOptions) -> bytearray:
    """The codec's batch of these rows."""
    return encode_lists(
        [row.key for row in rows],
        [row.value for row in rows],
        timestamps_ms=[row.timestamp_ms for row in rows],
        headers=[row.headers for row in rows],
        options=options,
    )


def envelope_of(options: BatchOptions) -> Envelope:
    """The twin's view of the options, bit by bit."""
    return Envelope(
        attributes=COLUMNAR_BIT
        | int(options.compression)
        | TRANSACTIONAL_BIT * options.transactional
        | CONTROL_BIT * options.control,
        producer_id=options.producer_id,
        producer_epoch=options.producer_epoch,
        base_sequence=options.base_sequence,
    )


def rows_of(columns: Columns) -> list[Row]:
    """What the codec's lists say, as rows."""
    deltas = columns.offset_deltas
    rows = [
        Row(timestamp_ms, key, value, list(pairs))
        for timestamp_ms, key, value, pairs in zip(
            columns.timestamps_list(),
            columns.keys_list(),
            columns.values_list(),
            columns.headers_list(),
            strict=True,
        )
    ]
    if deltas is None:
        return rows
    return [
        replace(row, offset_delta=delta) for row, delta in zip(rows, deltas.tolist(), strict=True)
    ]
