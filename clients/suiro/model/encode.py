"""Build a batch: from Python lists here, and `assemble` for whoever has the columns ready.

A batch leaves with base offset 0 and leader epoch -1, which the broker stamps. For the same records
and options the bytes are the same, whichever way they came in (a compressor's new version aside).
Everything per record is done by C builtins, not by Python loops. One plain record has its own short
way, since that is what a producer sends when it has nothing to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from suiro.model.batch import (
    COLUMNAR_BIT,
    CONTROL_BIT,
    LENGTH_END,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Compression,
    seal,
)
from suiro.model.compression import compress
from suiro.model.errors import BatchTooLarge, InvalidRequest
from suiro.model.headers import pack_headers
from suiro.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from suiro.model.layout import (
    DELTA_DTYPES,
    HEADERS_FLAG,
    KEY_VALIDITY_FLAG,
    LAYOUT_VERSION,
    OFFSETS_FLAG,
    PREFIX,
    SECTIONS_START,
    TIMESTAMP_SHIFT,
    VALUE_VALIDITY_FLAG,
    VALUE_WIDTH_SHIFT,
)
from suiro.model.limits import BATCH_BYTES_MAX, BATCH_DECODED_BYTES_MAX, BATCH_RECORDS_MAX
from suiro.model.strings import ALL_NULL, SMALL, PackedStrings, pack_strings

if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suiro.model.batch import Buffer

    Timestamps = Sequence[int] | array[int] | NDArray[np.int64] | int

I64_MIN: Final = -(1 << 63)
I64_MAX: Final = (1 << 63) - 1
_BLANK: Final = bytes(SECTIONS_START)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What a batch says about itself, beside its records."""

    compression: Compression = Compression.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    transactional: bool = False
    control: bool = False

    @property
    def attributes(self) -> int:
        return (
            COLUMNAR_BIT
            | self.compression
            | (TRANSACTIONAL_BIT if self.transactional else 0)
            | (CONTROL_BIT if self.control else 0)
        )

    def header(self, count: int, base_timestamp_ms: int, max_timestamp_ms: int) -> BatchHeader:
        """A header for `count` records; its length and CRC are not known yet."""
        return BatchHeader(
            base_offset=0,
            length=0,
            leader_epoch=NO_LEADER_EPOCH,
            magic=MAGIC,
            crc=0,
            attributes=self.attributes,
            last_offset_delta=count - 1,
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=max_timestamp_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            record_count=count,
        )


PLAIN: Final = BatchOptions()


class Deltas(NamedTuple):
    """Timestamps as a batch stores them: each one's distance from the lowest."""

    width: int
    column: bytes
    base_ms: int
    max_ms: int


class Body(NamedTuple):
    """Everything behind the header, as columns. `offsets` is None where none is missing."""

    deltas: Deltas
    keys: PackedStrings
    values: PackedStrings
    headers: bytes = b""
    offsets: bytes | None = None


def encode_lists(
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    *,
    timestamps_ms: Timestamps,
    headers: Sequence[Sequence[tuple[str, bytes | None]]] | None = None,
    options: BatchOptions = PLAIN,
) -> bytearray:
    """One whole, sealed batch. One timestamp may stand for all; an `array('q')` of them is the
    fastest way to bring many.
    """
    count = len(values)
    if (keys is not None and len(keys) != count) or (headers is not None and len(headers) != count):
        raise InvalidRequest(f"{count} values, but another number of keys or headers")
    check_count(count)
    if count == 1 and not headers and options.compression is Compression.NONE:
        return _encode_one(keys[0] if keys else None, values[0], timestamps_ms, options)
    body = Body(
        pack_timestamps(timestamps_ms, count),
        ALL_NULL if keys is None else pack_strings(keys),
        pack_strings(values),
        b"" if headers is None else pack_headers(headers),
    )
    return assemble(body, options.header(count, body.deltas.base_ms, body.deltas.max_ms))


def check_count(count: int) -> None:
    """Refuse a batch of no records, or of too many."""
    if count < 1:
        raise InvalidRequest("a batch needs at least one record")
    if count > BATCH_RECORDS_MAX:
        raise BatchTooLarge(f"{count} records are over the limit of {BATCH_RECORDS_MAX}")


def pack_timestamps(timestamps_ms: Timestamps, count: int) -> Deltas:
    """The deltas of `count` timestamps, or of one that all records share."""
    if isinstance(timestamps_ms, int):
        _check_span(timestamps_ms, timestamps_ms)
        return Deltas(0, b"", timestamps_ms, timestamps_ms)
    if len(timestamps_ms) != count:
        raise InvalidRequest(f"{len(timestamps_ms)} timestamps for {count} records")
    if count > SMALL or isinstance(timestamps_ms, np.ndarray):
        try:
            many = np.asarray(timestamps_ms, np.int64)
        except OverflowError as error:
            raise InvalidRequest("a timestamp does not fit 64 bits") from error
        return _pack_many(many, int(many.min()), int(many.max()))
    low, high = min(timestamps_ms), max(timestamps_ms)
    _check_span(low, high)
    if low == high:
        return Deltas(0, b"", low, low)
    if high - low < 1 << 8:
        return Deltas(1, bytes([timestamp - low for timestamp in timestamps_ms]), low, high)
    return _pack_many(np.array(timestamps_ms, np.int64), low, high)


