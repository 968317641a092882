"""Even out how many units nodes hold, with as few units changed as that takes. Pure.

A unit (a partition) is held by some nodes; an option hands it from one of them to another node and
changes a cost that counts what is no longer where it was. Topic by topic: a node with too much
hands one unit down the cheapest chain of options to a node with too little, until all are within
one of each other; then whatever chain or ring still saves something is carried out. That is a
minimum-cost flow in which the shortest path is sought among the nodes alone, so the cost of a step
depends on the nodes, not on the partitions. Where the options of a unit depend on one another
(racks) a chain may turn out not to be possible; then that topic stays as even as it has become.

At last the totals over all topics: single hops that leave each topic even.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from suiro.model.ids import NodeId

COSTS = (-1, 0, 1)


class Hop(NamedTuple):
    """A unit goes from one node to another."""

    start: NodeId
    to: NodeId


class Units(Protocol):
    """What is evened out; units have numbers from 0 up."""

    @property
    def nodes(self) -> Sequence[NodeId]: ...
    @property
    def topics(self) -> Sequence[str]: ...
    def __len__(self) -> int: ...
    def held(self, number: int) -> Sequence[NodeId]: ...
    def options(self, number: int) -> list[tuple[Hop, int]]:
        """What could be done with a unit now, and what that adds to the cost: -1, 0 or 1."""
        ...

    def hand(self, number: int, hop: Hop) -> None: ...


def even_out(units: Units) -> None:
    """Topic by topic, then over all topics."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for number in range(len(units)):
        by_topic[units.topics[number]].append(number)
    topics = [_Topic(units, numbers) for numbers in by_topic.values()]
    for topic in topics:
        topic.even_out()
    _even_out_totals(units, topics)


