"""Filters as bounds: they leave out only what the filter refuses."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark_suiro.filters import Pushed, push
from pyspark_suiro.offsets import Offsets, Place, Range, StreamOffset, ranges

P0, P1 = Place("t", 0, "id"), Place("t", 1, "id")
PLANNED = StreamOffset({P0: 10, P1: 0}, {P0: 100, P1: 50})


def cut(*filters: object, since: Offsets | None = None) -> list[Range]:
    return ranges(push(filters).cut(PLANNED, since or {}))


def test_without_filters_nothing_is_cut() -> None:
    assert cut() == ranges(PLANNED)
    assert push([IsNotNull(("offset",)), Not(EqualTo(("partition",), 0))]) == Pushed()
    assert push([EqualTo(("key",), b"x"), LessThan(("headers", "key"), 3)]) == Pushed()


def test_partitions() -> None:
    assert cut(EqualTo(("partition",), 1)) == [Range(P1, 0, 50)]
    assert cut(In(("partition",), (0, 7))) == [Range(P0, 10, 100)]
    assert cut(EqualTo(("partition",), 0), EqualTo(("partition",), 1)) == []


def test_offsets() -> None:
    at_least = GreaterThanOrEqual(("offset",), 20)
    assert cut(at_least, LessThan(("offset",), 30)) == [Range(P0, 20, 30), Range(P1, 20, 30)]
    above = GreaterThan(("offset",), 20)
    assert cut(above, LessThanOrEqual(("offset",), 30)) == [Range(P0, 21, 31), Range(P1, 21, 31)]
    assert cut(EqualTo(("offset",), 5)) == [Range(P1, 5, 6)]
    assert cut(at_least, LessThan(("offset",), 20)) == []


def test_times_bound_the_beginning_only() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    pushed = push([GreaterThan(("timestamp",), when), LessThan(("timestamp",), when)])
    assert pushed.time_min_ms is not None
    assert 0 <= when.timestamp() * 1000 - pushed.time_min_ms <= 2
    assert pushed.offset_end is None
    assert cut(GreaterThan(("timestamp",), when), since={P0: 90, P1: 0}) == [
        Range(P0, 90, 100),
        Range(P1, 0, 50),
    ]
