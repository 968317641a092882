"""Looks at the checksums of what is on disk, and at what they do not cover: `Scrub`.

A disk may change what it holds without telling anybody. Who reads a bad batch finds out; this finds
out about those that nobody reads, while other replicas still have them. Steps are for a thread, and
change nothing. Segments that leave the log meanwhile are passed over, and when the end of the log
is cut the look is over: what is read in that moment may be gone, and is no damage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from suiro.model.batch import walk
from suiro.model.errors import CorruptBatch, StorageFailed
from suiro.model.ids import Offset

from cluster.log.epochs import LeaderEpochs

if TYPE_CHECKING:
    from collections.abc import Generator

    from cluster.log.segment_run import SegmentRun

STEP_BYTES: Final = 1 << 20


class Scrub:
    """One look at the segments of one log; at the one that is written to as far as it is synced."""

    def __init__(self, segments: SegmentRun, log_start: Offset, epochs: LeaderEpochs) -> None:
        self._segments = segments
        self._log_start = log_start
        self._epochs = LeaderEpochs.decode(epochs.encode())  # the loop's thread changes its own
        self._generation = segments.generation
        *closed, active = segments.as_list()
        self._sources = [(segment, segment.end) for segment in closed]
        self._sources.append((active, min(active.end, segments.synced_end)))
        self._steps = self._work()

    def step(self) -> int:
        """Look at a little; how many bytes, 0 when all of it has been looked at.

        Raises CorruptBatch or StorageFailed, with the place.
        """
        with self._segments.reading:
            try:
                return next(self._steps, 0)
            except (CorruptBatch, OSError, IndexError, AssertionError) as error:
                if self._is_cut:
                    return 0
                if isinstance(error, OSError):
                    raise StorageFailed(f"{self._segments.home.partition}: {error}") from error
                raise

    @property
    def _is_cut(self) -> bool:
        return self._segments.generation != self._generation

    def _work(self) -> Generator[int]:
        for segment, end in self._sources:
            offset = max(segment.base, self._log_start)
            while offset < end and not self._is_cut and self._segments.holds([segment]):
                data = segment.read(offset, STEP_BYTES, end, self._epochs)
                for _, header in walk(data):
                    offset = Offset(header.end)
                yield len(data)
