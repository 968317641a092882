"""Compacts one log: `Cleaning` is one pass, done in small steps in a thread.

It reads the segments that are part of the log and writes new ones aside; nothing of the log changes
before `PartitionLog.finish_cleaning` puts them in place. Small neighbours become one segment. A
log that is cut, trimmed or closed meanwhile makes the pass useless, which the next step notices: no
step ever reads a file that was closed, as it holds `SegmentRun.reading`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro.model.batch import read_header
from suiro.model.errors import DiskFull, StorageFailed
from suiro.model.ids import Offset
from suiro.model.limits import MIB

from cluster.log.compaction import Compactor, batches
from cluster.log.offset_map import OffsetMap
from cluster.log.segment import CLEANED, RELATIVE_MAX, Segment, aside_path

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from suiro.model.batch import Buffer

    from cluster.log.clean_plan import CleanPlan
    from cluster.log.compaction import Batch, Facts
    from cluster.log.config import LogConfig
    from cluster.log.segment_run import SegmentRun

STEP_BYTES: Final = MIB


@dataclass(frozen=True, slots=True)
class Group:
    """Segments of the log, and the one that is to take their place."""

    old: list[Segment]
    fresh: Segment


class Cleaning:
    """One pass over one log."""

    def __init__(
        self,
        segments: SegmentRun,
        config: LogConfig,
        plan: CleanPlan,
        facts: Facts,
        *,
        seed: int,
        map_bytes_max: int,
    ) -> None:
        self.groups: list[Group] = []
        self._segments = segments
        self._generation = segments.generation
        self._config = config
        self._dirty_from = plan.dirty_from
        self._newest = OffsetMap(map_bytes_max)
        self._compactor = Compactor(plan, facts, self._newest, seed)
        self._sources = [segment for segment in segments if segment.base < plan.end]
        self._steps = self._work()
        self._is_complete = False

    @property
    def end(self) -> Offset:
        """Where the pass ends; lower than planned if there were more keys than fit the map."""
        return self._compactor.end

    @property
    def is_complete(self) -> bool:
        """Whether the new segments are written and synced, and still are what the log needs."""
        return self._is_complete and self._is_useful()

    def step(self) -> int:
        """Do a little; how many bytes were read and written, 0 when there is nothing more to do.

        Raises CorruptBatch, DiskFull or StorageFailed; the log itself is untouched then.
        """
        with self._segments.reading:
            if not self._is_useful():
                return 0
            try:
                return next(self._steps, 0)
            except OSError as error:
                raise _failed(self._sources[0], error) from error

    def drop(self) -> None:
        """The pass is of no use, or failed: remove what it wrote. It takes no more steps."""
        self._steps.close()
        self._segments.discard([_remover(group.fresh) for group in self.groups])
        self.groups = []
        self._is_complete = False

    def _is_useful(self) -> bool:
        segments = self._segments
        return segments.generation == self._generation and segments.holds(self._sources)

    # -- the work ---------------------------------------------------------------------------------

    def _work(self) -> Generator[int]:
        yield from self._survey()
        for segment in self._sources:
            if segment.base < self.end:
                self._choose_group(segment)
                yield from self._rewrite(segment)
        self._finish_group()
        self._is_complete = True

    def _survey(self) -> Iterator[int]:
        for segment in self._sources:
            for run in _runs(segment, self._dirty_from):
                if self._newest.is_full:
                    self._compactor.end = Offset(run[0].header.base_offset)
                    return
                self._compactor.survey(run)
                yield _size(run)

    def _rewrite(self, segment: Segment) -> Iterator[int]:
        for run in _runs(segment, segment.base):
            kept = list(self._compactor.rewrite(run))
            self._write(kept)
            yield _size(run) + sum(map(len, kept))

    def _choose_group(self, segment: Segment) -> None:
        """Go on in the last new segment if this one, were it kept whole, has room there."""
        if self.groups:
            group = self.groups[-1]
            fits = group.fresh.size + segment.size <= self._config.segment_bytes
            if fits and segment.end - group.fresh.base <= RELATIVE_MAX:
                group.old.append(segment)
                return
            self._finish_group()
        interval_bytes = self._config.index_interval_bytes
        fresh = Segment.create_aside(segment.fs, segment.directory, segment.base, interval_bytes)
        self.groups.append(Group([segment], fresh))

    def _finish_group(self) -> None:
        self._write(list(self._compactor.finish()))
        group = self.groups[-1]
        assert group.fresh.end == group.old[-1].end, "compaction keeps every offset"
        group.fresh.data.sync()

    def _write(self, kept: Sequence[Buffer]) -> None:
        if kept:
            self._segments.home.take_room(sum(map(len, kept)))
            headers = [read_header(batch) for batch in kept]
            self.groups[-1].fresh.append(kept, headers, now_ms=0)


def _runs(segment: Segment, start: Offset) -> Iterator[list[Batch]]:
    """The batches of a segment from an offset on, a step's worth at a time, CRCs checked."""
    offset = max(start, segment.base)
    while offset < segment.end:
        run = batches(segment.read(offset, STEP_BYTES, segment.end, None))
        yield run
        offset = Offset(run[-1].header.end)


def _size(run: Sequence[Batch]) -> int:
    return sum(batch.header.size for batch in run)


def _remover(fresh: Segment) -> Callable[[], None]:
    def remove() -> None:
        fresh.data.close()
        fresh.fs.remove(aside_path(fresh.directory, fresh.base, CLEANED))

    return remove


def _failed(segment: Segment, error: OSError) -> DiskFull | StorageFailed:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"{segment}: {error}")
    return StorageFailed(f"{segment}: {error}")
