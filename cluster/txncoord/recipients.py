"""The brokers and group coordinators, as a transaction coordinator reaches them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import broker_pb2, groupcoord_pb2
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.model.errors import CoordinatorLoading, Unavailable
from suiro.model.ids import NO_LEADER, TopicPartition
from suiro.model.records import ShardKind
from suiro.model.topics import GROUP_TOPIC, shard_of
from suiro.transport.methods import BrokerMethods, GroupCoordinatorMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.ids import Address, NodeId, ProducerIdentity
    from suiro.model.image import ClusterImage

    from cluster.host.env import Env
    from cluster.host.shards import Shard
    from cluster.txncoord.machine import TxnMachine

MARK_TIMEOUT_S = 4.0
"""Longer than it takes to replace a broker that hangs: the next attempt finds its successor."""
SETTLE_TIMEOUT_S = 4.0


class NodeRecipients:
    """For one shard, under its owner epoch; finds everybody in the metadata of this node."""

    def __init__(
        self,
        env: Env,
        image: Callable[[], ClusterImage],
        shard: Shard[TxnMachine],
        on_marked: Callable[[], None],
    ) -> None:
        self._on_marked = on_marked
        self._env = env
        self._image = image
        self._shard = shard

    def leader_of(self, partition: TopicPartition) -> NodeId | None:
        topic = self._image().topic(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        leader = topic.partitions[partition.partition].leader
        return None if leader == NO_LEADER else leader

    def is_deleted(self, partition: TopicPartition) -> bool:
        """That a name is unknown here may only mean that this image is old: a deletion counts."""
        image = self._image()
        if image.topic(partition.topic) is not None:
            return False
        return partition.topic in image.deleted_topics.values()

    async def write_markers(
        self,
        broker: NodeId,
        marker: ProducerIdentity,
        commit: bool,
        partitions: Sequence[TopicPartition],
    ) -> Sequence[TopicPartition]:
        request = broker_pb2.WriteTxnMarkersRequest(
            markers=[
                broker_pb2.TxnMarker(
                    producer_id=marker.producer_id,
                    producer_epoch=marker.producer_epoch,
                    commit=commit,
                    owner_epoch=self._shard.owner_epoch,
                    shard=self._shard.index,
                    partitions=[
                        WirePartition(topic=p.topic, partition=p.partition) for p in partitions
                    ],
                )
            ]
        )
        reply = await self._env.transport.call(
            self._address_of(broker),
            BrokerMethods.WRITE_TXN_MARKERS,
            request,
            timeout_s=MARK_TIMEOUT_S,
        )
        self._on_marked()
        return [
            TopicPartition(result.partition.topic, result.partition.partition)
            for result in reply.results
            if not result.error.code
        ]

    async def settle_offsets(self, group: str, identity: ProducerIdentity, commit: bool) -> None:
        image = self._image()
        topic = image.topic(GROUP_TOPIC)
        state = (
            None
            if topic is None
            else image.shard(ShardKind.GROUP, shard_of(group, len(topic.partitions)))
        )
        if state is None:
            raise CoordinatorLoading(f"no coordinator owns group {group!r} now")
        request = groupcoord_pb2.SettleOffsetsRequest(
            group=group,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            commit=commit,
            txn_owner_epoch=self._shard.owner_epoch,
            txn_shard=self._shard.index,
        )
        await self._env.transport.call(
            self._address_of(state.owner),
            GroupCoordinatorMethods.SETTLE_OFFSETS,
            request,
            timeout_s=SETTLE_TIMEOUT_S,
        )

    def _address_of(self, node_id: NodeId) -> Address:
        node = self._image().nodes.get(node_id)
        if node is None:
            raise Unavailable(f"node {node_id} is not known here")
        return node.registration.address
