"""What is on the disks of the brokers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import UnknownBroker
from suiro.model.ids import NodeId, TopicPartition
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from suiro.connection import Connection

ASK_S = 5.0


@dataclass(frozen=True, slots=True)
class ReplicaOnDisk:
    """One replica, in one directory."""

    partition: TopicPartition
    size_bytes: int
    segments: int
    leads: bool
    moving_to: str | None = None
    moved_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LogDirectoryInfo:
    """One log directory of one broker. One that has failed has no replicas to show, and one of a
    broker that does not answer no path.
    """

    broker: NodeId
    path: str
    free_bytes: int = 0
    error: str | None = None
    replicas: tuple[ReplicaOnDisk, ...] = ()

    @property
    def size_bytes(self) -> int:
        """What its replicas take, indexes not counted."""
        return sum(replica.size_bytes for replica in self.replicas)


async def move_replica(
    connection: Connection, partition: TopicPartition, broker: NodeId, to: str
) -> None:
    """Start it; raises UnknownBroker, InvalidRequest."""
    await connection.refresh([], timeout_s=ASK_S)
    if broker not in connection.brokers:
        raise UnknownBroker(f"there is no broker {broker}; there are {sorted(connection.brokers)}")
    request = pb.MoveReplicaRequest(topic=partition.topic, partition=partition.partition, to=to)
    await connection.transport.call(
        connection.brokers[broker], BrokerMethods.MOVE_REPLICA, request, timeout_s=ASK_S
    )


async def log_directories(connection: Connection) -> list[LogDirectoryInfo]:
    """Of every broker that the cluster knows, by id and path."""
    await connection.refresh([], timeout_s=ASK_S)
    found = await asyncio.gather(*(_ask(connection, node) for node in sorted(connection.brokers)))
    return [directory for some in found for directory in some]


async def _ask(connection: Connection, broker: NodeId) -> list[LogDirectoryInfo]:
    try:
        reply = await connection.transport.call(
            connection.brokers[broker],
            BrokerMethods.DESCRIBE_REPLICAS,
            pb.DescribeReplicasRequest(),
            timeout_s=ASK_S,
        )
    except SuiroError as error:
        return [LogDirectoryInfo(broker, "", error=str(error))]
    return [_info(broker, directory) for directory in reply.directories]


def _info(broker: NodeId, directory: pb.LogDirectory) -> LogDirectoryInfo:
    return LogDirectoryInfo(
        broker,
        directory.path,
        directory.free_bytes,
        directory.error.message or None,
        tuple(
            ReplicaOnDisk(
                TopicPartition(replica.topic, replica.partition),
                replica.size_bytes,
                replica.segments,
                replica.leads,
                replica.moving_to or None,
                replica.moved_bytes,
            )
            for replica in directory.replicas
        ),
    )
