"""Rewrite a batch with fewer records, for the log cleaner.

The records that stay keep their offsets, and the batch keeps its place: base offset, last offset,
leader epoch, producer and sequence are untouched, so followers and producer states see no gap.
Which records may go is the cleaner's decision (`columns.read_keys` gives it the keys and
tombstones).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suiro.model.batch import TIMESTAMP_TYPE_BIT, BatchHeader
from suiro.model.columns import Columns, decode
from suiro.model.encode import Body, Deltas, assemble, pack_timestamps
from suiro.model.layout import OFFSET_DTYPE
from suiro.model.strings import ALL_NULL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suiro.model.batch import Buffer


def filter_batch(batch: Buffer, keep_mask: NDArray[np.bool_]) -> Buffer | None:
    """The batch with the records where `keep_mask` is true: the same bytes where all stay, None
    where none does (`empty_batch` makes what has to remember a producer's last sequence).
    """
    columns = decode(batch)
    assert len(keep_mask) == len(columns), "one bool per record"
    if keep_mask.all():
        return batch
    if not keep_mask.any():
        return None
    body = Body(
        _kept_timestamps(columns, keep_mask),
        ALL_NULL if columns.keys is None else columns.keys.select(keep_mask),
        ALL_NULL if columns.values is None else columns.values.select(keep_mask),
        b"" if columns.headers is None else columns.headers.select(keep_mask),
        _kept_offsets(columns, keep_mask),
    )
    header = columns.header._replace(
        base_timestamp_ms=body.deltas.base_ms,
        max_timestamp_ms=body.deltas.max_ms,
        record_count=int(keep_mask.sum()),
    )
    return assemble(body, header)


def empty_batch(header: BatchHeader) -> bytearray:
    """A batch of no records in the place of the one that had this header."""
    deltas = Deltas(0, b"", header.base_timestamp_ms, header.max_timestamp_ms)
    return assemble(Body(deltas, ALL_NULL, ALL_NULL, offsets=b""), header._replace(record_count=0))


def _kept_timestamps(columns: Columns, keep_mask: NDArray[np.bool_]) -> Deltas:
    header = columns.header
    if header.attributes & TIMESTAMP_TYPE_BIT:
        return Deltas(0, b"", header.base_timestamp_ms, header.max_timestamp_ms)
    kept = columns.timestamps_ms()[keep_mask]
    return pack_timestamps(kept, len(kept))


def _kept_offsets(columns: Columns, keep_mask: NDArray[np.bool_]) -> bytes:
    deltas = np.arange(len(columns)) if columns.offset_deltas is None else columns.offset_deltas
    return deltas[keep_mask].astype(OFFSET_DTYPE).tobytes()
