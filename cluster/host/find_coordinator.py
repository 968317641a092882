"""FindCoordinator of both kinds, answered by every node from its image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import groupcoord_pb2 as group
from suiro._proto import txncoord_pb2 as txn
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.errors import CoordinatorLoading
from suiro.model.records import Role, ShardKind
from suiro.model.topics import SHARD_TOPICS, shard_of
from suiro.transport.api import Route
from suiro.transport.methods import GroupCoordinatorMethods, TxnCoordinatorMethods

if TYPE_CHECKING:
    from suiro.model.image import ClusterImage, Node
    from suiro.model.records import ShardOwned
    from suiro.transport.api import Peer

    from cluster.host.metadata_feed import MetadataFeed


class FindCoordinator:
    """Clients ask whom they know; a name that is empty asks only who is there."""

    def __init__(self, feed: MetadataFeed) -> None:
        self._feed = feed

    def routes(self) -> list[Route]:
        return [
            Route(GroupCoordinatorMethods.FIND_COORDINATOR, self.find_group),
            Route(TxnCoordinatorMethods.FIND_COORDINATOR, self.find_txn),
        ]

    async def find_group(
        self, request: group.FindGroupCoordinatorRequest, _peer: Peer
    ) -> group.FindGroupCoordinatorReply:
        image = self._feed.image
        reply = group.FindGroupCoordinatorReply(coordinators=_everyone(image, Role.GROUP))
        if request.group:
            state, owner = _owner(image, ShardKind.GROUP, request.group)
            reply.coordinator.CopyFrom(owner)
            reply.shard, reply.owner_epoch = state.shard, state.owner_epoch
        return reply

    async def find_txn(
        self, request: txn.FindTxnCoordinatorRequest, _peer: Peer
    ) -> txn.FindTxnCoordinatorReply:
        image = self._feed.image
        reply = txn.FindTxnCoordinatorReply(coordinators=_everyone(image, Role.TXN))
        if request.transactional_id:
            state, owner = _owner(image, ShardKind.TXN, request.transactional_id)
            reply.coordinator.CopyFrom(owner)
            reply.shard, reply.owner_epoch = state.shard, state.owner_epoch
        return reply


def _owner(image: ClusterImage, kind: ShardKind, name: str) -> tuple[ShardOwned, NodeAddress]:
    topic = image.topic(SHARD_TOPICS[kind])
    if topic is None:
        raise CoordinatorLoading(f"{SHARD_TOPICS[kind]} has not been created yet")
    state = image.shard(kind, shard_of(name, len(topic.partitions)))
    node = None if state is None else image.nodes.get(state.owner)
    if state is None or node is None:
        raise CoordinatorLoading(f"no {kind} coordinator is there to serve {name!r}")
    return state, _address(node)


def _everyone(image: ClusterImage, role: Role) -> list[NodeAddress]:
    return [_address(node) for node in image.available(role)]


def _address(node: Node) -> NodeAddress:
    address = node.registration.address
    return NodeAddress(
        node_id=node.id, host=address.host, port=address.port, rack=node.registration.rack
    )
