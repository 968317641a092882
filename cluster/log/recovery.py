"""Open a partition's directory: find out what is there, and make it a log again.

Below the recovery point everything was on stable storage, so a hole or damage there means that the
disk has lost what it promised to keep: StorageFailed, never a shorter log (P15). From the recovery
point on a crash may have left anything: every batch is checked, and the log is cut at the first
one that is not what it has to be. Where the store has no recovery point, only the end of the last
file may be cut. What the content implies (`LogState`) is replayed from the newest snapshot that
belongs to this content. Doing all this twice, or dying in the middle, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NoReturn

from suiro.model.compact import is_filler
from suiro.model.control import decode_marker
from suiro.model.errors import CorruptBatch, StorageFailed
from suiro.model.ids import NO_LEADER_EPOCH, Offset

from cluster.log.segment import (
    CLEANED,
    DATA,
    DELETED,
    OFFSET_INDEX,
    TIME_INDEX,
    Damage,
    Located,
    Segment,
    segment_path,
)
from cluster.log.state import LogState
from cluster.log.swap import finish_swaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cluster.host.fs import Fs
    from cluster.log.checkpoints import Checkpoint
    from cluster.log.config import LogConfig

LEFTOVERS: Final = (DELETED, ".tmp", CLEANED)
BASE_DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class Cut:
    """What a recovery dropped from the end of the log."""

    offset: Offset
    dropped_bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What a recovery found and did; for the node's log and for people."""

    recovery_point: Offset | None
    cut: Cut | None
    indexes_rebuilt: int
    replayed_from: Offset


@dataclass(frozen=True, slots=True)
class Recovered:
    """A log that is ready for use; there is at least one segment."""

    segments: list[Segment]
    state: LogState
    log_start: Offset
    recovery_point: Offset
    high_watermark: Offset
    report: RecoveryReport


class Recovery:
    """One opening of one directory."""

    def __init__(
        self, fs: Fs, directory: Path, config: LogConfig, checkpoint: Checkpoint, now_ms: int
    ) -> None:
        self._fs = fs
        self._directory = directory
        self._config = config
        self._checkpoint = checkpoint
        self._now_ms = now_ms
        self._saved = checkpoint.load()
        self._segments: list[Segment] = []
        self._cut: Cut | None = None
        self._has_removed = False

    def run(self) -> Recovered:
        """Raises StorageFailed, and then has closed what it opened."""
        try:
            return self._run()
        except (OSError, CorruptBatch, StorageFailed) as error:
            for segment in self._segments:
                segment.data.close()
            if isinstance(error, StorageFailed):
                raise
            raise StorageFailed(f"{self._directory.name} cannot be opened: {error}") from error

    def _run(self) -> Recovered:
        finish_swaps(self._fs, self._directory)
        bases = self._remove_leftovers()
        log_start = self._saved.log_start
        if log_start is None:
            log_start = Offset(bases[0] if bases else 0)
        self._open_segments(log_start, self._drop_below(log_start, bases))
        end = self._segments[-1].end if self._segments else Offset(0)
        if end < log_start or not self._segments:
            self._start_empty(log_start)
            end = log_start
        assert self._segments[0].base <= log_start <= end
        recovery_point = self._saved.recovery_point
        if recovery_point is not None and recovery_point > end:
            self._fail(f"the log ends at {end}, and was on disk up to {recovery_point}")
        is_complete = recovery_point is not None and self._saved.log_start is not None
        recovery_point = recovery_point or Offset(0)
        claims_more = (
            self._checkpoint.has_snapshot_above(end) or self._checkpoint.history().end > end
        )
        if not is_complete or claims_more:
            self._checkpoint.end_at(log_start, recovery_point, end)
        if self._has_removed:
            # Else an old file could come back beside a newer one. New names wait for the first
            # sync of the log: 4,000 logs that are opened at a start would wait for 4,000 of them.
            self._fs.sync_directory(self._directory)
        state, replayed_from = rebuild_state(
            self._segments, self._checkpoint, recovery_point, self._now_ms
        )
        state.trim(log_start)
        self._find_age()
        return Recovered(
            segments=self._segments,
            state=state,
            log_start=log_start,
            recovery_point=recovery_point,
            high_watermark=min(max(self._saved.high_watermark or log_start, log_start), end),
            report=RecoveryReport(
                recovery_point=self._saved.recovery_point,
                cut=self._cut,
                indexes_rebuilt=sum(segment.index_rebuilt for segment in self._segments),
                replayed_from=replayed_from,
            ),
        )

    # -- files ------------------------------------------------------------------------------------

    def _remove_leftovers(self) -> list[int]:
        """Remove what an interrupted change left behind; returns the bases of the segments."""
        names = self._fs.names(self._directory)
        bases = sorted(
            int(name[:BASE_DIGITS])
            for name in names
            if name.endswith(DATA)
            and len(name) == BASE_DIGITS + len(DATA)
            and name[:BASE_DIGITS].isdecimal()
        )
        kept = {f"{base:020d}" for base in bases}
        for name in names:
            is_orphan = name.endswith((OFFSET_INDEX, TIME_INDEX)) and name[:BASE_DIGITS] not in kept
            if is_orphan or name.endswith(LEFTOVERS):
                self._fs.remove(self._directory / name)
        return bases

    def _drop_below(self, log_start: Offset, bases: list[int]) -> list[int]:
        """Finish a trim: a segment whose successor starts at or below the log start goes."""
        gone = [base for base, following in pairwise(bases) if following <= log_start]
        for base in gone:
            self._remove_segment(base)
        return bases[len(gone) :]

    def _remove_segment(self, base: int) -> None:
        self._has_removed = True
        for suffix in (DATA, OFFSET_INDEX, TIME_INDEX):
            self._fs.remove(segment_path(self._directory, base, suffix))

    def _start_empty(self, log_start: Offset) -> None:
        """Everything there is lies below the log start, or there is nothing."""
        for segment in self._segments:
            segment.close()
            self._remove_segment(segment.base)
        interval_bytes = self._config.index_interval_bytes
        self._segments = [Segment.create(self._fs, self._directory, log_start, interval_bytes)]

    # -- the data ---------------------------------------------------------------------------------

    def _open_segments(self, log_start: Offset, bases: list[int]) -> None:
        recovery_point = self._saved.recovery_point
        trusted_end = -1 if recovery_point is None else recovery_point
        last_epoch: int = NO_LEADER_EPOCH
        for number, base in enumerate(bases):
            following = bases[number + 1 :]
            end = self._segments[-1].end if self._segments else min(log_start, Offset(base))
            if base != end:
                reason = f"the file of offset {base} does not follow offset {end}"
                self._cut_at(end, reason, [base, *following], is_tail=False)
                return
            segment = Segment.open(
                self._fs,
                self._directory,
                Offset(base),
                self._config.index_interval_bytes,
                trusted_end,
            )
            self._segments.append(segment)
            damage = segment.scan(trusted_end, last_epoch)
            if damage is not None:
                self._cut_damage(segment, damage, following)
                return
            last_epoch = segment.last_epoch

    def _cut_damage(self, segment: Segment, damage: Damage, following: list[int]) -> None:
        reason = f"{segment} at {damage.position}: {damage.reason}"
        torn_bytes = segment.data.size - damage.position
        self._cut_at(segment.end, reason, following, is_tail=not following, torn_bytes=torn_bytes)
        segment.cut(damage)

    def _cut_at(
        self,
        end: Offset,
        reason: str,
        following: list[int],
        *,
        is_tail: bool,
        torn_bytes: int = 0,
    ) -> None:
        """The log ends at `end`: remove the segments after it, if that may be."""
        recovery_point, log_start = self._saved.recovery_point, self._saved.log_start or Offset(0)
        first_lost = max(end, log_start)  # what is below the log start is no loss
        allowed = is_tail if recovery_point is None else first_lost >= recovery_point
        if not allowed:
            self._fail(reason)
        dropped_bytes = torn_bytes
        for base in reversed(following):
            file = self._fs.open(segment_path(self._directory, base, DATA))
            dropped_bytes += file.size
            file.close()
            self._remove_segment(base)
        self._cut = Cut(end, dropped_bytes, reason)

    def _fail(self, reason: str) -> NoReturn:
        raise StorageFailed(f"{self._directory.name}: {reason}")

    def _find_age(self) -> None:
        """When the last segment got its first batch, as far as the batch tells."""
        active = self._segments[-1]
        for first in active.walk():
            stamped_ms = first.header.max_timestamp_ms
            active.first_append_ms = stamped_ms if 0 <= stamped_ms <= self._now_ms else self._now_ms
            active.last_append_ms = self._now_ms
            return


