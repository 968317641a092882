"""What a poll took, as records that are made when they are walked over.

Most records are looked at once. Made one by one they are still in the cache when they are used, and
the garbage collector never has to look through thousands of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suiro.model.columns import Columns
    from suiro.model.record import Record, Records


@dataclass(frozen=True, slots=True)
class ColumnRun:
    """Some rows of one batch: those from `start` up to `end`, not included."""

    records: Records
    start: int
    end: int

    @property
    def columns(self) -> Columns:
        return self.records.columns

    def __len__(self) -> int:
        return self.end - self.start


class Polled(Sequence["Record"]):
    """The records of one poll, to be used like a list of them; `list(polled)` makes one.

    >>> consumer.assign(consumer.partitions_of("fruit"))
    >>> records = consumer.poll(10)
    >>> records[0].value, len(records)
    (b'apple', 2)
    >>> [record.key for record in records]
    [b'a', b'b']
    """

    __slots__ = ("_count", "_runs")

    def __init__(self, runs: Sequence[ColumnRun]) -> None:
        self._runs = runs
        self._count = sum(map(len, runs))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(run.records.between(run.start, run.end) for run in self._runs)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return list(self)[index]
        place = range(self._count)[index]  # as lists do: negative from the end, or IndexError
        for run in self._runs:
            if place < len(run):
                return run.records[run.start + place]
            place -= len(run)
        raise AssertionError("the lengths of the runs add up to the count")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
