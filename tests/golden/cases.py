"""The batches whose bytes are pinned: what each file in this directory holds.

A file is never rewritten: bytes that are on someone's disk must stay readable. A new feature gets a
new case, and `python -m tests.golden.cases` writes the files that are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from suiro.model.batch import Compression, read_header
from suiro.model.columns import BatchOptions, encode_lists
from suiro.model.compact import empty_batch, filter_batch
from suiro.model.control import ControlType, Marker, encode_marker
from suiro.model.encode import PLAIN
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity

from tests.unit.model.slow_twin import Row

DIRECTORY = Path(__file__).parent
NOW_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Case:
    """Records and options; `keep` says which records the cleaner left."""

    rows: tuple[Row, ...]
    options: BatchOptions = PLAIN
    keep: tuple[bool, ...] | None = None
    marker: Marker | None = None

    def build(self) -> bytes:
        """The batch as today's codec makes it."""
        if self.marker is not None:
            producer = ProducerIdentity(
                ProducerId(self.options.producer_id), ProducerEpoch(self.options.producer_epoch)
            )
            return bytes(encode_marker(self.marker, producer, NOW_MS))
        batch = encode_lists(
            [row.key for row in self.rows],
            [row.value for row in self.rows],
            timestamps_ms=[row.timestamp_ms for row in self.rows],
            headers=[row.headers for row in self.rows],
            options=self.options,
        )
        if self.keep is None:
            return bytes(batch)
        kept = filter_batch(batch, np.array(self.keep))
        return bytes(empty_batch(read_header(batch)) if kept is None else kept)

    def expected(self) -> list[Row]:
        """The records that a reader must find."""
        if self.keep is None:
            return list(self.rows)
        return [
            Row(row.timestamp_ms, row.key, row.value, row.headers, offset_delta=delta)
            for delta, row in enumerate(self.rows)
            if self.keep[delta]
        ]


def _times(*deltas: int) -> tuple[Row, ...]:
    return tuple(Row(NOW_MS + delta, b"k", b"v") for delta in deltas)


NULLS = (
    Row(NOW_MS, b"key", b"value"),
    Row(NOW_MS, None, b"no key"),
    Row(NOW_MS, b"", b""),
    Row(NOW_MS, b"tombstone", None),
)
HEADERS = (
    Row(NOW_MS, b"a", b"1", [("trace", b"0123"), ("trace", None), ("", b"")]),
    Row(NOW_MS + 1, b"b", b"2"),
    Row(NOW_MS + 2, b"c", b"3", [("水路", b"\xff\x00")]),
)
REPEATED = tuple(Row(NOW_MS + i, b"key-%d" % (i % 5), b"value " * 20) for i in range(100))
PRODUCER = BatchOptions(producer_id=42, producer_epoch=7, base_sequence=100, transactional=True)

CASES = {
    "one_record": Case((Row(NOW_MS, b"key", b"value"),)),
    "nothing_in_it": Case((Row(NOW_MS, None, None),)),
    "nulls": Case(NULLS),
    "headers": Case(HEADERS),
    "times_u8": Case(_times(5, 0, 255)),
    "times_u16": Case(_times(0, 65_535)),
    "times_u32": Case(_times(65_536, 0)),
    "times_i64": Case(_times(0, 1 << 40, 3)),
    "widths": Case((Row(-1, b"k" * 300, b"v" * 70_000), Row(-1, b"", b"v"))),
    "producer": Case(NULLS, PRODUCER),
    "commit": Case(
        (Row(NOW_MS, b"\0\0\0\1", b"\0\0\0\0\0\3"),),
        PRODUCER,
        marker=Marker(ControlType.COMMIT, 3),
    ),
    "abort": Case(
        (Row(NOW_MS, b"\0\0\0\0", b"\0\0\0\0\0\3"),),
        PRODUCER,
        marker=Marker(ControlType.ABORT, 3),
    ),
    "compacted": Case(
        HEADERS + NULLS, PRODUCER, keep=(True, False, True, False, True, True, False)
    ),
    "emptied": Case(NULLS, PRODUCER, keep=(False,) * 4),
    **{
        codec.name.lower(): Case(REPEATED, BatchOptions(compression=codec))
        for codec in Compression
        if codec is not Compression.NONE
    },
}


def path_of(name: str) -> Path:
    return DIRECTORY / f"{name}.batch"


if __name__ == "__main__":
    for name, case in CASES.items():
        if not path_of(name).exists():
            path_of(name).write_bytes(case.build())
            print(f"wrote {path_of(name).name}")
