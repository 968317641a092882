"""The columns of one batch: read them all with `decode`, or the key section alone with `read_keys`.

What comes out has been checked whole: the header, the CRC unless the caller has checked it, every
width, length and sum, the sizes before anything is decompressed. Whatever the bytes are, the only
error is CorruptBatch, and memory stays within `limits`. The columns are views of the batch (or of
its decompressed sections): nothing is done per record until Python objects are asked for. Writing
is `encode`'s part, Arrow `arrow`'s, rewriting for the cleaner `compact`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from suiro.model.batch import (
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    check_crc,
    read_header,
)
from suiro.model.compression import decompress
from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.errors import CorruptBatch
from suiro.model.headers import HeaderColumn, read_headers
from suiro.model.layout import (
    DELTA_DTYPES,
    HEADERS_FLAG,
    KEY_VALIDITY_FLAG,
    LENGTH_DTYPES,
    OFFSET_DTYPE,
    OFFSETS_FLAG,
    SECTIONS_START,
    VALUE_VALIDITY_FLAG,
    Prelude,
    read_prelude,
)
from suiro.model.record import Headers, Records
from suiro.model.section import Section, check_strings, total_bytes
from suiro.model.strings import BinaryColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suiro.model.batch import Buffer

    _Ints = NDArray[np.integer] | None

__all__ = [
    "BatchOptions",
    "BinaryColumn",
    "Columns",
    "HeaderColumn",
    "KeyColumns",
    "decode",
    "encode_lists",
    "read_keys",
]


@dataclass(slots=True, eq=False)
class KeyColumns:
    """What the key section tells: enough to compact a log without decompressing a value. Nobody
    changes one; only making it is not slowed down by being frozen, once per batch.
    """

    header: BatchHeader
    timestamp_deltas: _Ints
    offset_deltas: _Ints
    keys: BinaryColumn | None
    value_lengths: _Ints
    value_validity: NDArray[np.uint8] | None

    def __len__(self) -> int:
        return self.header.record_count

    def offsets(self) -> NDArray[np.int64]:
        """The absolute offset of each record."""
        base = self.header.base_offset
        if self.offset_deltas is None:
            return np.arange(base, base + len(self), dtype=np.int64)
        return self.offset_deltas + np.int64(base)

    def offset_at(self, index: int) -> int:
        """The absolute offset of one record."""
        delta = index if self.offset_deltas is None else int(self.offset_deltas[index])
        return self.header.base_offset + delta

    def index_of(self, offset: int) -> int:
        """The first record at this offset or after it; the number of records if there is none."""
        delta = max(offset - self.header.base_offset, 0)
        if self.offset_deltas is None:
            return min(delta, len(self))
        return int(np.searchsorted(self.offset_deltas, delta))

    def timestamps_ms(self) -> NDArray[np.int64]:
        """The timestamp of each record; the time of the append where the broker set that."""
        if self.timestamp_deltas is None:
            return np.full(len(self), self._same_timestamp_ms(), np.int64)
        return self.timestamp_deltas + np.int64(self.header.base_timestamp_ms)

    def tombstones(self) -> NDArray[np.bool_]:
        """Which records have a null value."""
        if self.value_lengths is None:
            return np.ones(len(self), np.bool_)
        valid = BinaryColumn(self.value_lengths, memoryview(b""), self.value_validity).valid()
        return np.zeros(len(self), np.bool_) if valid is None else ~valid

    def keys_list(self) -> list[bytes | None]:
        return [None] * len(self) if self.keys is None else self.keys.to_list()

    def offsets_list(self) -> Sequence[int]:
        if self.offset_deltas is None:
            return range(self.header.base_offset, self.header.base_offset + len(self))
        offsets: list[int] = self.offsets().tolist()
        return offsets

    def timestamps_list(self) -> list[int]:
        if self.timestamp_deltas is None:
            return [self._same_timestamp_ms()] * len(self)
        timestamps: list[int] = self.timestamps_ms().tolist()
        return timestamps

    def _same_timestamp_ms(self) -> int:
        return self.header.max_timestamp_ms


@dataclass(slots=True, eq=False)
class Columns(KeyColumns):
    """Every column of one batch."""

    values: BinaryColumn | None
    headers: HeaderColumn | None

    def values_list(self) -> list[bytes | None]:
        return [None] * len(self) if self.values is None else self.values.to_list()

    def headers_list(self) -> list[Headers]:
        return [()] * len(self) if self.headers is None else self.headers.to_list()

    def records(self, topic: str, partition: int) -> Records:
        """The records, made as they are asked for."""
        return Records(self, topic, partition)


def decode(data: Buffer, position: int = 0, *, verify_crc: bool = True) -> Columns:
    """The columns of the batch at `position`, which must lie whole inside `data`."""
    header, prelude = _read_prefix(data, position, verify_crc)
    deltas, offsets, keys, lengths, validity = _read_key_section(data, position, header, prelude)
    has_headers = prelude.flags & HEADERS_FLAG
    value_bytes = total_bytes(lengths)
    # Before the value section is decompressed: its size has to agree with the lengths
    if value_bytes != prelude.value_length and not has_headers:
        raise CorruptBatch(
            f"values of {value_bytes} bytes do not fill a section of {prelude.value_length}"
        )
    start = position + SECTIONS_START + prelude.key_stored
    stored = memoryview(data)[start : start + prelude.value_stored]
    section = _open(stored, prelude.value_length, header)
    values = None
    if lengths is not None:
        values = BinaryColumn(lengths, section.take(value_bytes), validity)
    headers = read_headers(section, header.record_count) if has_headers else None
    return Columns(header, deltas, offsets, keys, lengths, validity, values, headers)


def read_keys(data: Buffer, position: int = 0, *, verify_crc: bool = True) -> KeyColumns:
    """The key section's columns; the value section is left as it is, unread and unchecked."""
    header, prelude = _read_prefix(data, position, verify_crc)
    return KeyColumns(header, *_read_key_section(data, position, header, prelude))


