"""What has been fetched of one partition and not been polled yet. Pure.

Batches are decoded when a poll reaches them; what is taken are runs of their columns, for `polled`
or `polled_table` to make something of. The position is where the next poll begins; the fetch end is
where the next fetch does. Credit is given back by the chunk, once it is used up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.columns import decode
from suiro.polled import ColumnRun

if TYPE_CHECKING:
    from suiro.model.batch import Buffer
    from suiro.model.ids import TopicPartition
    from suiro.model.record import Records


@dataclass(slots=True)
class _Chunk:
    data: Buffer
    next_offset: int
    last_epoch: int
    read: int = 0


class FetchBuffer:
    """Chunks of whole batches in offset order, and the batch being read."""

    def __init__(self, partition: TopicPartition, position: int, last_epoch: int = -1) -> None:
        self.partition = partition
        self.position = position
        self.fetch_end = position
        self.last_epoch = last_epoch
        """The leader epoch of the last record before the position; -1 if nobody knows."""
        self.fetched_epoch = last_epoch
        """The same for the fetch end."""
        self.size = 0
        self._chunks: deque[_Chunk] = deque()
        self._records: Records | None = None
        self._taken = 0
        self._count = 0
        self._freed = 0

    def __bool__(self) -> bool:
        return bool(self._chunks) or self._taken < self._count

    def add(self, data: Buffer, next_offset: int, last_epoch: int = -1) -> None:
        """What a fetch brought; it goes on at `next_offset`, behind a record of `last_epoch`."""
        assert next_offset >= self.fetch_end, "a fetch went back"
        self._chunks.append(_Chunk(data, next_offset, last_epoch))
        self.size += len(data)
        self.fetch_end = next_offset
        self.fetched_epoch = last_epoch

    def take(self, records_max: int) -> list[ColumnRun]:
        """Up to that many records from the position on; the position moves behind them."""
        runs: list[ColumnRun] = []
        left = records_max
        while left > 0 and self._at_batch():
            assert self._records is not None
            end = min(self._taken + left, self._count)
            runs.append(ColumnRun(self._records, self._taken, end))
            left -= end - self._taken
            self._advance(end)
        return runs

    def take_credit(self, least: int = 1) -> int:
        """Bytes used up, which may be sent again, if there are so many: else 0, and they wait."""
        if self._freed < least:
            return 0
        freed, self._freed = self._freed, 0
        return freed

    def _advance(self, taken: int) -> None:
        assert self._records is not None
        columns = self._records.columns
        self._taken = taken
        self.position = columns.offset_at(taken - 1) + 1
        self.last_epoch = columns.header.leader_epoch
        if taken == self._count:
            self._records = None
            self._drop_read_chunk()

    def _at_batch(self) -> bool:
        """Whether there is a record to take; opens the next batch if need be."""
        while self._taken == self._count:
            if not self._chunks:
                return False
            chunk = self._chunks[0]
            if chunk.read < len(chunk.data):
                self._open(chunk)
            else:
                self._drop_read_chunk()
        return True

    def _open(self, chunk: _Chunk) -> None:
        columns = decode(chunk.data, chunk.read)
        chunk.read += columns.header.size
        self._records = columns.records(self.partition.topic, self.partition.partition)
        self._count = len(columns)
        # The first batch may begin before the position: batches are never cut.
        self._taken = 0
        if columns.header.base_offset < self.position:
            self._taken = columns.index_of(self.position)

    def _drop_read_chunk(self) -> None:
        """Behind the last batch of a chunk: what was left out after it is passed over too."""
        if self._chunks and self._chunks[0].read == len(self._chunks[0].data):
            chunk = self._chunks.popleft()
            self.size -= len(chunk.data)
            self._freed += len(chunk.data)
            self.position = max(self.position, chunk.next_offset)
            self.last_epoch = chunk.last_epoch
