"""Filters that Spark offers, as bounds on what has to be read. Pure.

A bound only ever leaves out what the filter refuses anyway; Spark filters again behind it. There is
no upper bound by time: timestamps are the producers', and a later record may have an earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark_suiro.offsets import StreamOffset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_suiro.offsets import Offsets


@dataclass(frozen=True, slots=True)
class Pushed:
    """What the filters together leave to read."""

    partitions: frozenset[int] | None = None
    offset_min: int = 0
    offset_end: int | None = None
    time_min_ms: int | None = None

    def cut(self, planned: StreamOffset, since: Offsets) -> StreamOffset:
        """The planned ranges without what no row can come from; `since` are the offsets of
        `time_min_ms`, if there is one.
        """
        start: Offsets = {}
        end: Offsets = {}
        for place, planned_end in planned.end.items():
            low = max(planned.start[place], self.offset_min, since.get(place, 0))
            high = planned_end if self.offset_end is None else min(planned_end, self.offset_end)
            if self.partitions is not None and place.partition not in self.partitions:
                high = low
            start[place] = min(low, planned_end)
            end[place] = max(start[place], high)
        return StreamOffset(start, end)


def push(filters: Iterable[Any]) -> Pushed:
    """The bounds that these filters imply, taken together; others imply nothing."""
    pushed = Pushed()
    for each in filters:
        kind = type(each).__name__
        column = getattr(each, "attribute", ())
        value = getattr(each, "value", None)
        if value is None:
            continue
        if column == ("partition",):
            pushed = _partition(pushed, kind, value)
        elif column == ("offset",):
            pushed = _offset(pushed, kind, value)
        elif column == ("timestamp",):
            pushed = _time(pushed, kind, value)
    return pushed


def _partition(pushed: Pushed, kind: str, value: Any) -> Pushed:
    if kind == "EqualTo":
        wanted = frozenset([value])
    elif kind == "In":
        wanted = frozenset(value)
    else:
        return pushed
    kept = wanted if pushed.partitions is None else pushed.partitions & wanted
    return replace(pushed, partitions=kept)


def _offset(pushed: Pushed, kind: str, value: Any) -> Pushed:
    low, end = pushed.offset_min, pushed.offset_end
    if kind in {"EqualTo", "GreaterThan", "GreaterThanOrEqual"}:
        low = max(low, value + (kind == "GreaterThan"))
    if kind in {"EqualTo", "LessThan", "LessThanOrEqual"}:
        above = value + (kind != "LessThan")
        end = above if end is None else min(end, above)
    return replace(pushed, offset_min=low, offset_end=end)


def _time(pushed: Pushed, kind: str, value: Any) -> Pushed:
    if kind not in {"EqualTo", "GreaterThan", "GreaterThanOrEqual"}:
        return pushed
    low_ms = int(value.timestamp() * 1000) - 1  # rounding must not lose a record
    return replace(pushed, time_min_ms=max(low_ms, pushed.time_min_ms or 0))
