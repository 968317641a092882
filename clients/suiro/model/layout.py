"""The columnar payload's fixed part: its version, its flags, the lengths of its two sections.

`docs/batch-format.md` draws the whole layout. Scalars are big-endian, arrays little-endian. A
prelude that `read_prelude` lets through describes sections that lie inside the batch and, once
decompressed, inside the limits; what the sections hold is for `columns` to check.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from suiro.model.batch import (
    COLUMNAR_BIT,
    COMPRESSION_MASK,
    HEADER,
    HEADER_BYTES,
    BatchHeader,
    Compression,
)
from suiro.model.errors import CorruptBatch
from suiro.model.limits import BATCH_DECODED_BYTES_MAX

if TYPE_CHECKING:
    from suiro.model.batch import Buffer

LAYOUT_VERSION: Final = 1
PRELUDE: Final = struct.Struct(">BHIIII")
PREFIX: Final = struct.Struct(HEADER.format + PRELUDE.format.removeprefix(">"))
"""Header and prelude at once, for writers."""

SECTIONS_START: Final = PREFIX.size
assert SECTIONS_START == HEADER_BYTES + PRELUDE.size == 80

# -- flags ----------------------------------------------------------------------------------------
WIDTH_MASK: Final = 0b11
VALUE_WIDTH_SHIFT: Final = 2
TIMESTAMP_SHIFT: Final = 4
TIMESTAMP_MASK: Final = 0b111
KEY_VALIDITY_FLAG: Final = 1 << 7
VALUE_VALIDITY_FLAG: Final = 1 << 8
HEADERS_FLAG: Final = 1 << 9
OFFSETS_FLAG: Final = 1 << 10
KNOWN_FLAGS: Final = (1 << 11) - 1

# -- array widths: the code is the index; code 0 stores nothing -----------------------------------
LENGTH_DTYPES: Final = (None, np.dtype("<u1"), np.dtype("<u2"), np.dtype("<u4"))
WIDTH_BYTES: Final = (0, 1, 2, 4, 8)
DELTA_DTYPES: Final = (*LENGTH_DTYPES, np.dtype("<i8"))
OFFSET_DTYPE: Final = np.dtype("<u4")

# -- the width byte of a headers block ------------------------------------------------------------
HEADERS_PRELUDE: Final = struct.Struct(">BI")
NAME_WIDTH_SHIFT: Final = 2
HEADER_VALUE_WIDTH_SHIFT: Final = 4
HEADER_VALIDITY_FLAG: Final = 1 << 6
KNOWN_HEADER_FLAGS: Final = (1 << 7) - 1


class Prelude(NamedTuple):
    """The 19 bytes between the header and the sections."""

    version: int
    flags: int
    key_length: int
    key_stored: int
    value_length: int
    value_stored: int

    @property
    def key_width(self) -> int:
        return self.flags & WIDTH_MASK

    @property
    def value_width(self) -> int:
        return self.flags >> VALUE_WIDTH_SHIFT & WIDTH_MASK

    @property
    def delta_width(self) -> int:
        return self.flags >> TIMESTAMP_SHIFT & TIMESTAMP_MASK


def bitmap_bytes(count: int) -> int:
    """Bytes of a validity bitmap: one bit per record, the lowest bit of a byte first."""
    return (count + 7) >> 3


def fixed_bytes(prelude: Prelude, count: int) -> int:
    """Bytes of the key section in front of the key data; known before anything is decompressed."""
    flags = prelude.flags
    per_record = (
        WIDTH_BYTES[prelude.delta_width]
        + WIDTH_BYTES[prelude.key_width]
        + WIDTH_BYTES[prelude.value_width]
        + (4 if flags & OFFSETS_FLAG else 0)
    )
    bitmaps = bool(flags & KEY_VALIDITY_FLAG) + bool(flags & VALUE_VALIDITY_FLAG)
    return per_record * count + bitmaps * bitmap_bytes(count)


def read_prelude(data: Buffer, header: BatchHeader, position: int = 0) -> Prelude:
    """Parse and check the prelude of the batch at `position`, whose header has been checked."""
    if not header.attributes & COLUMNAR_BIT:
        raise CorruptBatch("the payload is not columnar (attribute bit 14 is clear)")
    if header.size < SECTIONS_START:
        raise CorruptBatch(f"{header.size} bytes cannot hold a columnar batch")
    prelude = Prelude._make(PRELUDE.unpack_from(data, position + HEADER_BYTES))
    _check_flags(prelude, header)
    _check_lengths(prelude, header)
    return prelude


def _check_flags(prelude: Prelude, header: BatchHeader) -> None:
    flags = prelude.flags
    if prelude.version != LAYOUT_VERSION:
        raise CorruptBatch(f"layout version {prelude.version} is unknown")
    if flags & ~KNOWN_FLAGS or prelude.delta_width >= len(WIDTH_BYTES):
        raise CorruptBatch(f"unknown flags {flags:#06x}")
    if (flags & KEY_VALIDITY_FLAG and not prelude.key_width) or (
        flags & VALUE_VALIDITY_FLAG and not prelude.value_width
    ):
        raise CorruptBatch("a column that is all null has no validity bitmap")
    if not flags & OFFSETS_FLAG and header.record_count != header.last_offset_delta + 1:
        raise CorruptBatch(
            f"{header.record_count} records without offset deltas cannot end at delta "
            f"{header.last_offset_delta}"
        )


def _check_lengths(prelude: Prelude, header: BatchHeader) -> None:
    if prelude.key_stored + prelude.value_stored != header.size - SECTIONS_START:
        raise CorruptBatch(
            f"sections of {prelude.key_stored} and {prelude.value_stored} bytes do not fill a batch"
            f" of {header.size}"
        )
    if prelude.key_length + prelude.value_length > BATCH_DECODED_BYTES_MAX:
        raise CorruptBatch(
            f"sections of {prelude.key_length} and {prelude.value_length} decoded bytes are over "
            f"the limit of {BATCH_DECODED_BYTES_MAX}"
        )
    if prelude.key_stored > prelude.key_length or prelude.value_stored > prelude.value_length:
        raise CorruptBatch("a section is stored in more bytes than it has")
    if header.attributes & COMPRESSION_MASK == Compression.NONE and (
        prelude.key_stored != prelude.key_length or prelude.value_stored != prelude.value_length
    ):
        raise CorruptBatch("a batch without compression has a section that is stored smaller")
    if fixed_bytes(prelude, header.record_count) > prelude.key_length:
        raise CorruptBatch(
            f"{header.record_count} records do not fit a key section of {prelude.key_length} bytes"
        )
