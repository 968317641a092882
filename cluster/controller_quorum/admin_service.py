"""The Admin service at a controller: what an operator may ask about topics, settings, replicas and
nodes. The active controller answers; what concerns the quorum itself is in `quorum_admin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import admin_pb2 as pb
from suiro._proto.common_pb2 import NodeAddress
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.model.configs import SETTINGS
from suiro.model.errors import InvalidRequest, UnknownBroker, UnknownTopicOrPartition
from suiro.model.ids import NodeId, TopicId, TopicPartition
from suiro.model.records import ConfigResource
from suiro.transport.api import Peer, Route
from suiro.transport.methods import AdminMethods
from suiro.transport.wire_errors import error_to_proto

from cluster.controller_quorum import large_topics
from cluster.controller_quorum.elections import name_of
from cluster.controller_quorum.metadata_requests import (
    Move,
    NewTopic,
    PartitionOutcome,
    TopicOutcome,
)
from cluster.controller_quorum.quorum_admin import QuorumAdmin

if TYPE_CHECKING:
    from random import Random

    from suiro.model.image import ClusterImage, Node

    from cluster.controller_quorum.controller import Controller

TOPIC_ID_BYTES = 16


class AdminService:
    """Every method of the Admin service."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._quorum = QuorumAdmin(controller)

    def routes(self) -> list[Route]:
        return [
            Route(AdminMethods.CREATE_TOPICS, self.handle_create_topics),
            Route(AdminMethods.DELETE_TOPICS, self.handle_delete_topics),
            Route(AdminMethods.ADD_PARTITIONS, self.handle_add_partitions),
            Route(AdminMethods.DESCRIBE_CONFIGS, self.handle_describe_configs),
            Route(AdminMethods.ALTER_CONFIGS, self.handle_alter_configs),
            Route(AdminMethods.ELECT_LEADERS, self.handle_elect_leaders),
            Route(AdminMethods.ALTER_REASSIGNMENTS, self.handle_alter_reassignments),
            Route(AdminMethods.LIST_REASSIGNMENTS, self.handle_list_reassignments),
            Route(AdminMethods.DESCRIBE_CLUSTER, self.handle_describe_cluster),
            Route(AdminMethods.UNREGISTER_NODE, self.handle_unregister_node),
            *self._quorum.routes(),
        ]

    # -- topics -----------------------------------------------------------------------------------

    async def handle_create_topics(
        self, request: pb.CreateTopicsRequest, _peer: Peer
    ) -> pb.CreateTopicsReply:
        topics = [_new_topic(topic, self._controller.env.rng) for topic in request.topics]
        outcomes = await large_topics.create_topics(
            self._controller, topics, validate_only=request.validate_only
        )
        return pb.CreateTopicsReply(results=[_topic_result(outcome) for outcome in outcomes])

    async def handle_delete_topics(
        self, request: pb.DeleteTopicsRequest, _peer: Peer
    ) -> pb.DeleteTopicsReply:
        outcomes = await self._controller.decide(
            lambda machine: machine.decide_delete_topics(tuple(request.names))
        )
        return pb.DeleteTopicsReply(results=[_topic_result(outcome) for outcome in outcomes])

    async def handle_add_partitions(
        self, request: pb.AddTopicPartitionsRequest, _peer: Peer
    ) -> pb.AddTopicPartitionsReply:
        partitions = await large_topics.add_partitions(
            self._controller, request.topic, request.total, validate_only=request.validate_only
        )
        return pb.AddTopicPartitionsReply(partitions=partitions)

    # -- settings ---------------------------------------------------------------------------------

    async def handle_describe_configs(
        self, request: pb.DescribeConfigsRequest, _peer: Peer
    ) -> pb.DescribeConfigsReply:
        resource = ConfigResource(request.resource)
        entries = await self._controller.read(
            lambda machine: _config_entries(machine.image, resource, request.name)
        )
        return pb.DescribeConfigsReply(entries=entries)

    async def handle_alter_configs(
        self, request: pb.AlterConfigsRequest, _peer: Peer
    ) -> pb.AlterConfigsReply:
        changes: dict[str, str | None] = dict(request.set)
        changes.update(dict.fromkeys(request.unset))
        await self._controller.decide(
            lambda machine: machine.decide_alter_config(
                ConfigResource(request.resource),
                request.name,
                changes,
                validate_only=request.validate_only,
            )
        )
        return pb.AlterConfigsReply()

    # -- leaders and replicas ---------------------------------------------------------------------

    async def handle_elect_leaders(
        self, request: pb.ElectLeadersRequest, _peer: Peer
    ) -> pb.ElectLeadersReply:
        partitions = [_partition(partition) for partition in request.partitions] or None
        outcomes = await self._controller.decide(
            lambda machine: machine.decide_elect_leaders(partitions, unclean=request.unclean)
        )
        return pb.ElectLeadersReply(results=[_election_result(outcome) for outcome in outcomes])

    async def handle_alter_reassignments(
        self, request: pb.AlterReassignmentsRequest, _peer: Peer
    ) -> pb.AlterReassignmentsReply:
        moves = [
            Move(_partition(move.partition), tuple(NodeId(node) for node in move.replicas))
            for move in request.reassignments
        ]
        throttle = 0 if request.unthrottled else request.throttle_bytes_per_s or None
        outcomes = await self._controller.decide(
            lambda machine: machine.decide_reassign(moves, throttle_bytes_per_s=throttle)
        )
        results = [_election_result(outcome) for outcome in outcomes]
        return pb.AlterReassignmentsReply(results=results)

    async def handle_list_reassignments(
        self, _request: pb.ListReassignmentsRequest, _peer: Peer
    ) -> pb.ListReassignmentsReply:
        return await self._controller.read(lambda machine: _reassignments(machine.image))

    # -- nodes ------------------------------------------------------------------------------------

    async def handle_describe_cluster(
        self, _request: pb.DescribeClusterRequest, _peer: Peer
    ) -> pb.DescribeClusterReply:
        nodes = await self._controller.read(lambda machine: _node_infos(machine.image))
        return pb.DescribeClusterReply(
            cluster_id=self._controller.cluster_id,
            nodes=nodes,
            active_controller=self._controller.node_id,
            image_index=self._controller.driver.end - 1,
        )

    async def handle_unregister_node(
        self, request: pb.UnregisterNodeRequest, _peer: Peer
    ) -> pb.UnregisterNodeReply:
        await self._controller.decide(
            lambda machine: machine.decide_unregister(NodeId(request.node_id))
        )
        return pb.UnregisterNodeReply()


