"""Where a query is: steps, limits, splits, and what is said when data is missing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark_suiro.errors import DataLoss
from pyspark_suiro.lag import Lag, lag, with_lag
from pyspark_suiro.offsets import (
    Bounds,
    Offsets,
    Place,
    Range,
    StreamOffset,
    is_empty,
    limited,
    next_batch,
    not_beyond,
    ranges,
    split,
)

P0 = Place("clicks", 0, "aa")
P1 = Place("clicks", 1, "aa")


def bounds(latest: Offsets, earliest: Offsets | None = None) -> Bounds:
    return Bounds({place: (earliest or {}).get(place, 0) for place in latest}, latest)


def test_a_batch_goes_from_where_the_query_is_to_the_latest_offsets() -> None:
    batch = next_batch({P0: 3, P1: 5}, bounds({P0: 10, P1: 5}))
    assert batch.losses == []
    assert batch.offset == StreamOffset({P0: 3, P1: 5}, {P0: 10, P1: 5})
    assert ranges(batch.offset) == [Range(P0, 3, 10)]


def test_latest_that_goes_back_is_nothing_new() -> None:
    """A new leader may know an older high watermark for a moment (C5)."""
    batch = next_batch({P0: 8}, bounds({P0: 6}))
    assert is_empty(batch.offset)
    assert batch.losses == []


def test_a_new_partition_is_read_from_its_beginning() -> None:
    batch = next_batch({P0: 8}, bounds({P0: 8, P1: 4}))
    assert ranges(batch.offset) == [Range(P1, 0, 4)]
    assert batch.losses == []


@pytest.mark.parametrize(
    ("done", "now", "said"),
    [
        ({P0: 8}, bounds({P0: 9, P1: 9}, {P1: 2}), "clicks-1 is new to this query"),
        ({P0: 3}, bounds({P0: 9}, {P0: 5}), "2 offsets were deleted before they were read"),
        ({P0: 3}, bounds({Place("clicks", 0, "bb"): 9}), "topic clicks was deleted and created"),
        ({P1: 3}, bounds({Place("clicks", 1, "bb"): 9}), "its id was aa, now it is bb"),
        ({P0: 3, P1: 3}, bounds({P0: 3}), "topic clicks has fewer partitions"),
        ({P0: 3}, bounds({}), "topic clicks was deleted"),
    ],
)
def test_what_is_missing_is_named(done: Offsets, now: Bounds, said: str) -> None:
    batch = next_batch(done, now)
    assert len(batch.losses) == 1
    with pytest.raises(DataLoss, match="failOnDataLoss") as caught:
        batch.check(fail_on_data_loss=True)
    assert said in str(caught.value)
    batch.check(fail_on_data_loss=False)
    assert all(now.earliest[each.place] <= each.start for each in ranges(batch.offset))


def test_a_topic_made_again_is_named_once() -> None:
    again = [Place("clicks", number, "bb") for number in range(3)]
    batch = next_batch({P0: 1, P1: 1}, bounds(dict.fromkeys(again, 4)))
    assert len(batch.losses) == 1
    assert [each.start for each in ranges(batch.offset)] == [0, 0, 0]


def test_the_offset_in_the_checkpoint_is_told_and_read_back() -> None:
    offset = StreamOffset({P1: 1, P0: 0}, {P1: 4, P0: 2})
    told = json.dumps(offset.to_json())
    assert told == '{"clicks": {"end": {"0": 2, "1": 4}, "id": "aa", "start": {"0": 0, "1": 1}}}'
    assert StreamOffset.from_json(json.loads(told)) == offset
    assert json.dumps(json.loads(told)) == told


OFFSETS = st.dictionaries(
    st.integers(0, 20).map(lambda number: Place("t", number, "id")),
    st.tuples(st.integers(0, 50), st.integers(0, 200)),
).map(
    lambda drawn: StreamOffset(
        {place: start for place, (start, _) in drawn.items()},
        {place: start + size for place, (start, size) in drawn.items()},
    )
)


@given(OFFSETS, st.integers(1, 2000))
def test_a_limit_is_kept_and_used_up(offset: StreamOffset, most: int) -> None:
    cut = limited(offset, most)
    assert cut.start == offset.start
    assert all(offset.start[p] <= cut.end[p] <= offset.end[p] for p in offset.end)
    total = sum(each.size for each in ranges(offset))
    assert sum(each.size for each in ranges(cut)) == min(total, most)


@given(OFFSETS, st.integers(0, 40), st.integers(0, 60))
def test_pieces_are_the_whole(offset: StreamOffset, count_min: int, size_max: int) -> None:
    whole = ranges(offset)
    pieces = split(whole, count_min, size_max)
    total = sum(each.size for each in whole)
    assert all(piece.size > 0 for piece in pieces)
    assert len(pieces) >= min(count_min, total)
    assert not size_max or all(piece.size <= size_max for piece in pieces)
    assert [(p.place, n) for p in pieces for n in range(p.start, p.end)] == [
        (w.place, n) for w in whole for n in range(w.start, w.end)
    ]


def test_one_partition_is_one_piece_unless_more_are_asked_for() -> None:
    whole = [Range(P0, 0, 100), Range(P1, 0, 1)]
    assert split(whole) == whole
    assert split(whole, count_min=2) == whole
    assert len(split(whole, count_min=8)) >= 8


def test_a_target_is_not_passed() -> None:
    offset = StreamOffset({P0: 1, P1: 0}, {P0: 9, P1: 9})
    assert not_beyond(offset, {P0: 5}).end == {P0: 5, P1: 0}
    assert not_beyond(offset, {P0: 0, P1: 20}).end == {P0: 1, P1: 9}


def test_lag_is_told_with_the_latest_offset() -> None:
    told = with_lag({P0: 9, P1: 4}, {P0: Lag(7, 1.5)})
    assert StreamOffset.from_json(told).end == {P0: 9, P1: 4}
    said = {"clicks-0": Lag(7, 1.5), "clicks-1": Lag(0, 0.0)}
    assert lag({"latestOffset": json.dumps(told)}) == said
    assert lag({"latestOffset": told}) == said
    assert lag({"latestOffset": None}) == {}
