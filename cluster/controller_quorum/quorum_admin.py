"""The part of the Admin service that is about the quorum itself.

DescribeQuorum is answered by every controller, each with its own view; the rest by the leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import admin_pb2 as pb
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.errors import NotController
from suiro.model.ids import Address, NodeId
from suiro.transport.api import Peer, Route
from suiro.transport.methods import AdminMethods

from cluster.controller_quorum.directory import id_bytes, id_text

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import TypeVar

    from cluster.controller_quorum.conf import Member
    from cluster.controller_quorum.controller import Controller
    from cluster.controller_quorum.raft import FollowerStatus, RaftStatus

    R = TypeVar("R")

NOBODY = -1


class QuorumAdmin:
    """Who is in the quorum, and changing that."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def routes(self) -> list[Route]:
        return [
            Route(AdminMethods.DESCRIBE_QUORUM, self.handle_describe_quorum),
            Route(AdminMethods.ADD_CONTROLLER, self.handle_add_controller),
            Route(AdminMethods.REMOVE_CONTROLLER, self.handle_remove_controller),
            Route(AdminMethods.TRANSFER_CONTROLLER, self.handle_transfer_controller),
        ]

    async def handle_describe_quorum(
        self, request: pb.DescribeQuorumRequest, _peer: Peer
    ) -> pb.DescribeQuorumReply:
        state_hash = ""
        applied = self._controller.driver.end - 1
        if request.with_state_hash:
            applied, state_hash = await self._applied_state()
        status = self._controller.driver.raft.status()
        return pb.DescribeQuorumReply(
            leader=NOBODY if status.leader is None else status.leader.node,
            term=status.term,
            commit_index=status.commit,
            last_index=status.last,
            snapshot_index=status.snapshot_index,
            members=self._members(status),
            state_hash=state_hash,
            applied_index=applied,
            node_id=self._controller.node_id,
        )

    async def handle_add_controller(
        self, request: pb.AddControllerRequest, _peer: Peer
    ) -> pb.AddControllerReply:
        address = Address(request.address.host, request.address.port)
        directory = id_text(request.directory_id) if request.directory_id else ""
        await self._led(
            self._controller.membership.add(address, NodeId(request.address.node_id), directory)
        )
        return pb.AddControllerReply()

    async def handle_remove_controller(
        self, request: pb.RemoveControllerRequest, _peer: Peer
    ) -> pb.RemoveControllerReply:
        directory = id_text(request.directory_id) if request.directory_id else ""
        await self._led(self._controller.membership.remove(NodeId(request.node_id), directory))
        return pb.RemoveControllerReply()

    async def handle_transfer_controller(
        self, request: pb.TransferControllerRequest, _peer: Peer
    ) -> pb.TransferControllerReply:
        to = None if request.to == NOBODY else NodeId(request.to)
        leader = await self._led(self._controller.membership.transfer(to))
        return pb.TransferControllerReply(leader=leader)

    async def _led(self, change: Awaitable[R]) -> R:
        try:
            return await change
        except NotController:
            raise self._controller.not_controller() from None

    async def _applied_state(self) -> tuple[int, str]:
        """The hash of the metadata and the index that it is of; no hash while there is none: this
        controller is building its machine anew.
        """
        controller = self._controller
        raft_log = controller.driver.raft.log
        if controller.is_serving:
            return await controller.read(
                lambda machine: (raft_log.last, machine.image.state_hash().hex())
            )
        replica = controller.replica
        if not replica.is_current:
            return 0, ""
        return replica.applied, replica.machine.image.state_hash().hex()

    def _members(self, status: RaftStatus) -> list[pb.QuorumMember]:
        followers = {follower.member: follower for follower in status.followers}
        voters = set(status.conf.voters)
        return [
            self._member(member, status, followers.get(member), is_voter=member in voters)
            for member in status.conf.members
        ]

    def _member(
        self,
        member: Member,
        status: RaftStatus,
        follower: FollowerStatus | None,
        *,
        is_voter: bool,
    ) -> pb.QuorumMember:
        controller = self._controller
        is_me = member == status.me
        address = controller.address if is_me else controller.peers.addresses.get(member.node)
        progress = controller.driver.raft.progress.get(member.node)
        return pb.QuorumMember(
            address=NodeAddress(
                node_id=member.node,
                host="" if address is None else address.host,
                port=0 if address is None else address.port,
            ),
            voter=is_voter,
            directory_id=id_bytes(member.directory),
            match_index=status.last if is_me else 0 if follower is None else follower.match,
            recently_active=is_me or (progress is not None and progress.active),
        )
