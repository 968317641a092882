"""What an operator asks about the disks of this broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb
from suiro.model.ids import TopicPartition
from suiro.transport.api import Peer, Route
from suiro.transport.methods import BrokerMethods

from cluster.broker.replica_view import describe_replicas

if TYPE_CHECKING:
    from cluster.broker.replica_moves import ReplicaMoves
    from cluster.broker.replicas import Replicas


class DiskService:
    """A part of the service Broker."""

    def __init__(self, replicas: Replicas, moves: ReplicaMoves) -> None:
        self._replicas = replicas
        self._moves = moves

    def routes(self) -> list[Route]:
        return [
            Route(BrokerMethods.DESCRIBE_REPLICAS, self.describe_replicas),
            Route(BrokerMethods.MOVE_REPLICA, self.move_replica),
        ]

    async def describe_replicas(
        self, request: pb.DescribeReplicasRequest, _peer: Peer
    ) -> pb.DescribeReplicasReply:
        replicas, topics = self._replicas, set(request.topics)
        return describe_replicas(replicas.directories, replicas.all(), topics, self._moves.moves)

    async def move_replica(
        self, request: pb.MoveReplicaRequest, _peer: Peer
    ) -> pb.MoveReplicaReply:
        self._moves.start(TopicPartition(request.topic, request.partition), request.to)
        return pb.MoveReplicaReply()
