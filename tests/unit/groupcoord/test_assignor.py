"""Assignors: complete, legal, balanced, and as sticky as they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suiro.model.ids import TopicPartition

from cluster.groupcoord.assignor import BUILT_IN, RANGE, ROUND_ROBIN, STICKY, assign_sticky
from cluster.groupcoord.requests import View

if TYPE_CHECKING:
    from cluster.groupcoord.assignor import Assignment

TOPICS = ("a", "b", "c")


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> tuple[list[View], list[TopicPartition]]:
    count = draw(st.integers(1, 8))
    shared = tuple(sorted(draw(st.sets(st.sampled_from(TOPICS), min_size=1))))
    views = [
        View(
            f"m{number}",
            shared if alike else tuple(sorted(draw(st.sets(st.sampled_from(TOPICS), min_size=1)))),
        )
        for number in range(count)
    ]
    wanted = sorted({topic for view in views for topic in view.topics})
    sizes = {topic: draw(st.integers(1, 9)) for topic in wanted}
    return views, [TopicPartition(t, n) for t in wanted for n in range(sizes[t])]


def keeping(views: list[View], assignment: Assignment) -> list[View]:
    return [replace(view, owned=assignment.get(view.member_id, ())) for view in views]


def sizes(assignment: Assignment) -> list[int]:
    return sorted(map(len, assignment.values()))


@pytest.mark.parametrize("name", BUILT_IN)
@given(group=groups())
@settings(max_examples=30)
def test_everything_is_given_once_to_one_who_wants_it(
    name: str, group: tuple[list[View], list[TopicPartition]]
) -> None:
    views, partitions = group
    assignment = BUILT_IN[name](views, partitions)
    assert sorted(p for owned in assignment.values() for p in owned) == partitions
    for view in views:
        assert {p.topic for p in assignment[view.member_id]} <= set(view.topics)
    assert BUILT_IN[name](list(reversed(views)), list(reversed(partitions))) == assignment


@given(group=groups(alike=True))
@settings(max_examples=40)
def test_alike_is_balanced_to_one(group: tuple[list[View], list[TopicPartition]]) -> None:
    views, partitions = group
    for name in (ROUND_ROBIN, STICKY):
        counts = sizes(BUILT_IN[name](views, partitions))
        assert counts[-1] - counts[0] <= 1


@given(group=groups(alike=True), data=st.data())
@settings(max_examples=40)
def test_sticky_moves_no_more_than_balance_takes(
    group: tuple[list[View], list[TopicPartition]], data: st.DataObject
) -> None:
    """Some come, some go: what moves is what the gone had and what is over the new share."""
    views, partitions = group
    before = assign_sticky(views, partitions)
    stay = data.draw(st.integers(1, len(views)))
    fresh = [View(f"n{number}", views[0].topics) for number in range(data.draw(st.integers(0, 3)))]
    now = keeping([*views[:stay], *fresh], before)
    after = assign_sticky(now, partitions)
    share, more = divmod(len(partitions), len(now))
    owned = sorted((len(view.owned) for view in now), reverse=True)
    over = sum(max(0, has - share - (rank < more)) for rank, has in enumerate(owned))
    orphans = len(partitions) - sum(owned)
    moved = sum(len(set(after[v.member_id]) - set(v.owned)) for v in now)
    assert moved == orphans + over
    assert sizes(after)[-1] - sizes(after)[0] <= 1


@given(group=groups())
@settings(max_examples=40)
def test_sticky_again_moves_nothing(group: tuple[list[View], list[TopicPartition]]) -> None:
    views, partitions = group
    before = assign_sticky(views, partitions)
    assert assign_sticky(keeping(views, before), partitions) == before


@given(group=groups())
@settings(max_examples=30)
def test_mixed_subscriptions_are_as_balanced_as_they_can_be(
    group: tuple[list[View], list[TopicPartition]],
) -> None:
    """A dumb twin: no single partition can move to somebody who has at least two fewer."""
    views, partitions = group
    hoarder = [replace(v, owned=tuple(p for p in partitions if p.topic in v.topics)) for v in views]
    for start in (views, [hoarder[0], *views[1:]]):
        after = assign_sticky(start, partitions)
        for giver in views:
            topics = {p.topic for p in after[giver.member_id]}
            for taker in views:
                if topics & set(taker.topics):
                    assert len(after[giver.member_id]) - len(after[taker.member_id]) <= 1


def test_a_chain_levels_out_what_no_single_move_can() -> None:
    views = [View("x", ("a",)), View("y", ("a", "b")), View("z", ("b",))]
    owned = {
        "x": [TopicPartition("a", n) for n in range(3)],
        "y": [TopicPartition("b", n) for n in range(2)],
        "z": [TopicPartition("b", 2)],
    }
    held = [replace(view, owned=tuple(owned[view.member_id])) for view in views]
    partitions = sorted(p for parts in owned.values() for p in parts)
    assert sizes(assign_sticky(held, partitions)) == [2, 2, 2]


def test_range_keeps_neighbours_together_and_static_members_in_their_place() -> None:
    partitions = [TopicPartition("a", n) for n in range(5)]
    before = BUILT_IN[RANGE](
        [View("m1", ("a",), (), "one"), View("m2", ("a",), (), "two")], partitions
    )
    assert [p.partition for p in before["m1"]] == [0, 1, 2]
    after = BUILT_IN[RANGE](
        [View("m9", ("a",), (), "one"), View("m2", ("a",), (), "two")], partitions
    )
    assert after["m9"] == before["m1"]


def test_fifty_members_and_a_thousand_partitions() -> None:
    """The size of the issue: one leaves, one share moves."""
    topics = tuple(f"t{number}" for number in range(10))
    partitions = [TopicPartition(topic, n) for topic in topics for n in range(100)]
    views = [View(f"m{number:02}", topics) for number in range(50)]
    before = assign_sticky(views, partitions)
    assert set(sizes(before)) == {20}
    after = assign_sticky(keeping(views[1:], before), partitions)
    assert set(sizes(after)) == {20, 21}
    moved = sum(len(set(after[m]) - set(before[m])) for m in after)
    assert moved == 20
