"""Which ranges of the log belong to aborted transactions: `AbortedIndex`.

A batch is aborted if it is transactional and lies in an aborted range of its producer. Ranges are
kept in the order of their markers. With each goes the offset below which every transaction was
decided when the marker came, so that a query knows when no later range can reach back into it.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from suiro.model.batch import Buffer
    from suiro.model.ids import Offset

_ENTRY: Final = struct.Struct("<qqqq")
_LAST: Final = attrgetter("last")


class AbortedRange(NamedTuple):
    """One aborted transaction: `last` is its marker's offset, and belongs to it."""

    producer_id: int
    first: int
    last: int
    stable: int
    """Every transaction that began below this was decided when the marker was written."""


class AbortedIndex:
    """The aborted ranges of one partition."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[AbortedRange] = []

    def __len__(self) -> int:
        return len(self._ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbortedIndex) and self._ranges == other._ranges

    __hash__ = None  # type: ignore[assignment]

    def add(self, aborted: AbortedRange) -> None:
        assert aborted.first < aborted.last
        assert not self._ranges or self._ranges[-1].last < aborted.last
        self._ranges.append(aborted)

    def overlapping(self, start: Offset, end: Offset) -> list[AbortedRange]:
        """The ranges that have an offset in [start, end), in the order of their markers."""
        found = []
        for at in range(bisect_left(self._ranges, start, key=_LAST), len(self._ranges)):
            aborted = self._ranges[at]
            if aborted.first < end:
                found.append(aborted)
            if aborted.stable >= end:
                break
        return found

    def truncate_from_end(self, end: Offset) -> None:
        """The log ends at `end` now; a range whose marker is gone is open again, not aborted."""
        del self._ranges[bisect_left(self._ranges, end, key=_LAST) :]

    def truncate_from_start(self, start: Offset) -> None:
        """The log starts at `start` now."""
        del self._ranges[: bisect_left(self._ranges, start, key=_LAST)]

    def encode(self) -> bytes:
        return b"".join([_ENTRY.pack(*aborted) for aborted in self._ranges])

    @classmethod
    def decode(cls, data: Buffer) -> AbortedIndex:
        """The inverse of `encode`; ValueError or struct.error if it was not made by it."""
        index = cls()
        for fields in _ENTRY.iter_unpack(data):
            aborted = AbortedRange._make(fields)
            if index._ranges and index._ranges[-1].last >= aborted.last:
                raise ValueError("aborted ranges are out of order")
            index._ranges.append(aborted)
        return index
