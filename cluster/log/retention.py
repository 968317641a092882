"""Pure: which segments may go, by time and by bytes; whole ones only, always the oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.ids import NO_TIMESTAMP_MS

from cluster.log.config import FOREVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import Offset

    from cluster.log.config import LogConfig
    from cluster.log.segment import Segment


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What retention wants to know of a segment."""

    base: Offset
    end: Offset
    size_bytes: int
    max_timestamp_ms: int
    last_append_ms: int = NO_TIMESTAMP_MS
    """When something was last written to it, by this node's clock; -1 if that is long ago."""


def segment_facts(segment: Segment, active: Segment) -> SegmentFacts:
    """What is known of a segment; `active` is the one that is written to."""
    appended_ms = segment.last_append_ms if segment is active else None
    return SegmentFacts(
        segment.base,
        segment.end,
        segment.size,
        segment.max_timestamp_ms,
        NO_TIMESTAMP_MS if appended_ms is None else appended_ms,
    )


def retained_from(
    segments: Sequence[SegmentFacts], config: LogConfig, *, limit: Offset, now_ms: int
) -> Offset:
    """The offset that the log may start at: the end of the last segment that may go.

    Nothing at or above `limit` (the high watermark) goes. The last segment goes by time only: by
    size it is what the limit is measured with. A segment goes by time when its newest record is too
    old, so a record with a timestamp in the future holds its segment; one without timestamps
    goes by bytes only. What has just been written stays for the time too, whatever its timestamps
    say: a segment that is still written to is not old.
    """
    start = segments[0].base
    excess_bytes = sum(segment.size_bytes for segment in segments) - config.retention_bytes
    for number, segment in enumerate(segments):
        is_last = number == len(segments) - 1
        fits = config.retention_bytes == FOREVER or excess_bytes < segment.size_bytes or is_last
        if segment.end > limit or (fits and not _is_old(segment, config, now_ms)):
            break
        start = segment.end
        excess_bytes -= segment.size_bytes
    return start


def _is_old(segment: SegmentFacts, config: LogConfig, now_ms: int) -> bool:
    if config.retention_ms == FOREVER or segment.max_timestamp_ms == NO_TIMESTAMP_MS:
        return False
    newest_ms = max(segment.max_timestamp_ms, segment.last_append_ms)
    return now_ms - newest_ms > config.retention_ms