class _Topic:
    """The units of one topic: who holds how many, and what could be handed on at which cost."""

    def __init__(self, units: Units, numbers: list[int]) -> None:
        self.units = units
        self.counts: Counter[NodeId] = Counter(dict.fromkeys(units.nodes, 0))
        self._options: dict[int, list[tuple[Hop, int]]] = {}
        # Ordered, as dictionaries are and sets are not: a plan must not depend on a hash.
        self._by_hop: defaultdict[Hop, dict[int, dict[int, None]]] = defaultdict(
            lambda: {cost: {} for cost in COSTS}
        )
        for number in numbers:
            self.counts.update(units.held(number))
            self._learn(number)
        self.low, more = divmod(sum(self.counts.values()), len(units.nodes))
        self.high = self.low + (more > 0)

    # -- options ----------------------------------------------------------------------------------

    def cheapest(self, hop: Hop) -> tuple[int, int] | None:
        """(cost, number) of the cheapest unit that can make this hop."""
        by_cost = self._by_hop.get(hop)
        for cost in COSTS if by_cost is not None else ():
            assert by_cost is not None
            if by_cost[cost]:
                return cost, next(iter(by_cost[cost]))
        return None

    def hand(self, number: int, hop: Hop) -> None:
        for known, cost in self._options[number]:
            del self._by_hop[known][cost][number]
        self.units.hand(number, hop)
        self.counts[hop.start] -= 1
        self.counts[hop.to] += 1
        self._learn(number)

    def _learn(self, number: int) -> None:
        self._options[number] = self.units.options(number)
        for hop, cost in self._options[number]:
            self._by_hop[hop][cost][number] = None

    # -- evening out ------------------------------------------------------------------------------

    def even_out(self) -> None:
        while True:
            chain = self._ring() or self._relief() or self._saving()
            if not chain or not self._carry_out(chain):
                return

    def _relief(self) -> list[Hop]:
        """From who has too much to who has room; else from who can spare to who has too little."""
        over = [node for node in self.units.nodes if self.counts[node] > self.high]
        room = [node for node in self.units.nodes if self.counts[node] < self.high]
        chain = self._path(over, room)[1] if over else []
        if not chain:
            under = [node for node in self.units.nodes if self.counts[node] < self.low]
            spare = [node for node in self.units.nodes if self.counts[node] > self.low]
            chain = self._path(spare, under)[1] if under else []
        return chain

    def _saving(self) -> list[Hop]:
        """Who of the nodes holds one more is open: a change that saves something is welcome."""
        if self.low == self.high:
            return []
        more = [node for node in self.units.nodes if self.counts[node] == self.high]
        less = [node for node in self.units.nodes if self.counts[node] == self.low]
        cost, chain = self._path(more, less)
        return chain if cost < 0 else []

    def _path(
        self, starts: Collection[NodeId], ends: Collection[NodeId]
    ) -> tuple[float, list[Hop]]:
        """The cheapest chain between any of these; there are no rings with a negative cost."""
        far = float("inf")
        cost: dict[NodeId, float] = {n: 0 if n in starts else far for n in self.units.nodes}
        came: dict[NodeId, NodeId] = {}
        for _ in self.units.nodes:
            if not self._relax(cost, came):
                break
        reached = [node for node in ends if cost[node] < far and node not in starts]
        if not reached:
            return far, []
        end = min(reached, key=lambda node: (cost[node], self.counts[node], node))
        chain = [end]
        while chain[-1] in came:
            chain.append(came[chain[-1]])
        return cost[end], [Hop(a, b) for a, b in zip(chain[:0:-1], chain[-2::-1], strict=True)]

    def _ring(self) -> list[Hop]:
        """A ring of hops that saves something, if there is one."""
        cost: dict[NodeId, float] = dict.fromkeys(self.units.nodes, 0)
        came: dict[NodeId, NodeId] = {}
        for _ in self.units.nodes:
            changed = self._relax(cost, came)
            if not changed:
                return []
        node = changed[0]
        for _ in self.units.nodes:  # from wherever it is reached, into the ring itself
            node = came[node]
        ring = [node]
        while came[ring[-1]] != node:
            ring.append(came[ring[-1]])
        ring.reverse()
        return [Hop(a, b) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]

    def _relax(self, cost: dict[NodeId, float], came: dict[NodeId, NodeId]) -> list[NodeId]:
        """One round of Bellman and Ford; the nodes that are reached more cheaply now."""
        changed = []
        for hop, by_cost in self._by_hop.items():
            for step in COSTS:
                if by_cost[step]:
                    if cost[hop.start] + step < cost[hop.to]:
                        cost[hop.to] = cost[hop.start] + step
                        came[hop.to] = hop.start
                        changed.append(hop.to)
                    break
        return changed

    def _carry_out(self, chain: list[Hop]) -> bool:
        """Hop by hop. A hop may have become impossible, or dearer, by another of the same unit:
        then it is all taken back, and nothing has changed.
        """
        done: list[tuple[int, Hop]] = []
        expected = [self._cost(hop) for hop in chain]
        for hop, cost in zip(chain, expected, strict=True):
            found = self.cheapest(hop)
            if found is None or found[0] > cost:
                for number, former in reversed(done):
                    self.hand(number, Hop(former.to, former.start))
                return False
            self.hand(found[1], hop)
            done.append((found[1], hop))
        return True

    def _cost(self, hop: Hop) -> int:
        found = self.cheapest(hop)
        assert found is not None
        return found[0]


def _even_out_totals(units: Units, topics: list[_Topic]) -> None:
    totals: Counter[NodeId] = Counter(dict.fromkeys(units.nodes, 0))
    for topic in topics:
        totals.update(topic.counts)
    while True:
        found = _best_hop(units, topics, totals)
        if found is None:
            return
        topic, number, hop = found
        topic.hand(number, hop)
        totals[hop.start] -= 1
        totals[hop.to] += 1


def _best_hop(
    units: Units, topics: list[_Topic], totals: Counter[NodeId]
) -> tuple[_Topic, int, Hop] | None:
    """Between the two nodes that are furthest apart and can be brought closer, the cheapest."""
    pairs = [Hop(a, b) for a in units.nodes for b in units.nodes if totals[a] - totals[b] > 1]
    pairs.sort(key=lambda hop: totals[hop.to] - totals[hop.start])
    for hop in pairs:
        best: tuple[int, _Topic, int] | None = None
        for topic in topics:
            # What one topic gives up to even out the whole must leave it as even as it is.
            if topic.counts[hop.start] <= topic.counts[hop.to]:
                continue
            option = topic.cheapest(hop)
            if option is not None and (best is None or option[0] < best[0]):
                best = (option[0], topic, option[1])
        if best is not None:
            return best[1], best[2], hop
    return None