def _new_topic(topic: pb.NewTopic, rng: Random) -> NewTopic:
    return NewTopic(
        name=topic.name,
        topic_id=TopicId(rng.randbytes(TOPIC_ID_BYTES)),
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignment=tuple(
            tuple(NodeId(node) for node in replicas.nodes) for replicas in topic.assignment
        ),
        configs=dict(topic.configs),
    )


def _topic_result(outcome: TopicOutcome) -> pb.TopicResult:
    return pb.TopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id or b"",
        error=None if outcome.error is None else error_to_proto(outcome.error),
        partitions=outcome.partitions,
        replication_factor=outcome.replication_factor,
    )


def _partition(partition: WirePartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


def _wire_partition(partition: TopicPartition) -> WirePartition:
    return WirePartition(topic=partition.topic, partition=partition.partition)


def _election_result(outcome: PartitionOutcome) -> pb.ElectionResult:
    return pb.ElectionResult(
        partition=_wire_partition(outcome.partition),
        leader=outcome.leader,
        error=None if outcome.error is None else error_to_proto(outcome.error),
    )


def _config_entries(
    image: ClusterImage, resource: ConfigResource, name: str
) -> list[pb.ConfigEntry]:
    """Every setting with the value that holds, and where that comes from."""
    if resource is ConfigResource.TOPIC and image.topic(name) is None:
        raise UnknownTopicOrPartition(f"there is no topic {name}")
    if resource is ConfigResource.BROKER and name and not name.isdigit():
        raise InvalidRequest(f"a broker is named by its id, not by '{name}'")
    if resource is ConfigResource.BROKER and name and NodeId(int(name)) not in image.nodes:
        raise UnknownBroker(f"node {name} is not registered")
    own = image.configs(resource, name)
    cluster = image.configs(ConfigResource.CLUSTER)
    entries = []
    for key, row in SETTINGS[resource].items():
        default = row.format(row.default)
        source = "default"
        if key in cluster:
            source = "cluster"
        if key in own:
            source = resource.name.lower()
        entries.append(
            pb.ConfigEntry(
                key=key,
                value=own.get(key, cluster.get(key, default)),
                default_value=default,
                is_default=source == "default",
                source=source,
                doc=row.doc,
            )
        )
    return entries


def _reassignments(image: ClusterImage) -> pb.ListReassignmentsReply:
    reply = pb.ListReassignmentsReply(throttle_bytes_per_s=image.throttle_bytes_per_s)
    for state in image.partitions(image.reassigning):
        assert state.reassignment is not None
        target = state.reassignment.target
        reply.reassignments.append(
            pb.ReassignmentState(
                partition=_wire_partition(name_of(image, state)),
                replicas=state.replicas,
                adding=state.reassignment.adding,
                removing=[node for node in state.replicas if node not in target],
                isr=state.isr,
                leader=state.leader,
            )
        )
    return reply


def _node_infos(image: ClusterImage) -> list[pb.NodeInfo]:
    return [_node_info(image, image.nodes[node_id]) for node_id in sorted(image.nodes)]


def _node_info(image: ClusterImage, node: Node) -> pb.NodeInfo:
    registered = node.registration
    return pb.NodeInfo(
        address=NodeAddress(
            node_id=node.id,
            host=registered.address.host,
            port=registered.address.port,
            rack=registered.rack,
        ),
        roles=[role.value for role in registered.roles],
        broker_epoch=node.broker_epoch,
        fenced=node.fenced,
        shutting_down=node.shutting_down,
        leaders=len(image.leaders_on(node.id)),
        replicas=len(image.replicas_on(node.id)),
        software=registered.software,
    )
