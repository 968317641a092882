"""Where in a segment an offset or a point in time is found: two sparse indexes.

Both have one entry per `index_interval_bytes` of data, made at the same moments, so entry i of one
belongs to entry i of the other. The file form is a run of blocks, each with its own checksum: a
torn, zero-filled or damaged tail is recognised and dropped, and what comes before it still serves.
An index is a hint. Whoever uses it checks the batch that it points to, and walks on from there.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.batch import Buffer

_BLOCK: Final = struct.Struct("<II")
"""Number of entries (never 0, so that zeros are not a block) and the CRC-32 of count and entries.
"""
_OFFSET_ENTRY: Final = struct.Struct("<II")
_TIME_ENTRY: Final = struct.Struct("<qI")


class OffsetIndex:
    """Relative offset -> position of the batch that starts there.

    Both columns rise strictly; the segment's first batch, at position 0, needs no entry.
    """

    __slots__ = ("_positions", "_relatives")

    def __init__(self) -> None:
        self._relatives = array("I")
        self._positions = array("I")

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def last(self) -> tuple[int, int]:
        """Relative offset and position of the last entry; (0, 0) if there is none."""
        return (self._relatives[-1], self._positions[-1]) if self._positions else (0, 0)

    def add(self, relative: int, position: int) -> None:
        last_relative, last_position = self.last
        assert relative > last_relative
        assert position > last_position
        self._relatives.append(relative)
        self._positions.append(position)

    def floor(self, relative: int) -> tuple[int, int]:
        """The entry of the largest offset <= `relative`; (0, 0) if all are larger."""
        at = bisect_right(self._relatives, relative)
        return (self._relatives[at - 1], self._positions[at - 1]) if at else (0, 0)

    def position_from(self, relative: int, default: int) -> int:
        """Where the first indexed batch at or above `relative` starts; `default` if none is."""
        at = bisect_left(self._relatives, relative)
        return self._positions[at] if at < len(self._positions) else default

    def count_below(self, relative: int) -> int:
        """How many entries are below an offset."""
        return bisect_left(self._relatives, relative)

    def keep(self, count: int) -> None:
        """Forget all but the first `count` entries."""
        del self._relatives[count:], self._positions[count:]

    def encode(self, start: int) -> bytes:
        """The entries from number `start` on, as one block."""
        entries = zip(self._relatives[start:], self._positions[start:], strict=True)
        return _encode_block(_OFFSET_ENTRY, entries)

    @classmethod
    def decode(cls, data: Buffer) -> tuple[OffsetIndex, bool]:
        """What is good of a file's content, and whether that is all of it."""
        index = cls()
        entries, whole = _decode_blocks(_OFFSET_ENTRY, data)
        for relative, position in entries:
            last_relative, last_position = index.last
            if relative <= last_relative or position <= last_position:
                return index, False
            index.add(relative, position)
        return index, whole


class TimeIndex:
    """The largest timestamp before each entry of the offset index, and where it came first.

    Timestamps never fall from one entry to the next.
    """

    __slots__ = ("_relatives", "_timestamps")

    def __init__(self) -> None:
        self._timestamps = array("q")
        self._relatives = array("I")

    def __len__(self) -> int:
        return len(self._timestamps)

    def __getitem__(self, at: int) -> tuple[int, int]:
        return self._timestamps[at], self._relatives[at]

    def add(self, timestamp_ms: int, relative: int) -> None:
        assert not self._timestamps or timestamp_ms >= self._timestamps[-1]
        self._timestamps.append(timestamp_ms)
        self._relatives.append(relative)

    def floor(self, timestamp_ms: int) -> int:
        """A relative offset before which every timestamp is below `timestamp_ms`."""
        at = bisect_right(self._timestamps, timestamp_ms)
        return self._relatives[at - 1] if at else 0

    def keep(self, count: int) -> None:
        """Forget all but the first `count` entries."""
        del self._timestamps[count:], self._relatives[count:]

    def encode(self, start: int) -> bytes:
        """The entries from number `start` on, as one block."""
        entries = zip(self._timestamps[start:], self._relatives[start:], strict=True)
        return _encode_block(_TIME_ENTRY, entries)

    @classmethod
    def decode(cls, data: Buffer) -> tuple[TimeIndex, bool]:
        """What is good of a file's content, and whether that is all of it."""
        index = cls()
        entries, whole = _decode_blocks(_TIME_ENTRY, data)
        for timestamp_ms, relative in entries:
            if index._timestamps and timestamp_ms < index._timestamps[-1]:
                return index, False
            index.add(timestamp_ms, relative)
        return index, whole


def _encode_block(layout: struct.Struct, entries: Iterable[tuple[int, int]]) -> bytes:
    body = b"".join([layout.pack(*entry) for entry in entries])
    count = len(body) // layout.size
    assert count > 0
    return _BLOCK.pack(count, _checksum(count, body)) + body


def _decode_blocks(layout: struct.Struct, data: Buffer) -> tuple[list[tuple[int, int]], bool]:
    """The entries of every good block up to the first bad one, and whether none is bad."""
    entries: list[tuple[int, int]] = []
    view = memoryview(data)
    at = 0
    while at < len(view):
        if len(view) - at < _BLOCK.size:
            return entries, False
        count, checksum = _BLOCK.unpack_from(view, at)
        body = view[at + _BLOCK.size : at + _BLOCK.size + count * layout.size]
        if not count or len(body) != count * layout.size or _checksum(count, body) != checksum:
            return entries, False
        entries += layout.iter_unpack(body)
        at += _BLOCK.size + len(body)
    return entries, True


def _checksum(count: int, body: Buffer) -> int:
    return crc32(body, count)
