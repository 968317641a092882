"""Records that wait to be sent, by partition, and when a batch of them should leave. Pure.

A batch leaves when it is full, when it has waited `linger_ms`, or at once when nothing of its
broker's line is under way: an idle line never waits. What has left belongs to `sequences`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import TopicPartition

RECORD_OVERHEAD = 16
"""Bytes that a record costs beside its key, value and headers; for accounting only."""


@dataclass(slots=True)
class Batch:
    """Rows of one partition that travel together."""

    partition: TopicPartition
    deadline_ms: float
    created_ms: float
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    handles: list[Any] = field(default_factory=list)
    size: int = 0
    encoded: bytes | bytearray | None = None
    error: SuiroError | None = None
    """Why the last attempt failed, for whoever gives up in the end."""

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Row:
    """One record on its way into a batch."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Any
    handle: Any

    @property
    def size(self) -> int:
        headers = sum(len(name) + len(value or b"") for name, value in self.headers or ())
        return len(self.key or b"") + len(self.value or b"") + headers + RECORD_OVERHEAD


class Accumulator:
    """Batches by partition; the last one of each is still open for more rows."""

    def __init__(
        self, *, batch_bytes: int, batch_records: int, linger_ms: float, delivery_timeout_ms: float
    ) -> None:
        self._batch_bytes = batch_bytes
        self._batch_records = batch_records
        self._linger_ms = linger_ms
        self._delivery_timeout_ms = delivery_timeout_ms
        self._queues: dict[TopicPartition, deque[Batch]] = {}

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._queues.values())

    def add(self, partition: TopicPartition, row: Row, size: int, now_ms: float) -> None:
        queue = self._queues.setdefault(partition, deque())
        batch = queue[-1] if queue else None
        if batch is None or self._is_full(batch, size):
            batch = Batch(partition, now_ms + self._delivery_timeout_ms, now_ms)
            queue.append(batch)
        batch.keys.append(row.key)
        batch.values.append(row.value)
        batch.timestamps_ms.append(row.timestamp_ms)
        batch.headers.append(row.headers)
        batch.handles.append(row.handle)
        batch.size += size

    def partitions(self) -> list[TopicPartition]:
        """Those with anything to send, in the order in which they first had."""
        return [partition for partition, queue in self._queues.items() if queue]

    def due_in_ms(self, partition: TopicPartition, now_ms: float) -> float:
        """How long until the first batch of a partition should leave; 0: now."""
        queue = self._queues[partition]
        first = queue[0]
        if len(queue) > 1 or self._is_full(first, 1):
            return 0.0
        return max(0.0, first.created_ms + self._linger_ms - now_ms)

    def take(self, partition: TopicPartition) -> Batch | None:
        """The next batch of a partition; it is closed from now on."""
        queue = self._queues.get(partition)
        if not queue:
            return None
        batch = queue.popleft()
        if not queue:
            del self._queues[partition]
        return batch

    def take_expired(self, now_ms: float) -> list[Batch]:
        """Batches whose delivery deadline has passed."""
        expired = []
        for partition in list(self._queues):
            queue = self._queues[partition]
            while queue and queue[0].deadline_ms <= now_ms:
                expired.append(queue.popleft())
            if not queue:
                del self._queues[partition]
        return expired

    def take_all(self) -> list[Batch]:
        """Everything: the producer is closing."""
        batches = [batch for queue in self._queues.values() for batch in queue]
        self._queues.clear()
        return batches

    def _is_full(self, batch: Batch, more: int) -> bool:
        return batch.size + more > self._batch_bytes or len(batch) >= self._batch_records