def _read_prefix(data: Buffer, position: int, verify_crc: bool) -> tuple[BatchHeader, Prelude]:
    header = read_header(data, position)
    if verify_crc:
        check_crc(data, header, position)
    return header, read_prelude(data, header, position)


def _open(stored: memoryview, length: int, header: BatchHeader) -> Section:
    if len(stored) == length:
        return Section(stored)
    return Section(memoryview(decompress(header.compression, stored, length)))


def _read_key_section(
    data: Buffer, position: int, header: BatchHeader, prelude: Prelude
) -> tuple[_Ints, _Ints, BinaryColumn | None, _Ints, NDArray[np.uint8] | None]:
    """The fields of KeyColumns. `read_prelude` has made sure that all but the key data is there."""
    start = position + SECTIONS_START
    stored = memoryview(data)[start : start + prelude.key_stored]
    section = _open(stored, prelude.key_length, header)
    count = header.record_count
    flags = prelude.flags
    deltas = section.numbers(DELTA_DTYPES[prelude.delta_width], count)
    offsets = section.numbers(OFFSET_DTYPE if flags & OFFSETS_FLAG else None, count)
    key_lengths = section.numbers(LENGTH_DTYPES[prelude.key_width], count)
    value_lengths = section.numbers(LENGTH_DTYPES[prelude.value_width], count)
    key_validity = section.bitmap(flags & KEY_VALIDITY_FLAG, count)
    value_validity = section.bitmap(flags & VALUE_VALIDITY_FLAG, count)
    key_bytes = total_bytes(key_lengths)
    if key_bytes != section.left:
        raise CorruptBatch(f"keys of {key_bytes} bytes do not fill {section.left}")
    _check_timestamps(header, deltas)
    _check_offsets(header, offsets)
    check_strings(key_lengths, key_validity)
    check_strings(value_lengths, value_validity)
    keys = None
    if key_lengths is not None:
        keys = BinaryColumn(key_lengths, section.take(key_bytes), key_validity)
    if header.attributes & TIMESTAMP_TYPE_BIT:
        deltas = None  # the time of the append, which the header has, counts for every record
    return deltas, offsets, keys, value_lengths, value_validity


def _check_timestamps(header: BatchHeader, deltas: NDArray[np.integer] | None) -> None:
    """The base timestamp is the minimum, and the maximum, which the time index trusts, is true."""
    if header.attributes & TIMESTAMP_TYPE_BIT or not header.record_count:
        return
    low = high = 0
    if deltas is not None:
        low, high = int(deltas.min()), int(deltas.max())
    if low or header.base_timestamp_ms + high != header.max_timestamp_ms:
        raise CorruptBatch(
            f"timestamps from {header.base_timestamp_ms} plus {low} to {high} do not end at "
            f"{header.max_timestamp_ms}"
        )


def _check_offsets(header: BatchHeader, offsets: NDArray[np.integer] | None) -> None:
    if offsets is None or not len(offsets):
        return
    if int(offsets[-1]) > header.last_offset_delta or (offsets[1:] <= offsets[:-1]).any():
        raise CorruptBatch("the offset deltas do not rise within the batch")
