"""One partition on disk: `PartitionLog`.

Batches go in at the end and come out by offset; the log gives them offsets, checks their producers
and knows what their headers imply, but never looks at records. Always: `log_start <= log_end`;
offsets between them have no gap; `state` is what the batches below `log_end` imply; nothing is
acknowledged as synced that is not on stable storage.

Everything blocks, briefly: the log belongs to the loop's thread. Only `sync` blocks for long, and
may run in another thread while this one goes on appending. After a failed write or sync the log
refuses every further write: nobody knows what the disk holds then, and a second sync that succeeds
proves nothing. High watermarks, leadership and who waits for what are the broker's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.batch import read_header
from suiro.model.compact import filler, is_filler
from suiro.model.errors import CorruptBatch, DiskFull, OffsetOutOfRange, StorageFailed
from suiro.model.ids import Offset
from suiro.model.limits import CHECKPOINT_MS

from cluster.log.clean_plan import CleanHistory, plan_cleaning
from cluster.log.cleaner import Cleaning
from cluster.log.compaction import Facts
from cluster.log.config import Flush
from cluster.log.drafts import LeaderDraft, draft_replica
from cluster.log.failures import Failures
from cluster.log.recovery import Recovery, rebuild_state
from cluster.log.retention import retained_from, segment_facts
from cluster.log.scrub import Scrub
from cluster.log.segment import RELATIVE_MAX
from cluster.log.segment_run import SegmentRun
from cluster.log.state import LogState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.batch import BatchHeader, Buffer
    from suiro.model.ids import LeaderEpoch

    from cluster.log.aborted import AbortedRange
    from cluster.log.clean_plan import CleanPlan
    from cluster.log.config import LogConfig
    from cluster.log.drafts import Draft
    from cluster.log.epochs import EpochEnd
    from cluster.log.home import LogHome
    from cluster.log.producers import ProducerStates
    from cluster.log.recovery import Recovered


@dataclass(frozen=True, slots=True)
class AppendInfo:
    """Where an append went.

    `base_offsets` has one entry per batch that was handed in; a duplicate has the offset it got
    the first time. The ack is due when everything below `end` is committed, for duplicates too
    (I2). Nothing was appended when all were duplicates.
    """

    base_offsets: tuple[Offset, ...]
    end: Offset
    appended: bool

    @property
    def base_offset(self) -> Offset:
        return self.base_offsets[0]


class PartitionLog:
    """The log of one replica. Open it with `PartitionLog.open`."""

    def __init__(
        self,
        home: LogHome,
        config: LogConfig,
        recovered: Recovered,
        discard: Callable[[Callable[[], None]], None],
    ) -> None:
        self.home = home
        self.config = config
        self.recovery = recovered.report
        self.saved_high_watermark = recovered.high_watermark
        self._checkpoint = home.checkpoint()
        self._segments = SegmentRun(home, recovered.segments, recovered.recovery_point, discard)
        self._state = recovered.state
        self._log_start = recovered.log_start
        self._history = self._checkpoint.history()
        self.failures = Failures(home)
        self._unsynced_since_ms: int | None = None

    @classmethod
    def open(
        cls,
        home: LogHome,
        config: LogConfig,
        *,
        now_ms: int,
        discard: Callable[[Callable[[], None]], None],
    ) -> PartitionLog:
        """Open the log, or make it; `discard(work)` runs `work`, which unlinks files, some time
        later in a thread.

        Raises TopicIdMismatch if the directory is another topic's, StorageFailed if data that was
        on stable storage is not there any more.
        """
        try:
            home.move_in()
        except OSError as error:
            raise StorageFailed(f"{home.partition} cannot be opened: {error}") from error
        recovery = Recovery(home.fs, home.directory, config, home.checkpoint(), now_ms)
        return cls(home, config, recovery.run(), discard)

    # -- what is there ----------------------------------------------------------------------------

    @property
    def log_start(self) -> Offset:
        return self._log_start

    @property
    def log_end(self) -> Offset:
        return self._segments.end

    @property
    def synced_end(self) -> Offset:
        """Everything below is on stable storage."""
        return self._segments.synced_end

    @property
    def size_bytes(self) -> int:
        return self._segments.size

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def state(self) -> LogState:
        """What the content implies; read only."""
        return self._state

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The leader epoch of the last batch, or NO_LEADER_EPOCH."""
        return self._state.epochs.last

    def end_offset_for(self, leader_epoch: LeaderEpoch) -> EpochEnd | None:
        """The largest epoch <= the one asked for, and its end; None if the log knows none."""
        return self._state.epochs.end_offset_for(leader_epoch, self.log_end)

    def epoch_of(self, offset: Offset) -> LeaderEpoch | None:
        return self._state.epochs.epoch_of(offset)

    @property
    def producers(self) -> ProducerStates:
        """For looking only."""
        return self._state.producers

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Up to where every transaction is decided, by markers below the high watermark; never
        below the log start, also if a transaction began there.
        """
        self._state.producers.forget_decided(high_watermark)
        stable = self._state.producers.last_stable_offset(high_watermark)
        return max(stable, min(self._log_start, high_watermark))

    def aborted(self, start: Offset, end: Offset) -> list[AbortedRange]:
        """The aborted transactions that have an offset in [start, end)."""
        return self._state.aborted.overlapping(start, end)

    # -- reading ----------------------------------------------------------------------------------

    def read(self, offset: Offset, bytes_max: int, until: Offset) -> bytes:
        """Whole batches from the one that contains `offset` on, none of them reaching beyond
        `until`: up to `bytes_max`, or one batch if the first alone is larger.

        Empty if there is nothing below `until`. Raises CorruptBatch, with the place, when the next
        batch is not what was written: a damaged batch is never handed out and never skipped.
        """
        self._check_range(offset)
        until = min(until, self.log_end)
        if offset >= until:
            return b""
        try:
            return self._segments.of(offset).read(offset, bytes_max, until, self._state.epochs)
        except (OSError, CorruptBatch) as error:
            raise self.failures.unreadable(error) from error

    def read_from(self, offset: Offset, bytes_max: int) -> bytes:
        """For a follower whose log ends at `offset`: the same up to the end of the log, beginning
        there exactly. Compaction may have made one filler of offsets that it has and has not.
        """
        data = self.read(offset, bytes_max, self.log_end)
        first = read_header(data)
        if first.base_offset == offset or not is_filler(first):
            return data
        rest = filler(offset, first.end, first.leader_epoch)
        return bytes(rest) + data[first.size :]

    def first_batch_header_at(self, offset: Offset) -> BatchHeader | None:
        """The header of the batch that contains an offset; None at the end of the log."""
        self._check_range(offset)
        if offset == self.log_end:
            return None
        try:
            return self._segments.of(offset).locate(offset).header
        except (OSError, CorruptBatch) as error:
            raise self.failures.unreadable(error) from error

    def offset_for_timestamp(self, timestamp_ms: int) -> Offset | None:
        """Where the first batch starts that has a record at or after a point in time.

        Which of its records it is, only its payload tells. None if there is no such batch.
        """
        try:
            for segment in self._segments:
                header = segment.first_since(timestamp_ms, self._log_start)
                if header is not None:
                    return max(Offset(header.base_offset), self._log_start)
        except (OSError, CorruptBatch) as error:
            raise self.failures.unreadable(error) from error
        return None

    # -- appending --------------------------------------------------------------------------------

    def append_as_leader(
        self, batches: Buffer | Sequence[Buffer], leader_epoch: LeaderEpoch, now_ms: int
    ) -> AppendInfo:
        """Append producers' batches: all of them, or none and an error.

        Raises CorruptBatch, BatchTooLarge, InvalidRequest, FencedLeaderEpoch, DiskFull,
        StorageFailed, and what ProducerStates.check raises.
        """
        self.failures.check_writable()
        size_max = self.config.max_message_bytes
        draft = LeaderDraft(self._state, leader_epoch, size_max, now_ms).of_batches(batches)
        return self._write(draft, now_ms)

    def append_control(self, batch: Buffer, leader_epoch: LeaderEpoch, now_ms: int) -> AppendInfo:
        """Append a transaction marker; its producer epoch is above that of the records (T5)."""
        self.failures.check_writable()
        size_max = self.config.max_message_bytes
        draft = LeaderDraft(self._state, leader_epoch, size_max, now_ms).of_marker(batch)
        return self._write(draft, now_ms)

    def append_as_follower(self, data: Buffer, now_ms: int) -> AppendInfo:
        """Append batches as the leader stored them; they have to start at `log_end`.

        Into an empty log the first batch may start before: the leader's log may start inside it.
        """
        self.failures.check_writable()
        if self._log_start == self.log_end:
            first = read_header(data)
            if first.base_offset < self._log_start < first.end:
                return self._begin_inside(Offset(first.base_offset), data, now_ms)
        return self._write(draft_replica(self._state, data), now_ms)

    def _begin_inside(self, base: Offset, data: Buffer, now_ms: int) -> AppendInfo:
        """The first batch of an empty log starts before the log start, and contains it."""
        draft = draft_replica(LogState(end=base), data)
        self._start_over(base)
        try:
            return self._write(draft, now_ms)
        except DiskFull:
            self._start_over(self._log_start)
            raise

    def _write(self, draft: Draft, now_ms: int) -> AppendInfo:
        if draft.headers:
            self.home.take_room(draft.size)
            if self._is_roll_due(draft, now_ms):
                self.roll()
            try:
                self._segments.active.append(draft.parts, draft.headers, now_ms)
            except OSError as error:
                raise self.failures.refused(error) from error
            for header, marker in zip(draft.headers, draft.markers, strict=True):
                self._state.apply(header, marker, now_ms)
            if self._unsynced_since_ms is None:
                self._unsynced_since_ms = now_ms
        return AppendInfo(tuple(draft.base_offsets), draft.end, bool(draft.headers))

    def _is_roll_due(self, draft: Draft, now_ms: int) -> bool:
        active = self._segments.active
        if active.size == 0:
            return False
        age_ms = now_ms - (active.first_append_ms or now_ms)
        return (
            active.size + draft.size > self.config.segment_bytes
            or age_ms >= self.config.segment_ms
            or draft.end - active.base > RELATIVE_MAX
        )

    def roll(self) -> None:
        """Go on in a new file; does nothing if the last one is empty."""
        self.failures.check_writable()
        if self._segments.active.size == 0:
            return
        try:
            self._segments.roll(self.config.index_interval_bytes)
        except OSError as error:
            raise self.failures.refused(error) from error
        self._checkpoint.save_snapshot(self._state)

    def roll_if_old(self, now_ms: int) -> None:
        """Close the active segment when it has the age for it, also if nothing is appended."""
        active = self._segments.active
        limit_ms = min(self.config.segment_ms, self.config.max_compaction_lag_ms)
        if active.first_append_ms is not None and now_ms - active.first_append_ms >= limit_ms:
            self.roll()

    # -- cutting ----------------------------------------------------------------------------------

    def truncate_to(self, offset: Offset, now_ms: int) -> Offset:
        """Cut the end of the log; returns the new end, lower than `offset` if that lies inside a
        batch. What the store says of the log never claims more than is left, at any moment.
        """
        self.failures.check_writable()
        if offset >= self.log_end:
            return self.log_end
        header = self.first_batch_header_at(offset)
        assert header is not None
        end = Offset(header.base_offset)
        if end < self._log_start:
            self.restart_at(self._log_start)
            return self.log_end
        self._checkpoint.end_at(self._log_start, min(self.synced_end, end), end)
        kept = max(1, self._segments.count_from(Offset(end - 1)))
        self._segments.forget_synced(end)  # who reads in a thread knows before it happens
        try:
            self._segments.retire(kept, len(self._segments))
            if end < self.log_end:
                self._segments.active.truncate(end)
            self._state, _ = rebuild_state(self._segments.as_list(), self._checkpoint, end, now_ms)
        except (OSError, CorruptBatch) as error:
            raise self.failures.failed(error) from error
        self._state.trim(self._log_start)
        self._history = self._history.cut(end)
        self._segments.forget_synced(end)  # again: a sync may have begun in between
        return end

    def trim_to(self, offset: Offset) -> None:
        """Move the log start forward, durably, and let whole segments below it go."""
        self.failures.check_writable()
        if offset <= self._log_start:
            return
        self._check_range(offset)
        self._checkpoint.start_at(offset)
        self._log_start = offset
        self._state.trim(offset)
        if offset == self.log_end:
            self.roll()
        gone = self._segments.count_from(offset) - 1
        try:
            self._segments.retire(0, gone)
        except OSError as error:
            raise self.failures.failed(error) from error

    def restart_at(self, offset: Offset) -> None:
        """Drop everything, also what the store knows of it; the next batch goes to `offset`."""
        self.failures.check_writable()
        self._checkpoint.restart_at(offset)
        self._history = CleanHistory()
        self._log_start = offset
        self._start_over(offset)

    def _start_over(self, base: Offset) -> None:
        """Replace all segments by an empty one."""
        try:
            self._segments.start_over(base, self.config.index_interval_bytes)
        except OSError as error:
            raise self.failures.failed(error) from error
        self._state = LogState(end=base)
        self._segments.forget_synced(base)

    def apply_retention(self, high_watermark: Offset, now_ms: int) -> Offset:
        """Trim what the settings allow; returns the log start."""
        facts = [segment_facts(segment, self._segments.active) for segment in self._segments]
        start = retained_from(facts, self.config, limit=high_watermark, now_ms=now_ms)
        self.trim_to(start)
        return self._log_start

    # -- compacting -------------------------------------------------------------------------------

    def plan_cleaning(self, high_watermark: Offset, now_ms: int) -> CleanPlan | None:
        """The pass of compaction that is due, if one is."""
        facts = [segment_facts(segment, self._segments.active) for segment in self._segments]
        stable = self.last_stable_offset(high_watermark)
        return plan_cleaning(facts, self._history, self.config, limit=stable, now_ms=now_ms)

    def start_cleaning(self, plan: CleanPlan, *, seed: int, map_bytes_max: int) -> Cleaning:
        """Begin a pass; its steps are for a thread, and change nothing here."""
        self.failures.check_writable()
        states = self._state.producers.states()
        remembered = {sent.base_offset for state in states for sent in state.sent}
        remembered.update(state.marker_at for state in states)
        aborted = self.aborted(self._segments[0].base, plan.end)
        facts = Facts(self._log_start, aborted, frozenset(remembered))
        return Cleaning(
            self._segments, self.config, plan, facts, seed=seed, map_bytes_max=map_bytes_max
        )

    def finish_cleaning(self, cleaning: Cleaning, now_ms: int) -> bool:
        """Put what a pass has written in place; False if that is of no use any more."""
        self.failures.check_writable()
        if not cleaning.is_complete:
            cleaning.drop()
            return False
        try:
            while cleaning.groups:
                self._segments.swap(cleaning.groups[0].old, cleaning.groups[0].fresh)
                del cleaning.groups[0]  # it is part of the log now
        except OSError as error:
            raise self.failures.refused(error) from error
        self._state.aborted.truncate_from_start(cleaning.end)  # nothing of them is left
        forget_before_ms = now_ms - self.config.delete_retention_ms
        self._history = self._history.after(cleaning.end, now_ms, forget_before_ms)
        self._checkpoint.save_history(self._history)
        return True

    def start_scrub(self) -> Scrub:
        """Begin to look for damage; its steps are for a thread, and change nothing."""
        return Scrub(self._segments, self._log_start, self._state.epochs)

    # -- durability -------------------------------------------------------------------------------

    def sync(self) -> Offset:
        """Bring what is appended to stable storage; everything below the returned offset is there.

        The one method for another thread: appends may go on meanwhile, and are not waited for.
        """
        self.failures.check_writable()
        self._unsynced_since_ms = None
        try:
            return self._segments.sync()
        except OSError as error:
            raise self.failures.failed(error) from error

    def sync_due(self, now_ms: int) -> bool:
        """Does the flush policy ask for a sync now? Files that were rolled are synced in any case,
        and everything now and then: it moves the recovery point, and so bounds what an unclean
        start has to check.
        """
        since_ms = self._unsynced_since_ms
        if self._segments.has_unsynced_files:
            return True
        match self.config.flush:
            case Flush.OS:
                return since_ms is not None and now_ms - since_ms >= CHECKPOINT_MS
            case Flush.ACK:
                return self.log_end > self.synced_end
            case Flush.INTERVAL:
                return since_ms is not None and (
                    now_ms - since_ms >= self.config.flush_interval_ms
                    or self.log_end - self.synced_end >= self.config.flush_interval_messages
                )

    def checkpoint(self, high_watermark: Offset, now_ms: int) -> None:
        """Save the hints that make the next start short, and forget producers long unheard of."""
        self.saved_high_watermark = high_watermark
        self._state.producers.expire(now_ms - self.config.producer_expiry_ms)
        self._checkpoint.save_snapshot(self._state)
        self._checkpoint.save(self.synced_end, high_watermark)

    def close(self) -> None:
        """Sync, save everything that makes the next start short, and close the files.

        A log that has failed is only closed. When all logs of a directory are closed without an
        error, `mark_clean` may be called.
        """
        try:
            if self.failures.reason is None:
                self.sync()
                self._checkpoint.save_snapshot(self._state)
                self._checkpoint.save(self.synced_end, self.saved_high_watermark)
        finally:
            self.failures.reason = self.failures.reason or "the log is closed"
            self._segments.close()

    def abandon(self) -> None:
        """Close the files of a log whose directory has failed, and write nothing more."""
        self.failures.reason = self.failures.reason or "the log is closed"
        self._segments.abandon()

    # -- the parts --------------------------------------------------------------------------------

    def _check_range(self, offset: Offset) -> None:
        if not self._log_start <= offset <= self.log_end:
            raise OffsetOutOfRange(self.home.partition, offset, self._log_start, self.log_end)
