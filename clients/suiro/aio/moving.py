"""How far reassignments are: what the controllers say of them, and what the brokers hold."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from suiro._proto import admin_pb2 as pb
from suiro._proto import broker_pb2
from suiro.model.error_base import SuiroError
from suiro.model.ids import NodeId, TopicPartition
from suiro.transport.methods import AdminMethods, BrokerMethods

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.connection import Connection
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")

ASK_S = 5.0


@dataclass(frozen=True, slots=True)
class Moving:
    """A partition whose replicas are being moved; bytes are counted for each of those added."""

    partition: TopicPartition
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId | None
    bytes_total: int
    bytes_left: int

    @property
    def percent(self) -> float:
        return 100.0 if not self.bytes_total else 100 * (1 - self.bytes_left / self.bytes_total)


class Asking(Protocol):
    """What is needed of an Admin."""

    connection: Connection

    async def ask(self, method: Method[Q, R], request: Q) -> R: ...


Sizes = dict[tuple[NodeId, TopicPartition], int]


async def moving_partitions(admin: Asking) -> list[Moving]:
    """Everything under way. A broker that does not answer counts as having nothing yet."""
    reply = await admin.ask(AdminMethods.LIST_REASSIGNMENTS, pb.ListReassignmentsRequest())
    states = list(reply.reassignments)
    if not states:
        return []
    await admin.connection.refresh([], timeout_s=ASK_S)
    involved = sorted({NodeId(n) for state in states for n in (*state.adding, state.leader)})
    topics = sorted({state.partition.topic for state in states})
    found = await asyncio.gather(*(_sizes(admin, node_id, topics) for node_id in involved))
    sizes: Sizes = {}
    for some in found:
        sizes.update(some)
    return [_moving(state, sizes) for state in states]


async def _sizes(admin: Asking, node_id: NodeId, topics: Iterable[str]) -> Sizes:
    address = admin.connection.brokers.get(node_id)
    if address is None:
        return {}
    request = broker_pb2.DescribeReplicasRequest(topics=topics)
    try:
        reply = await admin.connection.transport.call(
            address, BrokerMethods.DESCRIBE_REPLICAS, request, timeout_s=ASK_S
        )
    except SuiroError:
        return {}
    return {
        (node_id, TopicPartition(replica.topic, replica.partition)): replica.size_bytes
        for directory in reply.directories
        for replica in directory.replicas
    }


def _moving(state: pb.ReassignmentState, sizes: Sizes) -> Moving:
    partition = TopicPartition(state.partition.topic, state.partition.partition)
    adding = tuple(NodeId(node_id) for node_id in state.adding)
    size = sizes.get((NodeId(state.leader), partition), 0)
    behind = [
        max(0, size - sizes.get((node_id, partition), 0))
        for node_id in adding
        if node_id not in state.isr
    ]
    return Moving(
        partition,
        tuple(NodeId(node_id) for node_id in state.replicas),
        adding,
        tuple(NodeId(node_id) for node_id in state.removing),
        tuple(NodeId(node_id) for node_id in state.isr),
        NodeId(state.leader) if state.leader >= 0 else None,
        bytes_total=size * len(adding),
        bytes_left=sum(behind),
    )
