"""The cleaner's rewrite against the twin: fewer records, the same offsets, the same place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from suiro.model.batch import TIMESTAMP_TYPE_BIT, read_header, seal
from suiro.model.columns import BatchOptions, decode, encode_lists, read_keys
from suiro.model.compact import empty_batch, filter_batch

from tests.unit.model import slow_twin
from tests.unit.model.rows import NOW_MS, batch_options, encode_rows, row_lists, rows_of

if TYPE_CHECKING:
    from tests.unit.model.slow_twin import Row


@given(row_lists(), batch_options, st.data())
@settings(max_examples=100, deadline=None)
def test_kept_records_are_the_twins(
    rows: list[Row], options: BatchOptions, data: st.DataObject
) -> None:
    batch: bytes | bytearray | memoryview = encode_rows(rows, options)
    batch[0:8] = (5_000).to_bytes(8, "big")  # type: ignore[index]
    envelope = slow_twin.decode(bytes(batch))[0]
    kept = [replace(row, offset_delta=delta) for delta, row in enumerate(rows)]
    for _ in range(2):  # a batch is cleaned more than once in its life
        mask = data.draw(st.lists(st.booleans(), min_size=len(kept), max_size=len(kept)))
        found = filter_batch(batch, np.array(mask))
        kept = [row for row, keep in zip(kept, mask, strict=True) if keep]
        if not kept:
            assert found is None
            return
        if all(mask):
            assert found is batch
            continue
        assert found is not None
        assert found == slow_twin.encode(kept, envelope)
        batch = found
        columns = decode(batch)
        assert rows_of(columns) == kept
        expected = [5_000 + row.offset_delta for row in kept if row.offset_delta is not None]
        assert columns.offsets().tolist() == list(columns.offsets_list()) == expected
        assert columns.header.end == 5_000 + len(rows)


def test_an_empty_batch_keeps_the_place_and_the_producer() -> None:
    options = BatchOptions(producer_id=7, producer_epoch=1, base_sequence=40)
    old = read_header(encode_lists(None, [b"a", b"b"], timestamps_ms=[9, 8], options=options))
    new = decode(empty_batch(old))
    assert len(new) == 0
    assert new.keys_list() == new.values_list() == []
    assert new.timestamps_list() == []
    assert new.offsets().tolist() == list(new.records("t", 0)) == []
    assert (new.header.end, new.header.last_sequence, new.header.producer_id) == (2, 41, 7)
    assert new.header.max_timestamp_ms == 9
    assert len(read_keys(empty_batch(old))) == 0


def test_the_time_of_the_append_stays() -> None:
    batch = encode_lists(None, [b"a", b"b"], timestamps_ms=[9, 8])
    batch[21:23] = (read_header(batch).attributes | TIMESTAMP_TYPE_BIT).to_bytes(2, "big")
    batch[35:43] = NOW_MS.to_bytes(8, "big")
    seal(batch)
    kept = filter_batch(batch, np.array([False, True]))
    assert kept is not None
    assert decode(kept).timestamps_list() == [NOW_MS]
