"""What has been fetched of one partition and not been polled yet. Pure.

Batches are decoded when a poll reaches them. The position is where the next poll begins; the
fetch end is where the next fetch does. Credit is given back by the chunk, once it is used up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.batch import read_header
from suiro.model.columns import decode

if TYPE_CHECKING:
    from suiro.model.batch import Buffer
    from suiro.model.ids import TopicPartition
    from suiro.model.record import Record


@dataclass(slots=True)
class _Chunk:
    data: Buffer
    next_offset: int
    read: int = 0


class FetchBuffer:
    """Chunks of whole batches in offset order, and the records of the batch being read."""

    def __init__(self, partition: TopicPartition, position: int) -> None:
        self.partition = partition
        self.position = position
        self.fetch_end = position
        self.last_epoch = -1
        self._chunks: deque[_Chunk] = deque()
        self._records: list[Record] = []
        self._taken = 0
        self._freed = 0

    def __bool__(self) -> bool:
        return bool(self._chunks) or self._taken < len(self._records)

    def add(self, data: Buffer, next_offset: int) -> None:
        """What a fetch brought; `next_offset` is where it goes on."""
        assert next_offset >= self.fetch_end, "a fetch went back"
        self._chunks.append(_Chunk(data, next_offset))
        self.fetch_end = next_offset

    def take(self, records_max: int) -> list[Record]:
        """Up to that many records from the position on; the position moves behind them."""
        taken: list[Record] = []
        while len(taken) < records_max and self:
            if self._taken == len(self._records):
                self._open_next_batch()
                continue
            some = self._records[self._taken : self._taken + records_max - len(taken)]
            self._taken += len(some)
            self.position = some[-1].offset + 1
            taken += some
        if not self:
            self.position = max(self.position, self.fetch_end)
        return taken

    def take_credit(self) -> int:
        """Bytes used up since the last call: as many may be sent again."""
        freed, self._freed = self._freed, 0
        return freed

    def _open_next_batch(self) -> None:
        chunk = self._chunks[0]
        if chunk.read == len(chunk.data):
            self._chunks.popleft()
            self._freed += len(chunk.data)
            self.position = max(self.position, chunk.next_offset)
            return
        header = read_header(chunk.data, chunk.read)
        columns = decode(chunk.data, chunk.read)
        chunk.read += header.size
        self.last_epoch = header.leader_epoch
        records = columns.records(self.partition.topic, self.partition.partition)
        # The first batch may begin before the position: batches are never cut.
        self._records = [record for record in records if record.offset >= self.position]
        self._taken = 0
