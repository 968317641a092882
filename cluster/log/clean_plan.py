"""Pure: when a log is compacted, how far, and what may be forgotten.

A pass looks at the records that came since the last one (the dirty part) and rewrites everything
before its end, so that of each key only the newest record is left. Always: a pass ends at or before
the last stable offset, and never reaches the segment that is written to.

`CleanHistory` remembers when each part of the log was first compacted. From then on it lacks old
values; the marks of deleted keys and of ended transactions stay for `delete_retention_ms` longer,
for readers and replicas that have seen what was before. A history that is lost costs work only.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from suiro.model.ids import Offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.batch import Buffer

    from cluster.log.config import LogConfig
    from cluster.log.retention import SegmentFacts

_PASS: Final = struct.Struct("<qq")
PASSES_MAX: Final = 64
"""A history that is longer forgets its oldest passes, and so keeps marks for longer."""


class Pass(NamedTuple):
    """What is below `end`, and not below the end of an earlier pass, was first compacted then."""

    end: Offset
    at_ms: int


@dataclass(frozen=True, slots=True)
class CleanHistory:
    """The passes over one log; ends rise."""

    passes: tuple[Pass, ...] = ()

    @property
    def end(self) -> Offset:
        """What is below has been compacted."""
        return self.passes[-1].end if self.passes else Offset(0)

    def horizon(self, before_ms: int) -> Offset:
        """What is below was compacted at that time or earlier."""
        old = [done.end for done in self.passes if done.at_ms <= before_ms]
        return old[-1] if old else Offset(0)

    def after(self, end: Offset, at_ms: int, forget_before_ms: int) -> CleanHistory:
        """One more pass. Of those that are long over, the last one tells all."""
        if end <= self.end:
            return self
        old = [done for done in self.passes if done.at_ms <= forget_before_ms]
        kept = (*old[-1:], *self.passes[len(old) :], Pass(end, at_ms))
        return CleanHistory(kept[-PASSES_MAX:])

    def cut(self, end: Offset) -> CleanHistory:
        """The log ends at `end` now; what comes there next has not been compacted."""
        kept = [Pass(min(done.end, end), done.at_ms) for done in self.passes]
        return CleanHistory(
            tuple(
                done
                for number, done in enumerate(kept)
                if done.end > (kept[number - 1].end if number else 0)
            )
        )

    def encode(self) -> bytes:
        return b"".join([_PASS.pack(*done) for done in self.passes])

    @classmethod
    def decode(cls, data: Buffer) -> CleanHistory:
        """The inverse of `encode`; struct.error if it was not made by it."""
        return cls(tuple(Pass(Offset(end), at_ms) for end, at_ms in _PASS.iter_unpack(data)))


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """One pass."""

    dirty_from: Offset
    end: Offset
    marks_before: Offset
    """Marks of deleted keys and of transactions below this have been there for long enough."""
    dirty_ratio: float


def plan_cleaning(
    segments: Sequence[SegmentFacts],
    history: CleanHistory,
    config: LogConfig,
    *,
    limit: Offset,
    now_ms: int,
) -> CleanPlan | None:
    """The pass that is due, if one is. `limit` is the last stable offset; the last of `segments` is
    the one that is written to.
    """

    def may_go(segment: SegmentFacts) -> bool:
        lag_ms = config.min_compaction_lag_ms
        return segment.end <= limit and (not lag_ms or now_ms - segment.max_timestamp_ms >= lag_ms)

    cleanable = list(takewhile(may_go, segments[:-1]))
    dirty = [segment for segment in cleanable if segment.end > history.end]
    if not dirty or not config.compacts:
        return None
    ratio = sum(s.size_bytes for s in dirty) / max(1, sum(s.size_bytes for s in cleanable))
    is_late = now_ms - dirty[0].max_timestamp_ms > config.max_compaction_lag_ms
    if ratio < config.min_cleanable_dirty_ratio and not is_late:
        return None
    return CleanPlan(
        dirty_from=max(history.end, dirty[0].base),
        end=dirty[-1].end,
        marks_before=history.horizon(now_ms - config.delete_retention_ms),
        dirty_ratio=ratio,
    )
