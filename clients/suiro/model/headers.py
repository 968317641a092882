"""The headers block: the record headers of a whole batch as columns.

    u8 widths | u32 total | counts[records] | name lengths[total] | value lengths[total]
    | validity | name data | value data

Names are UTF-8 and never null; values may be. A block exists only where some record has a header.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from suiro.model.errors import BatchTooLarge, CorruptBatch, InvalidRequest
from suiro.model.layout import (
    HEADER_VALIDITY_FLAG,
    HEADER_VALUE_WIDTH_SHIFT,
    HEADERS_PRELUDE,
    KNOWN_HEADER_FLAGS,
    LENGTH_DTYPES,
    NAME_WIDTH_SHIFT,
    WIDTH_MASK,
)
from suiro.model.limits import HEADERS_PER_BATCH_MAX, HEADERS_PER_RECORD_MAX
from suiro.model.section import check_strings, total_bytes
from suiro.model.strings import (
    ALL_NULL,
    BinaryColumn,
    PackedStrings,
    narrow_lengths,
    pack_lengths,
    pack_strings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suiro.model.record import Headers
    from suiro.model.section import Section


@dataclass(slots=True, eq=False)
class HeaderColumn:
    """The headers of every record: `counts` says how many of the names and values are whose."""

    counts: NDArray[np.integer]
    names: BinaryColumn
    values: BinaryColumn | None

    def to_list(self) -> list[Headers]:
        """One tuple of (name, value) pairs per record."""
        raw_names: list[bytes] = self.names.to_list()  # type: ignore[assignment]
        known = {name: name.decode() for name in dict.fromkeys(raw_names)}  # a few, used over again
        values = [None] * len(raw_names) if self.values is None else self.values.to_list()
        pairs = zip(map(known.__getitem__, raw_names), values, strict=True)
        count = int(self.counts[0])
        if count and (self.counts == count).all():
            return list(zip(*[pairs] * count, strict=True))
        return [tuple(islice(pairs, count)) for count in self.counts.tolist()]

    def select(self, keep: NDArray[np.bool_]) -> bytes:
        """The block of the records where `keep` is true."""
        kept = np.repeat(keep, self.counts)
        values = ALL_NULL if self.values is None else self.values.select(kept)
        return pack_header_columns(self.counts[keep], self.names.select(kept), values)


def pack_headers(headers: Sequence[Sequence[tuple[str, bytes | None]]]) -> bytes:
    """The block of these headers; nothing where no record has any."""
    pairs = list(chain.from_iterable(headers))
    if not pairs:
        return b""
    names, values = zip(*pairs, strict=True)
    counts = np.fromiter(map(len, headers), np.int64, len(headers))
    return pack_header_columns(counts, _pack_names(names), pack_strings(values))


def _pack_names(names: Sequence[str]) -> PackedStrings:
    text = "".join(names)
    if text.isascii():  # then characters are bytes, and all names are encoded at once
        width, column = pack_lengths(list(map(len, names)))
        return PackedStrings(width, column, b"", (text.encode(),))
    try:
        return pack_strings([name.encode() for name in names])
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"a header name is not text: {error}") from error


def pack_header_columns(
    counts: NDArray[np.integer], names: PackedStrings, values: PackedStrings
) -> bytes:
    """The block of headers that are columns already."""
    total = int(counts.sum(dtype=np.int64))
    if not total:
        return b""
    if total > HEADERS_PER_BATCH_MAX or int(counts.max()) > HEADERS_PER_RECORD_MAX:
        raise BatchTooLarge(
            f"{total} headers in a batch, at most {int(counts.max())} in a record: the limits are "
            f"{HEADERS_PER_BATCH_MAX} and {HEADERS_PER_RECORD_MAX}"
        )
    count_width, count_column = narrow_lengths(counts)
    widths = (
        count_width
        | names.width << NAME_WIDTH_SHIFT
        | values.width << HEADER_VALUE_WIDTH_SHIFT
        | (HEADER_VALIDITY_FLAG if values.validity else 0)
    )
    prelude = HEADERS_PRELUDE.pack(widths, total)
    columns = (count_column, names.lengths, values.lengths, values.validity)
    return b"".join((prelude, *columns, *names.pieces, *values.pieces))


def read_headers(section: Section, count: int) -> HeaderColumn:
    """The block that fills the rest of the section."""
    widths, total = HEADERS_PRELUDE.unpack(section.take(HEADERS_PRELUDE.size))
    count_width = widths & WIDTH_MASK
    name_width = widths >> NAME_WIDTH_SHIFT & WIDTH_MASK
    value_width = widths >> HEADER_VALUE_WIDTH_SHIFT & WIDTH_MASK
    if widths & ~KNOWN_HEADER_FLAGS or not count_width or not name_width:
        raise CorruptBatch(f"impossible header widths {widths:#04x}")
    if widths & HEADER_VALIDITY_FLAG and not value_width:
        raise CorruptBatch("header values that are all null have no validity bitmap")
    if not 0 < total <= HEADERS_PER_BATCH_MAX:
        raise CorruptBatch(f"{total} headers are outside [1, {HEADERS_PER_BATCH_MAX}]")
    counts = section.numbers(LENGTH_DTYPES[count_width], count)
    name_lengths = section.numbers(LENGTH_DTYPES[name_width], total)
    assert counts is not None
    assert name_lengths is not None
    if total_bytes(counts) != total or int(counts.max()) > HEADERS_PER_RECORD_MAX:
        raise CorruptBatch(f"the records' header counts do not add up to {total}")
    value_lengths = section.numbers(LENGTH_DTYPES[value_width], total)
    validity = section.bitmap(widths & HEADER_VALIDITY_FLAG, total)
    check_strings(value_lengths, validity)
    names = BinaryColumn(name_lengths, section.take(total_bytes(name_lengths)), None)
    _check_names(names)
    value_bytes = total_bytes(value_lengths)
    if value_bytes != section.left:
        raise CorruptBatch(f"header values of {value_bytes} bytes do not fill {section.left}")
    values = None
    if value_lengths is not None:
        values = BinaryColumn(value_lengths, section.take(value_bytes), validity)
    return HeaderColumn(counts, names, values)


def _check_names(names: BinaryColumn) -> None:
    """Each name is UTF-8: all of them as one text are, and none starts inside a character."""
    text = bytes(names.data)
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise CorruptBatch(f"a header name is not UTF-8: {error}") from error
    starts = names.arrow_offsets()[:-1][names.lengths > 0]
    if ((np.frombuffer(text, np.uint8)[starts] & 0xC0) == 0x80).any():
        raise CorruptBatch("a header name starts inside a character")
