"""What clients ask about the cluster, answered from this broker's image. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.errors import UnknownTopicOrPartition
from suiro.model.records import Role
from suiro.transport.wire_errors import error_to_proto

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.ids import NodeId
    from suiro.model.image import ClusterImage, Node, Topic
    from suiro.model.records import PartitionState


def describe_brokers(image: ClusterImage) -> list[NodeAddress]:
    """The brokers that serve."""
    return [
        node_address(image.nodes[node_id])
        for node_id in sorted(image.nodes)
        if not image.nodes[node_id].fenced
        and Role.BROKER in image.nodes[node_id].registration.roles
    ]


def describe_topics(image: ClusterImage, names: Iterable[str]) -> list[pb.TopicMetadata]:
    return [_describe(image.topic(name), name) for name in names]


def node_address(node: Node) -> NodeAddress:
    registration = node.registration
    return NodeAddress(
        node_id=node.id,
        host=registration.address.host,
        port=registration.address.port,
        rack=registration.rack,
    )


def _adding(state: PartitionState) -> list[NodeId]:
    moving = state.reassignment
    return [] if moving is None else [node for node in moving.adding if node not in state.isr]


def _describe(topic: Topic | None, name: str) -> pb.TopicMetadata:
    if topic is None:
        error = UnknownTopicOrPartition(f"there is no topic '{name}'")
        return pb.TopicMetadata(topic=name, error=error_to_proto(error))
    partitions = [
        pb.PartitionMetadata(
            partition=state.partition,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            replicas=state.replicas,
            isr=state.isr,
            recovery=state.recovery.value,
            adding=_adding(state),
        )
        for state in topic.partitions
    ]
    return pb.TopicMetadata(
        topic=name, topic_id=topic.id, internal=name.startswith("__"), partitions=partitions
    )
