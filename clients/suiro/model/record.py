"""One record, and the sequence of a batch's records, made as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, cast, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from suiro.model.columns import Columns

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """What a consumer sees of one record. `value` None is a tombstone.

    A named tuple, because it is the only kind of object that C code can make without a Python
    frame per record, and that decides how fast a poll can be walked.

    >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
    >>> record = consumer.poll(10)[0]
    >>> record.topic, record.partition, record.offset, record.key, record.value
    ('fruit', 0, 0, b'a', b'apple')
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Records(Sequence[Record]):
    """The records of one batch. The columns become Python objects once, when first needed; a
    Record is made anew each time it is asked for.
    """

    __slots__ = ("_fields", "_partition", "_topic", "columns")

    def __init__(self, columns: Columns, topic: str, partition: int) -> None:
        self.columns = columns
        self._topic = topic
        self._partition = partition
        self._fields: tuple[Sequence[object], ...] | None = None

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Record]:
        return self._make(self._materialised())

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return list(self._slice(index))
        fields = (field[index] for field in self._materialised())
        return Record._make((self._topic, self._partition, *fields))

    def between(self, start: int, end: int) -> Iterator[Record]:
        """Those from `start` up to `end`, not included."""
        return iter(self) if end - start == len(self) else self._slice(slice(start, end))

    def _slice(self, places: slice) -> Iterator[Record]:
        return self._make(field[places] for field in self._materialised())

    def _materialised(self) -> tuple[Sequence[object], ...]:
        if self._fields is None:
            columns = self.columns
            self._fields = (
                columns.offsets_list(),
                columns.timestamps_list(),
                columns.keys_list(),
                columns.values_list(),
                columns.headers_list(),
            )
        return self._fields

    def _make(self, fields: Iterable[Sequence[object]]) -> Iterator[Record]:
        rows = zip(repeat(self._topic), repeat(self._partition), *fields, strict=False)
        return cast("Iterator[Record]", map(tuple.__new__, repeat(Record), rows))
