"""A leader with its followers for unit tests: a state, an image of who is alive, a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.ids import (
    Address,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from suiro.model.image import Node
from suiro.model.records import NodeRegistered, PartitionState, Role

from cluster.broker.leader import Leader
from cluster.broker.replication_epochs import Position
from tests.sim.replication_log import MemoryLog, Record

if TYPE_CHECKING:
    from cluster.broker.replication_effects import LeaderEffect

T = TopicPartition("t", 0)
EPOCH = LeaderEpoch(5)
START_MS = 100_000


def state(
    *isr: int, replicas: tuple[int, ...] = (1, 2, 3), partition_epoch: int = 7
) -> PartitionState:
    return PartitionState(
        TopicId(b"t" * 16),
        0,
        tuple(map(NodeId, replicas)),
        tuple(map(NodeId, isr)),
        NodeId(1),
        EPOCH,
        PartitionEpoch(partition_epoch),
    )


def node(node_id: int, broker_epoch: int, *, fenced: bool = False) -> Node:
    registered = NodeRegistered(
        NodeId(node_id), b"i" * 16, BrokerEpoch(broker_epoch), (Role.BROKER,), Address("h", 1)
    )
    return Node(registered, fenced=fenced)


class Kit:
    """Broker 1 leads; follower n is on stream n in broker epoch 10 n, unless a test says else."""

    def __init__(
        self, *isr: int, records: int = 0, high_watermark: int = 0, held_end: int | None = None
    ) -> None:
        self.log = MemoryLog()
        self.nodes = {NodeId(n): node(n, 10 * n) for n in (1, 2, 3, 4)}
        self.grow(records)
        self.leader = Leader(
            T,
            NodeId(1),
            state(*isr),
            log=self.log,
            high_watermark=Offset(high_watermark),
            nodes=self.nodes,
        )
        held = self.log.log_end if held_end is None else Offset(held_end)
        self.started = self.leader.start(held, START_MS)

    def grow(self, records: int) -> None:
        for _ in range(records):
            self.log.append([Record(LeaderEpoch(0), self.log.log_end)])

    def append(self, records: int = 1, *, now_ms: int = START_MS) -> list[LeaderEffect]:
        for _ in range(records):
            self.log.append([Record(EPOCH, self.log.log_end)])
        effects = self.leader.on_appended(now_ms)
        return [*effects, *self.leader.on_held(self.log.log_end)]

    def announce(
        self,
        follower: int,
        end: int,
        *,
        last_epoch: int = 0,
        stream: int | None = None,
        broker_epoch: int | None = None,
        leader_epoch: int = EPOCH,
        partition_epoch: int = 7,
    ) -> list[LeaderEffect]:
        return self.leader.on_position(
            NodeId(follower),
            follower if stream is None else stream,
            BrokerEpoch(10 * follower if broker_epoch is None else broker_epoch),
            Position(
                LeaderEpoch(leader_epoch),
                Offset(0),
                Offset(end),
                LeaderEpoch(last_epoch if end else -1),
                PartitionEpoch(partition_epoch),
            ),
        )

    def ack(
        self, follower: int, end: int, *, stream: int | None = None, now_ms: int = START_MS
    ) -> list[LeaderEffect]:
        stream = follower if stream is None else stream
        return self.leader.on_ack(NodeId(follower), stream, EPOCH, Offset(end), now_ms)

    def push(self, follower: int, records: int = 100) -> None:
        """Send what there is, so many records in a part."""
        push = self.leader.next_push(NodeId(follower))
        assert push is not None
        start = getattr(push, "start", Offset(0))
        end = Offset(min(start + records, self.log.log_end))
        self.leader.on_pushed(NodeId(follower), end)

    def join(self, follower: int, end: int) -> list[LeaderEffect]:
        """Announce, be answered, and acknowledge."""
        self.announce(follower, end)
        self.leader.on_pushed(NodeId(follower), Offset(end))
        return self.ack(follower, end)
