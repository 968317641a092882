"""Where the replicas of existing partitions should go: spread them, drain a node, add or drop some.

Pure. A plan is the partitions that change, with their new replicas, the preferred leader first. The
aims of `spread`, in this order: the replicas of a partition in as many racks as can be; those of a
topic even over the nodes, and then all replicas; as few replicas moved as that takes; preferred
leaders even, as few of them changed as that takes. Where racks differ in size, racks come first
and the nodes of a small rack carry more.

`even_out` does the work for replicas and for leaders (the module beside this one). What is under
way is left alone by the caller: a partition that is being reassigned should not be in the input.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from suiro.even_out import Hop, even_out
from suiro.model.errors import InvalidReplicationFactor, InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class Holder:
    """A broker that may hold replicas."""

    node_id: NodeId
    rack: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """A partition and where its replicas are, or are to go."""

    topic: str
    partition: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


Plan = list[Placed]


def spread(partitions: Sequence[Placed], holders: Iterable[Holder]) -> Plan:
    """Everything on these brokers, and nowhere else, as evenly as can be."""
    board = _Board(partitions, holders)
    board.take_in_orphans()
    board.part_racks()
    even_out(board)
    even_out(_Leaders(board))
    return board.changes()


def drain(partitions: Sequence[Placed], holders: Iterable[Holder], node_id: NodeId) -> Plan:
    """Nothing on that broker any more; whatever is not on it stays where it is."""
    rest = [holder for holder in holders if holder.node_id != node_id]
    touched = [placed for placed in partitions if node_id in placed.replicas]
    board = _Board(touched, rest, others=[p for p in partitions if node_id not in p.replicas])
    board.take_in_orphans(leaving={node_id})
    return board.changes()


def with_replication_factor(
    partitions: Sequence[Placed], holders: Iterable[Holder], factor: int
) -> Plan:
    """Each partition with `factor` replicas: more go where least is, in another rack if there is
    one; of too many, those go that are not in sync, then from a rack that has several, then from
    where most is. The preferred leader stays if it is in sync.
    """
    holders = list(holders)
    if not 1 <= factor <= len(holders):
        raise InvalidReplicationFactor(
            f"{factor} replicas were asked for, {len(holders)} brokers are alive"
        )
    board = _Board(partitions, holders, keep_strangers=True)
    for number in range(len(partitions)):
        while len(board.replicas[number]) < factor:
            board.add(number)
        while len(board.replicas[number]) > factor:
            board.drop(number)
    return board.changes()


class _Board:
    """The replicas while they are being moved. Implements `Units` for `even_out`."""

    def __init__(
        self,
        partitions: Sequence[Placed],
        holders: Iterable[Holder],
        *,
        others: Iterable[Placed] = (),
        keep_strangers: bool = False,
    ) -> None:
        self.partitions = partitions
        self.racks = {holder.node_id: holder.rack for holder in holders}
        if not self.racks:
            raise InvalidRequest("no broker is left to hold replicas")
        self.replicas = [list(placed.replicas) for placed in partitions]
        self.topics = [placed.topic for placed in partitions]
        self.nodes = sorted(self.racks)
        self.loads: Counter[tuple[str, NodeId]] = Counter()
        self.totals: Counter[NodeId] = Counter()
        for placed in (*partitions, *others):
            for node_id in placed.replicas:
                self._count(placed.topic, node_id, 1)
        if keep_strangers:
            return
        for placed in partitions:
            if len(placed.replicas) > len(self.racks):
                raise InvalidReplicationFactor(
                    f"{placed.name} has {len(placed.replicas)} replicas, "
                    f"they do not fit on {len(self.racks)} brokers"
                )

    def changes(self) -> Plan:
        return [
            replace(placed, replicas=tuple(replicas))
            for placed, replicas in zip(self.partitions, self.replicas, strict=True)
            if tuple(replicas) != placed.replicas
        ]

    # -- before anything is evened out ------------------------------------------------------------

    def take_in_orphans(self, leaving: set[NodeId] | None = None) -> None:
        """Replicas on other nodes (or on those `leaving`) go to the best of ours."""
        for number, replicas in enumerate(self.replicas):
            for node_id in list(replicas):
                if node_id in leaving if leaving is not None else node_id not in self.racks:
                    self._replace_orphan(number, node_id)

    def _replace_orphan(self, number: int, node_id: NodeId) -> None:
        stay = [other for other in self.replicas[number] if other != node_id]
        free = [other for other in self.nodes if other not in stay]
        if not free:
            name = self.partitions[number].name
            raise InvalidReplicationFactor(f"{name}: no broker is left that holds no replica of it")
        in_rack = Counter(self.racks.get(other) for other in stay)
        best = min(free, key=lambda other: (in_rack[self.racks[other]], *self._load(number, other)))
        self.hand(number, Hop(node_id, best))

    def part_racks(self) -> None:
        """Two replicas in a rack while another has two fewer: one of them goes there."""
        for number in range(len(self.replicas)):
            while (hop := self._parting(number)) is not None:
                self.hand(number, hop)

    def _parting(self, number: int) -> Hop | None:
        in_rack = self._in_rack(number)
        hops = [
            Hop(node_id, other)
            for node_id in self.replicas[number]
            for other in self.nodes
            if other not in self.replicas[number]
            and in_rack[self.racks[other]] + 2 <= in_rack[self.racks[node_id]]
        ]
        if not hops:
            return None

        def gain(hop: Hop) -> tuple[int, ...]:
            racks = in_rack[self.racks[hop.to]] - in_rack[self.racks[hop.start]]
            load, relief = self._load(number, hop.to), self._load(number, hop.start)
            return (racks, load[0] - relief[0], load[1] - relief[1], hop.start, hop.to)

        return min(hops, key=gain)

    # -- Units ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.replicas)

    def held(self, number: int) -> list[NodeId]:
        return self.replicas[number]

    def options(self, number: int) -> list[tuple[Hop, int]]:
        """To a node of the same rack, or of a rack that has fewer of this partition."""
        in_rack, held = self._in_rack(number), set(self.replicas[number])
        before = self.partitions[number].replicas
        racks = self.racks
        return [
            (Hop(node_id, other), (other not in before) - (node_id not in before))
            for node_id in self.replicas[number]
            for other in self.nodes
            if other not in held
            and (racks[other] == racks[node_id] or in_rack[racks[other]] < in_rack[racks[node_id]])
        ]

    def hand(self, number: int, hop: Hop) -> None:
        replicas = self.replicas[number]
        replicas[replicas.index(hop.start)] = hop.to
        self._count(self.topics[number], hop.start, -1)
        self._count(self.topics[number], hop.to, 1)

    # -- another number of replicas ---------------------------------------------------------------

    def add(self, number: int) -> None:
        held = self.replicas[number]
        in_rack = self._in_rack(number)
        free = [node_id for node_id in self.nodes if node_id not in held]
        best = min(free, key=lambda n: (in_rack[self.racks[n]], *self._load(number, n)))
        held.append(best)
        self._count(self.topics[number], best, 1)

    def drop(self, number: int) -> None:
        held, isr = self.replicas[number], self.partitions[number].isr
        in_rack = self._in_rack(number)

        def spared(node_id: NodeId) -> tuple[object, ...]:
            rack = in_rack[self.racks.get(node_id, "")]
            return (bool(isr) and node_id not in isr, rack, *self._load(number, node_id))

        leads = not isr or held[0] in isr
        gone = max(held[1:] if leads else held, key=spared)
        held.remove(gone)
        self._count(self.topics[number], gone, -1)

    def _in_rack(self, number: int) -> Counter[str]:
        return Counter(self.racks.get(node_id, "") for node_id in self.replicas[number])

    def _load(self, number: int, node_id: NodeId) -> tuple[int, int, int]:
        return self.loads[self.topics[number], node_id], self.totals[node_id], node_id

    def _count(self, topic: str, node_id: NodeId, more: int) -> None:
        self.loads[topic, node_id] += more
        self.totals[node_id] += more


class _Leaders:
    """The preferred leaders of a board: the first of each partition's replicas."""

    def __init__(self, board: _Board) -> None:
        self._board = board
        self.topics = board.topics
        self.nodes = board.nodes

    def __len__(self) -> int:
        return len(self._board)

    def held(self, number: int) -> list[NodeId]:
        return self._board.replicas[number][:1]

    def options(self, number: int) -> list[tuple[Hop, int]]:
        leader, *others = self._board.replicas[number]
        before = self._board.partitions[number].replicas[0]
        return [
            (Hop(leader, other), (other != before) - (leader != before)) for other in sorted(others)
        ]

    def hand(self, number: int, hop: Hop) -> None:
        replicas = self._board.replicas[number]
        at = replicas.index(hop.to)
        replicas[0], replicas[at] = replicas[at], replicas[0]
