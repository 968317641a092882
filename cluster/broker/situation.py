"""What a partition finds around it on its broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cluster.broker.recent_read import RecentRead
from cluster.broker.replica_events import NO_REPLICA_EVENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import LeaderEpoch, NodeId, Offset
    from suiro.model.image import Node

    from cluster.broker.partition import Partition
    from cluster.broker.replica_events import ReplicaEvents
    from cluster.broker.replication_effects import FollowerEffect, LeaderEffect, ProposeIsr
    from cluster.broker.replication_epochs import Divergence, Position
    from cluster.host.clock import Clock
    from cluster.host.lease import Lease


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What to send to a follower next."""

    leader_epoch: LeaderEpoch
    start: Offset
    data: bytes
    high_watermark: Offset
    log_start: Offset
    diverging: Divergence | None


class Neighbours(Protocol):
    """The world around a partition: other replicas, the controller, the disk's syncer."""

    def ready(self, node: NodeId, stream: int, partition: Partition) -> None: ...
    def refuse(
        self, node: NodeId, stream: int, partition: Partition, error: SuiroError
    ) -> None: ...
    def propose(self, partition: Partition, proposal: ProposeIsr) -> None: ...
    def announce(self, partition: Partition, position: Position) -> None: ...
    def ack(self, partition: Partition, held_end: Offset) -> None: ...
    def appended(self, partition: Partition) -> None: ...
    def event(self, partition: Partition, effect: LeaderEffect | FollowerEffect) -> None: ...


@dataclass(frozen=True, slots=True)
class Situation:
    """What every partition of a broker shares."""

    node: NodeId
    nodes: Mapping[NodeId, Node]
    lease: Lease
    clock: Clock
    neighbours: Neighbours
    events: ReplicaEvents = NO_REPLICA_EVENTS
    recent: RecentRead = field(default_factory=RecentRead)