def _pack_many(timestamps_ms: NDArray[np.int64], low: int, high: int) -> Deltas:
    _check_span(low, high)
    span = high - low
    width = 0 if not span else next(w for w in (1, 2, 3, 4) if span < 1 << (0, 8, 16, 32, 63)[w])
    column = (timestamps_ms - low).astype(DELTA_DTYPES[width]).tobytes() if width else b""
    return Deltas(width, column, low, high)


def _check_span(low: int, high: int) -> None:
    if low < I64_MIN or high > I64_MAX or high - low > I64_MAX:
        raise InvalidRequest(f"timestamps from {low} to {high} do not fit 64 bits")


def assemble(body: Body, header: BatchHeader) -> bytearray:
    """The sealed batch of these columns under this header, whose length and CRC are filled in."""
    codec = header.compression
    deltas, keys, values, headers, offsets = body
    fixed = b"".join(
        (
            deltas.column,
            offsets or b"",
            keys.lengths,
            values.lengths,
            keys.validity,
            values.validity,
        )
    )
    key_data = keys.pieces[0] if len(keys.pieces) == 1 else b"".join(keys.pieces)
    key_length = len(fixed) + len(key_data)
    if codec is Compression.NONE:
        # One copy of the records, straight from where they are into the batch
        batch = bytearray().join((_BLANK, fixed, key_data, *values.pieces, headers))
        key_stored = key_length
        value_length = value_stored = len(batch) - SECTIONS_START - key_length
    else:
        value_section = b"".join((*values.pieces, headers))
        value_length = len(value_section)
        packed_keys = _smaller(codec, b"".join((fixed, key_data)))
        packed_values = _smaller(codec, value_section)
        batch = bytearray().join((_BLANK, packed_keys, packed_values))
        key_stored, value_stored = len(packed_keys), len(packed_values)
    _check_size(len(batch), key_length + value_length)
    flags = _flags(body)
    sections = (LAYOUT_VERSION, flags, key_length, key_stored, value_length, value_stored)
    PREFIX.pack_into(batch, 0, header[0], len(batch) - LENGTH_END, *header[2:], *sections)
    seal(batch)
    return batch


def _check_size(size: int, decoded: int) -> None:
    if size > BATCH_BYTES_MAX or decoded > BATCH_DECODED_BYTES_MAX:
        raise BatchTooLarge(
            f"a batch of {size} bytes, {decoded} decoded, is over the limits of {BATCH_BYTES_MAX} "
            f"and {BATCH_DECODED_BYTES_MAX}"
        )


def _smaller(codec: Compression, section: Buffer) -> Buffer:
    """The section compressed, or as it is where that is not larger: equal lengths mean raw."""
    packed = compress(codec, section)
    return packed if len(packed) < len(section) else section


def _flags(body: Body) -> int:
    deltas, keys, values, headers, offsets = body
    return (
        keys.width
        | values.width << VALUE_WIDTH_SHIFT
        | deltas.width << TIMESTAMP_SHIFT
        | (KEY_VALIDITY_FLAG if keys.validity else 0)
        | (VALUE_VALIDITY_FLAG if values.validity else 0)
        | (HEADERS_FLAG if headers else 0)
        | (0 if offsets is None else OFFSETS_FLAG)
    )


# -- one record -----------------------------------------------------------------------------------


def _encode_one(
    key: bytes | None,
    value: bytes | None,
    timestamps_ms: Timestamps,
    options: BatchOptions,
) -> bytearray:
    """The same bytes that `assemble` makes of one record without headers or compression."""
    timestamp_ms = pack_timestamps(timestamps_ms, 1).base_ms
    key_width, key_lengths = _pack_length(key)
    value_width, value_lengths = _pack_length(value)
    batch = bytearray().join((_BLANK, key_lengths, value_lengths, key or b"", value or b""))
    _check_size(len(batch), 0)
    value_length = 0 if value is None else len(value)
    key_length = len(batch) - SECTIONS_START - value_length
    PREFIX.pack_into(
        batch,
        0,
        0,
        len(batch) - LENGTH_END,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        options.attributes,
        0,
        timestamp_ms,
        timestamp_ms,
        options.producer_id,
        options.producer_epoch,
        options.base_sequence,
        1,
        LAYOUT_VERSION,
        key_width | value_width << VALUE_WIDTH_SHIFT,
        key_length,
        key_length,
        value_length,
        value_length,
    )
    seal(batch)
    return batch


def _pack_length(item: bytes | None) -> tuple[int, bytes]:
    if item is None:
        return 0, b""
    length = len(item)
    if length < 1 << 8:
        return 1, length.to_bytes(1, "little")
    if length < 1 << 16:
        return 2, length.to_bytes(2, "little")
    return 3, length.to_bytes(4, "little")
