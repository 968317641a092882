"""The Controller service: the wire's messages to the machine's questions, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro._proto import controller_pb2 as pb
from suiro.model.errors import InvalidRequest
from suiro.model.ids import (
    Address,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    PartitionEpoch,
    TopicId,
)
from suiro.model.records import PartitionId, Role
from suiro.transport.api import Peer, Route
from suiro.transport.methods import ControllerMethods
from suiro.transport.wire_errors import error_to_proto

from cluster.controller_quorum.metadata_requests import (
    IsrMember,
    IsrOutcome,
    IsrProposal,
    Registration,
)
from cluster.host.hello import check_hello

if TYPE_CHECKING:
    from suiro._proto.common_pb2 import Hello
    from suiro.transport.api import Stream

    from cluster.controller_quorum.controller import Controller


class ControllerService:
    """What nodes ask the controllers."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> list[Route]:
        return [
            Route(ControllerMethods.REGISTER_NODE, self.handle_register_node),
            Route(ControllerMethods.NODE_SESSION, self.handle_node_session),
            Route(ControllerMethods.FOLLOW_METADATA, self.handle_follow_metadata),
            Route(ControllerMethods.ALTER_PARTITIONS, self.handle_alter_partitions),
            Route(ControllerMethods.REPORT_REPLICAS, self.handle_report_replicas),
            Route(ControllerMethods.ALLOCATE_PRODUCER_IDS, self.handle_allocate_producer_ids),
        ]

    async def handle_register_node(
        self, request: pb.RegisterNodeRequest, _peer: Peer
    ) -> pb.RegisterNodeReply:
        self._check(request.hello)
        if request.hello.node_id != request.address.node_id:
            raise InvalidRequest("hello and address name different nodes")
        registered, index = await self._controller.sessions.register(_registration(request))
        return pb.RegisterNodeReply(
            broker_epoch=registered.broker_epoch,
            registered_at_index=index,
            lost_directories=registered.lost_directories,
        )

    async def handle_node_session(self, stream: Stream[Any, Any], _peer: Peer) -> None:
        await self._controller.sessions.hold(stream)

    async def handle_follow_metadata(self, stream: Stream[Any, Any], _peer: Peer) -> None:
        request = await stream.receive()
        if request is None:
            raise InvalidRequest("a feed begins with a request")
        self._check(request.hello)
        if request.from_index < 0:
            raise InvalidRequest("from_index is negative")
        await self._controller.feed.follow(stream, request.from_index)

    async def handle_alter_partitions(
        self, request: pb.AlterPartitionsRequest, _peer: Peer
    ) -> pb.AlterPartitionsReply:
        proposals = [_proposal(change) for change in request.changes]
        outcomes = await self._controller.decide(
            lambda machine: machine.decide_alter_isr(
                NodeId(request.node_id), BrokerEpoch(request.broker_epoch), proposals
            )
        )
        return pb.AlterPartitionsReply(results=[_isr_result(outcome) for outcome in outcomes])

    async def handle_report_replicas(
        self, request: pb.ReportReplicasRequest, _peer: Peer
    ) -> pb.ReportReplicasReply:
        await self._controller.decide(
            lambda machine: machine.decide_report_replicas(
                NodeId(request.node_id),
                BrokerEpoch(request.broker_epoch),
                [_replica(replica) for replica in request.offline],
                [_replica(replica) for replica in request.online],
            )
        )
        return pb.ReportReplicasReply()

    async def handle_allocate_producer_ids(
        self, request: pb.AllocateProducerIdsRequest, _peer: Peer
    ) -> pb.AllocateProducerIdsReply:
        ids = await self._controller.decide(
            lambda machine: machine.decide_allocate_producer_ids(
                NodeId(request.node_id), BrokerEpoch(request.broker_epoch)
            )
        )
        return pb.AllocateProducerIdsReply(first=ids.start, count=ids.end - ids.start)

    def _check(self, hello: Hello) -> None:
        check_hello(hello, self._controller.cluster_id, self._controller.node_id)


def _registration(request: pb.RegisterNodeRequest) -> Registration:
    address = request.address
    try:
        roles = tuple(Role(role) for role in request.roles)
    except ValueError as error:
        raise InvalidRequest(f"a role that is unknown here: {error}") from None
    return Registration(
        node_id=NodeId(address.node_id),
        incarnation=request.incarnation,
        roles=roles,
        address=Address(address.host, address.port),
        rack=address.rack,
        log_directories=tuple(request.log_directories),
        features=tuple(request.hello.features),
        software=request.hello.software,
        clean_shutdown=request.clean_shutdown,
        former_broker_epoch=BrokerEpoch(request.former_broker_epoch),
    )


def _replica(replica: pb.ReplicaId) -> PartitionId:
    return PartitionId(TopicId(replica.topic_id), replica.partition)


def _proposal(change: pb.PartitionChange) -> IsrProposal:
    return IsrProposal(
        PartitionId(TopicId(change.topic_id), change.partition),
        LeaderEpoch(change.leader_epoch),
        PartitionEpoch(change.partition_epoch),
        tuple(
            IsrMember(NodeId(member.node_id), BrokerEpoch(member.broker_epoch))
            for member in change.isr
        ),
    )


def _isr_result(outcome: IsrOutcome) -> pb.PartitionChangeResult:
    if outcome.error is not None:
        return pb.PartitionChangeResult(error=error_to_proto(outcome.error))
    assert outcome.state is not None
    return pb.PartitionChangeResult(
        partition_epoch=outcome.state.partition_epoch, isr=outcome.state.isr
    )