def rebuild_state(
    segments: Sequence[Segment], checkpoint: Checkpoint, recovery_point: Offset, now_ms: int
) -> tuple[LogState, Offset]:
    """What the segments' content implies, and from which offset on it was replayed."""
    state = _newest_fitting(segments, checkpoint, recovery_point)
    replayed_from = state.end
    for segment, located in _batches_from(segments, state.end):
        header = located.header
        marker = None
        if header.is_control:
            marker = decode_marker(segment.batch_at(located), verify_crc=False).kind
        state.apply(header, marker, now_ms)
    assert state.end == segments[-1].end
    return state, replayed_from


def _newest_fitting(
    segments: Sequence[Segment], checkpoint: Checkpoint, recovery_point: Offset
) -> LogState:
    """The newest snapshot that was taken of this content, or the empty state at its start.

    Below the recovery point nothing has changed since a snapshot was taken, so there a snapshot
    that does not fit says that the content is damaged.
    """
    for state in checkpoint.snapshots(segments[-1].end):
        if state.end <= segments[0].base:
            # What is below was trimmed, and what was trimmed is never rewritten.
            return state if state.end == segments[0].base else LogState(end=segments[0].base)
        before = Offset(state.end - 1)
        header = next(s for s in segments if s.end > before).locate(before).header
        fits = header.end == state.end or is_filler(header)
        if fits and header.leader_epoch == state.epochs.last:
            # Compaction may have made one filler of what ended here and what came next.
            state.end = Offset(header.end)
            return state
        if state.end <= recovery_point:
            raise CorruptBatch(
                f"offset {before} is of leader epoch {header.leader_epoch}, "
                f"and was of {state.epochs.last} in a snapshot"
            )
    return LogState(end=segments[0].base)


def _batches_from(segments: Sequence[Segment], start: Offset) -> Iterator[tuple[Segment, Located]]:
    for segment in segments:
        if segment.end > start:
            position = segment.locate(start).position if segment.base < start else 0
            for located in segment.walk(position, max(start, segment.base)):
                yield segment, located
