"""Choose the replicas of new partitions: even, rack aware, and the same for the same question.

Three aims, in this order: no two replicas of a partition in one rack while another rack is free
(and never two on one node); the partitions of a topic spread evenly over the nodes, then all
partitions; preferred leaders spread evenly in the same two senses. With equally large racks, or
none, each count is within one of every other; only the leaders of many topics together can be two
or three apart, as nothing is moved that was placed before, and later topics even that out.

Replicas come first: every slot goes to the rack that is least loaded, and in it to the node that
is. As racks (and nodes) are taken in the order of their load, loads never drift far apart.
Ties are broken by a hash of the seed that differs from round to round, so that the replicas of one
node's partitions are scattered over all others, and its load is too when it fails. Then each
partition gets the least loaded of its replicas as leader, and chains of exchanges repair what
this greedy choice got wrong.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.model.ids import NodeId

Load = tuple[float, float]
"""Of the topic being placed, then of everything."""

_MASK: Final = (1 << 64) - 1
_order = attrgetter("order")


@dataclass(slots=True)
class Candidate:
    """A node that may be given replicas, and what it has; `place` adds what it gives."""

    node_id: NodeId
    rack: str = ""
    replicas: int = 0
    leaders: int = 0
    topic_replicas: int = 0
    topic_leaders: int = 0


def place(
    candidates: Sequence[Candidate], partitions: int, replication_factor: int, seed: int
) -> list[tuple[NodeId, ...]]:
    """The replicas of each new partition of a topic, the preferred leader first."""
    assert 1 <= replication_factor <= len(candidates)
    by_name: dict[str, _Rack] = {}
    for candidate in sorted(candidates, key=lambda c: c.node_id):
        by_name.setdefault(candidate.rack, _Rack(len(by_name), seed)).add(candidate)
    racks = list(by_name.values())
    chosen = [_choose(racks, replication_factor) for _ in range(partitions)]
    return _Leaders(candidates, chosen).ordered()


class _Rack:
    """The nodes of one rack, least loaded first; `order` is where the rack stands among others."""

    __slots__ = (
        "_free",
        "_number",
        "_replicas",
        "_seed",
        "_size",
        "_taken",
        "_tie",
        "_topic",
        "order",
    )

    def __init__(self, number: int, seed: int) -> None:
        self._number = number
        self._seed = seed
        self._size = 0
        self._free: list[tuple[int, int, int, Candidate]] = []
        self._taken: list[Candidate] = []
        self._replicas = 0
        self._topic = 0
        self._tie = 0
        self.order: tuple[float, ...] = ()

    def add(self, candidate: Candidate) -> None:
        self._size += 1
        self._replicas += candidate.replicas
        self._topic += candidate.topic_replicas
        self._taken.append(candidate)
        self.next_partition()

    def take(self) -> NodeId:
        """Give one replica of the present partition to the least loaded node that has none yet."""
        candidate = heappop(self._free)[-1]
        candidate.replicas += 1
        candidate.topic_replicas += 1
        self._replicas += 1
        self._topic += 1
        self._taken.append(candidate)
        self._reorder()
        return candidate.node_id

    def next_partition(self) -> None:
        if not self._taken:
            return
        for candidate in self._taken:
            tie = _tie(self._seed, candidate.node_id, candidate.replicas)
            # Equal loads never have equal ties, so candidates themselves are not compared.
            heappush(self._free, (candidate.topic_replicas, candidate.replicas, tie, candidate))
        self._taken.clear()
        self._tie = _tie(self._seed, self._number, self._replicas)
        self._reorder()

    def _reorder(self) -> None:
        """Racks without a node left come last, then those that have most of this partition."""
        per_node = (self._topic / self._size, self._replicas / self._size)
        self.order = (not self._free, len(self._taken), *per_node, self._tie)


def _choose(racks: list[_Rack], replication_factor: int) -> tuple[NodeId, ...]:
    nodes = tuple(min(racks, key=_order).take() for _ in range(replication_factor))
    for rack in racks:
        rack.next_partition()
    return nodes


def _tie(seed: int, number: int, round_number: int) -> int:
    """A scattered number (splitmix64). A CRC would not do: it is linear, so the order of two nodes
    would be the same in most rounds.
    """
    mixed = seed
    for part in (number, round_number):
        mixed = (mixed ^ part) + 0x9E3779B97F4A7C15 & _MASK
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        mixed ^= mixed >> 31
    return mixed


class _Leaders:
    """A leader for each partition among its replicas, as even as the replicas allow."""

    def __init__(self, candidates: Iterable[Candidate], chosen: list[tuple[NodeId, ...]]) -> None:
        self._by_id = {c.node_id: c for c in sorted(candidates, key=lambda c: c.node_id)}
        self._chosen = chosen
        self._leader: list[NodeId] = []
        # For nodes a and b: the partitions that a leads and b could.
        self._could: dict[NodeId, dict[NodeId, set[int]]] = {n: {} for n in self._by_id}
        for nodes in chosen:
            leader = min(nodes, key=self._load)  # the first of equals: the order is a scattered one
            self._leader.append(leader)
            self._count(leader, 1)

    def ordered(self) -> list[tuple[NodeId, ...]]:
        if not self._is_even():
            self._even_out()
        return [
            (leader, *(node for node in nodes if node != leader))
            for leader, nodes in zip(self._leader, self._chosen, strict=True)
        ]

    def _load(self, node: NodeId) -> Load:
        return self._by_id[node].topic_leaders, self._by_id[node].leaders

    def _is_even(self) -> bool:
        """Usually so; then nothing has to be known about who could lead what."""
        loads = [self._load(node) for node in self._by_id]
        return all(max(counts) - min(counts) <= 1 for counts in zip(*loads, strict=True))

    def _even_out(self) -> None:
        """Each chain makes the loads more even, so this ends; it is a few chains in practice."""
        for partition, leader in enumerate(self._leader):
            self._link(partition, leader)
        while any(
            self._relieve(node) for node in sorted(self._by_id, key=self._load, reverse=True)
        ):
            pass

    def _relieve(self, start: NodeId) -> bool:
        """Find the shortest chain of partitions that hands one lead from `start` to a node with
        less, each link of it within the replicas of its partition, and carry it out.
        """
        came_from: dict[NodeId, NodeId] = {start: start}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            if self._is_relief(start, node):
                self._hand_down(came_from, node)
                return True
            for other in sorted(self._could[node]):
                if self._could[node][other] and other not in came_from:
                    came_from[other] = node
                    queue.append(other)
        return False

    def _is_relief(self, start: NodeId, node: NodeId) -> bool:
        (topic, everything), (their_topic, their_everything) = self._load(start), self._load(node)
        if topic - their_topic != 1:
            return topic - their_topic > 1
        return everything - their_everything > 1

    def _hand_down(self, came_from: dict[NodeId, NodeId], last: NodeId) -> None:
        while came_from[last] != last:
            node = came_from[last]
            partition = min(self._could[node][last])
            self._unlink(partition, node)
            self._leader[partition] = last
            self._link(partition, last)
            self._count(node, -1)
            self._count(last, 1)
            last = node

    def _count(self, node: NodeId, more: int) -> None:
        self._by_id[node].topic_leaders += more
        self._by_id[node].leaders += more

    def _link(self, partition: int, leader: NodeId) -> None:
        for node in self._chosen[partition]:
            if node != leader:
                self._could[leader].setdefault(node, set()).add(partition)

    def _unlink(self, partition: int, leader: NodeId) -> None:
        for node in self._chosen[partition]:
            if node != leader:
                self._could[leader][node].discard(partition)
