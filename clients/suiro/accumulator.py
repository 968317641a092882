"""Records that wait to be sent, by partition, and when a batch of them should leave. Pure.

A batch leaves when it is full, when it has waited `linger_ms`, or at once when nothing of its
broker's line is under way: an idle line never waits, but for a sender that is in full flow. What
has left belongs to `sequences`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.encode import BatchOptions
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import TopicPartition


class Run(Protocol):
    """A run of records on its way into a batch."""

    size: int
    is_followed: bool
    """Whether more is surely coming behind it, within the blink of an eye."""

    def __len__(self) -> int: ...
    def joins(self, other: Run) -> bool:
        """Whether one batch may hold both."""

    def encode(self, runs: Sequence[Run], options: BatchOptions) -> bytearray:
        """One batch of these runs, in their order; all of them join this one."""

    def settle(self, partition: int, base_offset: int, error: SuiroError | None) -> None: ...


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one partition that travel together."""

    partition: TopicPartition
    deadline_ms: float
    created_ms: float
    runs: list[Run] = field(default_factory=list)
    count: int = 0
    size: int = 0
    encoded: bytes | bytearray | None = None
    error: SuiroError | None = None
    """Why the last attempt failed, for whoever gives up in the end."""

    def __len__(self) -> int:
        return self.count

    def encode(self, options: BatchOptions) -> None:
        self.encoded = self.runs[0].encode(self.runs, options)

    def settle(self, outcome: int | SuiroError) -> None:
        """It is stored from this offset on (-1: nobody knows), or it is not."""
        error, offset = (None, outcome) if isinstance(outcome, int) else (outcome, -1)
        for run in self.runs:
            run.settle(self.partition.partition, offset, error)
            if offset >= 0:
                offset += len(run)


class Accumulator:
    """Batches by partition; the last one of each is still open for more."""

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

    def add(self, partition: TopicPartition, run: Run, now_ms: float) -> None:
        """Add a run that is no larger than a batch may be."""
        queue = self._queues.setdefault(partition, deque())
        batch = queue[-1] if queue else None
        if batch is None or not self._fits(batch, run):
            batch = Batch(partition, now_ms + self._delivery_timeout_ms, now_ms)
            queue.append(batch)
        batch.runs.append(run)
        batch.count += len(run)
        batch.size += run.size

    def partitions(self) -> list[TopicPartition]:
        """Those with anything to send, in the order in which they first had."""
        return list(self._queues)

    def due_in_ms(self, partition: TopicPartition, now_ms: float, *, idle: bool = False) -> float:
        """How long until the first batch of a partition should leave; 0: now. `idle`: nothing of
        its line is under way.
        """
        queue = self._queues[partition]
        first = queue[0]
        if len(queue) > 1 or first.size >= self._batch_bytes or first.count >= self._batch_records:
            return 0.0
        if idle and not first.runs[-1].is_followed:
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

    def _fits(self, batch: Batch, run: Run) -> bool:
        return (
            batch.size + run.size <= self._batch_bytes
            and batch.count + len(run) <= self._batch_records
            and batch.runs[0].joins(run)
        )
