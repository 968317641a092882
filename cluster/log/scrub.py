"""Looks at the checksums of what is not written to any more: `Scrub`.

A disk may change what it holds without telling anybody. Who reads a bad batch finds out; this finds
out about those that nobody reads, while other replicas still have them. Steps are for a thread, and
change nothing; segments that leave the log meanwhile are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from suiro.model.batch import walk
from suiro.model.errors import StorageFailed
from suiro.model.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Generator

    from cluster.log.segment_run import SegmentRun

STEP_BYTES: Final = 1 << 20


class Scrub:
    """One look at the closed segments of one log."""

    def __init__(self, segments: SegmentRun) -> None:
        self._segments = segments
        self._sources = segments.as_list()[:-1]
        self._steps = self._work()

    def step(self) -> int:
        """Look at a little; how many bytes, 0 when all of it has been looked at.

        Raises CorruptBatch or StorageFailed, with the place.
        """
        with self._segments.reading:
            try:
                return next(self._steps, 0)
            except OSError as error:
                raise StorageFailed(f"{self._segments.home.partition}: {error}") from error

    def _work(self) -> Generator[int]:
        for segment in self._sources:
            offset = segment.base
            while offset < segment.end and self._segments.holds([segment]):
                data = segment.read(offset, STEP_BYTES, segment.end, None)
                for _, header in walk(data):
                    offset = Offset(header.end)
                yield len(data)
