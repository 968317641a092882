"""Rewrite a batch with fewer records, for the log cleaner.

The records that stay keep their offsets, and the batch keeps its place: base offset, last offset,
leader epoch, producer and sequence are untouched, so followers and producer states see no gap.
Where whole batches go, a filler takes their place: a batch of no records and no producer. So the
offsets of a log never have a gap, and one that is missing is always damage.
Which records may go is the cleaner's decision (`columns.read_keys` gives it the keys and
tombstones).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suiro.model.batch import COLUMNAR_BIT, MAGIC, TIMESTAMP_TYPE_BIT, BatchHeader
from suiro.model.columns import Columns, decode
from suiro.model.encode import Body, Deltas, assemble, pack_timestamps
from suiro.model.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP_MS,
)
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


def filler(base_offset: int, end: int, leader_epoch: int) -> bytearray:
    """What stands for the offsets [base_offset, end), which one leader epoch wrote and of which
    nothing is left.
    """
    return empty_batch(
        BatchHeader(
            base_offset=base_offset,
            length=0,
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=COLUMNAR_BIT,
            last_offset_delta=end - base_offset - 1,
            base_timestamp_ms=NO_TIMESTAMP_MS,
            max_timestamp_ms=NO_TIMESTAMP_MS,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=0,
        )
    )


def is_filler(header: BatchHeader) -> bool:
    """Whether the batch says nothing at all; such a one may be cut in two anywhere."""
    return not header.record_count and not header.has_producer


def _kept_timestamps(columns: Columns, keep_mask: NDArray[np.bool_]) -> Deltas:
    header = columns.header
    if header.attributes & TIMESTAMP_TYPE_BIT:
        return Deltas(0, b"", header.base_timestamp_ms, header.max_timestamp_ms)
    kept = columns.timestamps_ms()[keep_mask]
    return pack_timestamps(kept, len(kept))


def _kept_offsets(columns: Columns, keep_mask: NDArray[np.bool_]) -> bytes:
    deltas = np.arange(len(columns)) if columns.offset_deltas is None else columns.offset_deltas
    return deltas[keep_mask].astype(OFFSET_DTYPE).tobytes()
