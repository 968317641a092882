"""Who shall own what: range, round robin, sticky. Each is a function of the members alone.

Every partition of a subscribed topic gets exactly one owner that subscribes to it, and the result
depends on nothing but the arguments. `sticky` balances perfectly where all subscribe alike, and
moves no more than that takes; with mixed subscriptions it balances as far as they allow. How the
members get there, partition by partition, is `reconcile`'s part, so the incremental "cooperative
sticky" is the same assignment as "sticky".
"""

from __future__ import annotations

from collections import deque
from itertools import groupby
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.requests import View

    Assignment = dict[str, tuple[TopicPartition, ...]]
    Assignor = Callable[[Sequence[View], Sequence[TopicPartition]], Assignment]

RANGE: Final = "range"
ROUND_ROBIN: Final = "roundrobin"
STICKY: Final = "sticky"
COOPERATIVE_STICKY: Final = "cooperative-sticky"


def assign_range(views: Sequence[View], partitions: Sequence[TopicPartition]) -> Assignment:
    """Topic by topic, neighbouring partitions to one member."""
    result: dict[str, list[TopicPartition]] = {view.member_id: [] for view in views}
    ordered = sorted(views, key=lambda view: view.order)
    for topic, group in groupby(sorted(partitions), lambda partition: partition.topic):
        numbered = list(group)
        takers = [view.member_id for view in ordered if topic in view.topics]
        share, more = divmod(len(numbered), len(takers)) if takers else (0, 0)
        start = 0
        for position, member_id in enumerate(takers):
            end = start + share + (position < more)
            result[member_id] += numbered[start:end]
            start = end
    return {member_id: tuple(owned) for member_id, owned in result.items()}


def assign_round_robin(views: Sequence[View], partitions: Sequence[TopicPartition]) -> Assignment:
    """One partition each in turn; whoever does not subscribe is passed over."""
    result: dict[str, list[TopicPartition]] = {view.member_id: [] for view in views}
    ordered = sorted(views, key=lambda view: view.order)
    topics = {view.member_id: frozenset(view.topics) for view in views}
    position = 0
    for partition in sorted(partitions):
        for tried in range(len(ordered)):
            member_id = ordered[(position + tried) % len(ordered)].member_id
            if partition.topic in topics[member_id]:
                result[member_id].append(partition)
                position += tried + 1
                break
    return {member_id: tuple(owned) for member_id, owned in result.items()}


def assign_sticky(views: Sequence[View], partitions: Sequence[TopicPartition]) -> Assignment:
    """As balanced as can be, with as little moved as that takes."""
    ordered = sorted(views, key=lambda view: view.order)
    if len({frozenset(view.topics) for view in ordered}) <= 1:
        return _sticky_alike(ordered, partitions)
    return _sticky_mixed(ordered, partitions)


def _sticky_alike(ordered: list[View], partitions: Sequence[TopicPartition]) -> Assignment:
    """Everyone gets the same number, or one more: those who have most already."""
    if not ordered:
        return {}
    unowned = dict.fromkeys(sorted(partitions))
    share, more = divmod(len(unowned), len(ordered))
    has = {view.member_id: [p for p in sorted(view.owned) if p in unowned] for view in ordered}
    richest = sorted(ordered, key=lambda view: -len(has[view.member_id]))
    quota = {view.member_id: share + (rank < more) for rank, view in enumerate(richest)}
    for member_id, owned in has.items():
        del owned[quota[member_id] :]
        for partition in owned:
            del unowned[partition]
    left = iter(unowned)
    return {
        member_id: tuple(
            sorted([*owned, *(next(left) for _ in range(quota[member_id] - len(owned)))])
        )
        for member_id, owned in has.items()
    }


def _sticky_mixed(ordered: list[View], partitions: Sequence[TopicPartition]) -> Assignment:
    """Keep what is legal, give the rest to the least loaded, then level out along paths."""
    there = frozenset(partitions)
    takers = {
        topic: [view.member_id for view in ordered if topic in view.topics]
        for topic in sorted({partition.topic for partition in there})
    }
    has: dict[str, dict[str, list[TopicPartition]]] = {view.member_id: {} for view in ordered}
    unowned = dict.fromkeys(sorted(there))
    for view in ordered:
        for partition in sorted(view.owned):
            if partition in unowned and partition.topic in view.topics:
                del unowned[partition]
                has[view.member_id].setdefault(partition.topic, []).append(partition)
    load = {member_id: sum(map(len, owned.values())) for member_id, owned in has.items()}
    for partition in unowned:
        if takers[partition.topic]:
            poorest = min(takers[partition.topic], key=load.__getitem__)
            has[poorest].setdefault(partition.topic, []).append(partition)
            load[poorest] += 1
    while _level_out(has, load, takers):
        pass
    return {
        member_id: tuple(sorted(p for owned in by_topic.values() for p in owned))
        for member_id, by_topic in has.items()
    }


def _level_out(
    has: dict[str, dict[str, list[TopicPartition]]],
    load: dict[str, int],
    takers: Mapping[str, list[str]],
) -> bool:
    """Bring one partition from a rich member to one that has at least two fewer; it may take a
    chain, each passing on a partition of a topic that the next one subscribes to.
    """
    for rich in sorted(load, key=lambda member_id: -load[member_id]):
        came: dict[str, tuple[str, str]] = {}
        offered: set[str] = set()
        queue = deque([rich])
        while queue:
            giver = queue.popleft()
            if load[giver] <= load[rich] - 2:
                _pass_on(has, came, rich, giver)
                load[rich] -= 1
                load[giver] += 1
                return True
            for topic in sorted(t for t, owned in has[giver].items() if owned and t not in offered):
                offered.add(topic)
                reached = [m for m in takers[topic] if m != rich and m not in came]
                came.update(dict.fromkeys(reached, (giver, topic)))
                queue.extend(reached)
    return False


def _pass_on(
    has: dict[str, dict[str, list[TopicPartition]]],
    came: Mapping[str, tuple[str, str]],
    rich: str,
    last: str,
) -> None:
    taker = last
    while taker != rich:
        giver, topic = came[taker]
        has[taker].setdefault(topic, []).append(has[giver][topic].pop())
        taker = giver


BUILT_IN: Final[Mapping[str, Assignor]] = {
    RANGE: assign_range,
    ROUND_ROBIN: assign_round_robin,
    STICKY: assign_sticky,
    COOPERATIVE_STICKY: assign_sticky,
}
DEFAULT: Final = COOPERATIVE_STICKY
