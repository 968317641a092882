"""Plans: even, rack aware, and with the fewest moves, against a search through all plans."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suiro.model.errors import InvalidReplicationFactor
from suiro.model.ids import NodeId
from suiro.reassign_plan import Holder, Placed, drain, spread, with_replication_factor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.reassign_plan import Plan


def holders(count: int, racks: int = 1) -> list[Holder]:
    return [Holder(NodeId(n), f"rack{n % racks}") for n in range(1, count + 1)]


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(number) for number in numbers)


def after(partitions: Sequence[Placed], plan: Plan) -> list[Placed]:
    moved = {placed.name: placed for placed in plan}
    assert len(moved) == len(plan)
    return [moved.get(placed.name, placed) for placed in partitions]


def moves(before: Iterable[Placed], plan: Iterable[Placed]) -> int:
    held = {placed.name: set(placed.replicas) for placed in before}
    return sum(len(set(placed.replicas) - held[placed.name]) for placed in plan)


def replica_counts(partitions: Iterable[Placed], holders: Iterable[Holder]) -> Counter[NodeId]:
    counts = Counter({holder.node_id: 0 for holder in holders})
    for placed in partitions:
        counts.update(placed.replicas)
    return counts


def gap(counts: Counter[NodeId]) -> int:
    return max(counts.values()) - min(counts.values())


def unevenness(replicas: Iterable[NodeId], racks: dict[NodeId, str]) -> int:
    return sum(n * n for n in Counter(racks[node_id] for node_id in replicas).values())


@st.composite
def clusters(draw: st.DrawFn, topics_max: int = 3) -> tuple[list[Placed], list[Holder]]:
    count = draw(st.integers(2, 6))
    racks = draw(st.sampled_from([r for r in (1, 2, 3) if count % r == 0]))
    former = draw(st.integers(1, 8))
    partitions = []
    for topic in range(draw(st.integers(1, topics_max))):
        factor = draw(st.integers(1, min(3, count, former)))
        for partition in range(draw(st.integers(1, 8))):
            where = draw(st.permutations(range(1, former + 1)))[:factor]
            partitions.append(Placed(f"t{topic}", partition, nodes(*where)))
    return partitions, holders(count, racks)


@given(clusters())
@settings(deadline=None)
def test_a_spread_is_sound_rack_aware_and_even(given: tuple[list[Placed], list[Holder]]) -> None:
    partitions, brokers = given
    plan = spread(partitions, brokers)
    racks = {holder.node_id: holder.rack for holder in brokers}
    result = after(partitions, plan)
    for old, new in zip(partitions, result, strict=True):
        assert len(set(new.replicas)) == len(old.replicas)
        assert set(new.replicas) <= set(racks)
        best = min(unevenness(c, racks) for c in combinations(racks, len(new.replicas)))
        assert unevenness(new.replicas, racks) == best
    assert gap(replica_counts(result, brokers)) <= 1
    for topic in {placed.topic for placed in partitions}:
        assert gap(replica_counts((p for p in result if p.topic == topic), brokers)) <= 1
    assert spread(result, brokers) == [], "a plan that was carried out leaves nothing to do"


@given(clusters())
@settings(deadline=None)
def test_preferred_leaders_are_even(given: tuple[list[Placed], list[Holder]]) -> None:
    partitions, brokers = given
    result = after(partitions, spread(partitions, brokers))
    for topic in {placed.topic for placed in partitions}:
        of_topic = [placed for placed in result if placed.topic == topic]
        leaders = Counter({holder.node_id: 0 for holder in brokers})
        leaders.update(placed.replicas[0] for placed in of_topic)
        assert gap(leaders) == _least_leader_gap(of_topic, brokers)


def _least_leader_gap(partitions: list[Placed], brokers: list[Holder]) -> int:
    """By trying every choice of leaders; twins of a choice are left out by counting."""
    seen = {tuple(0 for _ in brokers)}
    at = {holder.node_id: index for index, holder in enumerate(brokers)}
    for placed in partitions:
        seen = {
            tuple(n + (index == at[node_id]) for index, n in enumerate(counts))
            for counts in seen
            for node_id in placed.replicas
        }
    return min(max(counts) - min(counts) for counts in seen)


@given(
    st.integers(2, 4).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.sampled_from([racks for racks in (1, 2) if count % racks == 0]),
            st.integers(1, 2).flatmap(
                lambda factor: st.lists(
                    st.permutations(range(1, 5)).map(lambda p: tuple(p[:factor])),
                    min_size=1,
                    max_size=4,
                )
            ),
        )
    )
)
@settings(deadline=None)
def test_no_plan_moves_less(given: tuple[int, int, list[tuple[int, ...]]]) -> None:
    count, rack_count, replicas = given
    brokers = holders(count, rack_count)
    racks = {holder.node_id: holder.rack for holder in brokers}
    partitions = [Placed("t", n, nodes(*where)) for n, where in enumerate(replicas)]
    choices = list(combinations(racks, len(replicas[0])))
    best = min(unevenness(choice, racks) for choice in choices)
    choices = [choice for choice in choices if unevenness(choice, racks) == best]
    fewest = min(
        sum(len(set(new) - set(p.replicas)) for new, p in zip(plan, partitions, strict=True))
        for plan in product(choices, repeat=len(partitions))
        if gap(replica_counts([Placed("t", 0, new) for new in plan], brokers)) <= 1
    )
    assert moves(partitions, spread(partitions, brokers)) == fewest


def test_a_fourth_broker_takes_its_share_and_no_more() -> None:
    before = spread([Placed("t", n, nodes(1, 2, 3)) for n in range(8)], holders(3))
    partitions = after([Placed("t", n, nodes(1, 2, 3)) for n in range(8)], before)
    plan = spread(partitions, holders(4))
    assert moves(partitions, plan) == 6
    assert replica_counts(after(partitions, plan), holders(4)) == dict.fromkeys(range(1, 5), 6)


def test_many_small_topics_are_spread_too() -> None:
    partitions = [Placed(f"t{n}", 0, nodes(1, 2, 3)) for n in range(8)]
    plan = spread(partitions, holders(4))
    assert moves(partitions, plan) == 6
    assert gap(replica_counts(after(partitions, plan), holders(4))) == 0


def test_a_large_cluster_is_planned_in_a_moment() -> None:
    """4,000 partitions: 3,000 chains, each found among the nodes alone."""
    partitions = [Placed("t", n, nodes(*(1 + (n + i) % 3 for i in range(3)))) for n in range(4_000)]
    plan = spread(partitions, holders(4))
    assert moves(partitions, plan) == 3_000
    assert gap(replica_counts(after(partitions, plan), holders(4))) == 0


@given(clusters(), st.integers(1, 6))
def test_a_drain_moves_what_is_there_and_nothing_else(
    given: tuple[list[Placed], list[Holder]], gone: int
) -> None:
    partitions, brokers = given
    inside = [p for p in partitions if set(p.replicas) <= {h.node_id for h in brokers}]
    node_id = NodeId(1 + gone % len(brokers))
    if any(len(placed.replicas) == len(brokers) for placed in inside if node_id in placed.replicas):
        with pytest.raises(InvalidReplicationFactor):
            drain(inside, brokers, node_id)
        return
    plan = drain(inside, brokers, node_id)
    assert {placed.name for placed in plan} == {p.name for p in inside if node_id in p.replicas}
    assert moves(inside, plan) == len(plan)
    for old, new in zip([p for p in inside if node_id in p.replicas], plan, strict=True):
        assert node_id not in new.replicas
        kept = [n for n, former in zip(new.replicas, old.replicas, strict=True) if n == former]
        assert len(kept) == len(old.replicas) - 1, "the others keep their places"


def test_a_drained_replica_goes_to_a_rack_of_its_own() -> None:
    brokers = [Holder(NodeId(n), rack) for n, rack in ((1, "a"), (2, "b"), (3, "b"), (4, "c"))]
    (moved,) = drain([Placed("t", 0, nodes(1, 2))], brokers, NodeId(1))
    assert moved.replicas == nodes(4, 2)


def test_more_replicas_go_to_other_racks_and_fewer_spare_the_leader_and_the_isr() -> None:
    brokers = holders(6, racks=3)
    partitions = [Placed("t", n, nodes(1 + n % 6), nodes(1 + n % 6)) for n in range(12)]
    wide = after(partitions, with_replication_factor(partitions, brokers, 3))
    racks = {holder.node_id: holder.rack for holder in brokers}
    assert all(len({racks[n] for n in placed.replicas}) == 3 for placed in wide)
    assert all(w.replicas[0] == p.replicas[0] for w, p in zip(wide, partitions, strict=True))
    assert gap(replica_counts(wide, brokers)) <= 1
    lagging = [Placed("t", 0, nodes(1, 2, 3), nodes(1, 3)), Placed("t", 1, nodes(2, 3, 1), ())]
    narrow = with_replication_factor(lagging, brokers, 2)
    assert narrow[0].replicas == nodes(1, 3)
    assert narrow[1].replicas[0] == 2
    with pytest.raises(InvalidReplicationFactor):
        with_replication_factor(partitions, brokers, 7)
