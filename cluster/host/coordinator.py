"""A coordinator role on a node: its internal topic made, its shards owned."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from suiro._proto.common_pb2 import NodeAddress
from suiro.model.topics import SHARD_TOPICS

from cluster.host.hello import greet_client
from cluster.host.internal_topics import make_internal_topic
from cluster.host.machine import Machine
from cluster.host.shards import Shards

if TYPE_CHECKING:
    from suiro._proto.common_pb2 import Hello, HelloReply
    from suiro.model.ids import NodeId
    from suiro.model.image import ClusterImage
    from suiro.model.records import ShardKind

    from cluster.host.env import Env
    from cluster.host.lease import Lease
    from cluster.host.metadata_feed import MetadataFeed
    from cluster.host.quorum_client import QuorumClient
    from cluster.host.shards import Program

M = TypeVar("M", bound=Machine[Any])


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What the coordinator roles of a node share."""

    env: Env
    node_id: NodeId
    cluster_id: str
    lease: Lease
    quorum: QuorumClient
    feed: MetadataFeed
    internal_partitions: dict[ShardKind, int]
    internal_replicas: int
    is_scraped: bool = False
    """Whether anybody may look at the metrics page."""

    def greet(self, hello: Hello) -> HelloReply:
        return greet_client(hello, self.cluster_id, self.node_id)

    def address(self) -> NodeAddress:
        """Where this node is, as the cluster knows it."""
        registration = self.feed.image.nodes[self.node_id].registration
        return NodeAddress(
            node_id=self.node_id,
            host=registration.address.host,
            port=registration.address.port,
            rack=registration.rack,
        )


class Coordinator(Generic[M]):
    """What group and transaction coordinators have in common."""

    def __init__(self, context: RoleContext, program: Program[M]) -> None:
        self.context = context
        self.shards = Shards(context.env, context.node_id, context.lease, program)
        self._kind = program.kind

    def on_image(self, image: ClusterImage) -> None:
        """The metadata have changed."""
        self.shards.on_image(image)

    async def run(self) -> None:
        context = self.context
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.shards.run(), name=f"{self._kind} shards")
            await make_internal_topic(
                context.env,
                context.quorum,
                context.feed,
                SHARD_TOPICS[self._kind],
                context.internal_partitions[self._kind],
                context.internal_replicas,
            )
