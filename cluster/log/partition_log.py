"""One partition on disk (SIGNATURES ONLY; the bodies follow within the hour)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from suiro.model.batch import BatchHeader, Buffer
    from suiro.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition

    from cluster.host.fs import Fs
    from cluster.host.store import Store
    from cluster.log.config import LogConfig


@dataclass(frozen=True, slots=True)
class AppendInfo:
    """Where an append went. `base_offsets` has one entry per batch that was handed in; a duplicate
    has the offset it got the first time. The ack is due when everything below `end` is committed,
    for duplicates too (I2). `appended` is False when all were duplicates.
    """

    base_offsets: tuple[Offset, ...]
    end: Offset
    appended: bool

    @property
    def base_offset(self) -> Offset:
        return self.base_offsets[0]


@dataclass(frozen=True, slots=True)
class LogHome:
    """Where a log lives: `<root>/<topic>-<partition>/`, and the store of that root."""

    fs: Fs
    store: Store
    root: Path
    partition: TopicPartition
    topic_id: TopicId


class PartitionLog:
    """Synchronous; belongs to the loop's thread, except `sync`, which may run in another one.

    Errors: StorageFailed (sticky after a failed write or sync), DiskFull (nothing was stored),
    CorruptBatch (hints: segment, position), OffsetOutOfRange.
    """

    config: LogConfig  # may be replaced while running

    @classmethod
    def open(
        cls,
        home: LogHome,
        config: LogConfig,
        *,
        now_ms: int,
        clean: bool,
        discard: Callable[[Callable[[], None]], None],
    ) -> PartitionLog:
        """Open or create. `clean`: the root's clean-shutdown mark was there (Checkpoints.take_clean).
        `discard(work)`: run `work` some time later, in a thread: it unlinks files.
        Raises TopicIdMismatch if the directory is another topic's; StorageFailed if a hole or
        damage below the recovery point shows that data is gone.
        """

    # -- what is there
    @property
    def log_start(self) -> Offset: ...
    @property
    def log_end(self) -> Offset: ...
    @property
    def synced_end(self) -> Offset: ...
    @property
    def last_epoch(self) -> LeaderEpoch: ...  # of the last batch; NO_LEADER_EPOCH if none is known
    @property
    def size_bytes(self) -> int: ...
    def last_stable_offset(self, high_watermark: Offset) -> Offset: ...
    def end_offset_for(self, leader_epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        """Largest epoch <= asked, and its end; None if the log knows no epoch."""

    def epoch_of(self, offset: Offset) -> LeaderEpoch | None: ...
    def first_batch_header_at(self, offset: Offset) -> BatchHeader | None: ...
    def offset_for_timestamp(self, timestamp_ms: int) -> Offset | None:
        """Start of the first batch with a record at or after; the exact record is in the payload."""

    # aborted(start, end) -> Sequence[AbortedRange(producer_id, first, last)]

    # -- writing
    def append_as_leader(
        self, batches: Buffer | Sequence[Buffer], leader_epoch: LeaderEpoch, now_ms: int
    ) -> AppendInfo: ...
    def append_control(
        self, batch: Buffer, leader_epoch: LeaderEpoch, now_ms: int
    ) -> AppendInfo: ...  # a transaction marker; its producer epoch is above that of the records
    def append_as_follower(self, data: Buffer, now_ms: int) -> AppendInfo: ...

    # -- reading
    def read(self, offset: Offset, bytes_max: int, until: Offset) -> bytes: ...

    # -- cutting
    def truncate_to(self, offset: Offset, now_ms: int) -> Offset:
        """Cut the end; returns the new log end (<= offset: whole batches)."""

    def trim_to(self, offset: Offset) -> None:
        """Move the log start forward, durably, then drop whole segments below it."""

    def restart_at(self, offset: Offset, now_ms: int) -> None:
        """Drop everything; the next append goes to `offset` (a follower below the leader's start)."""

    def apply_retention(self, high_watermark: Offset, now_ms: int) -> Offset:
        """Trim what retention allows; returns the log start."""

    # -- durability
    def sync(self) -> Offset:
        """Blocking. Everything below the returned offset is on stable storage."""

    def sync_due(self, now_ms: int) -> bool:
        """The flush policy says that `sync` should run now."""

    def checkpoint(self, high_watermark: Offset, now_ms: int) -> None:
        """Save the hints (recovery point, high watermark) without sync; expire producers."""

    def close(self) -> None:
        """Sync, save a snapshot, close the files. After all logs: Checkpoints.mark_clean(epoch)."""
