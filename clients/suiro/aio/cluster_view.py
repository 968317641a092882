"""One look at a cluster, through whichever broker answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from suiro._proto import admin_pb2 as pb
from suiro.cluster_view import ClusterView, NodeView, VoterView
from suiro.model.ids import Address, NodeId
from suiro.transport.methods import AdminMethods

if TYPE_CHECKING:
    from suiro.aio.admin import Admin

MIN_INSYNC: Final = "min.insync.replicas"
ASKED_AT_ONCE: Final = 16


async def look(admin: Admin) -> ClusterView:
    """Nodes, topics, their least number of in-sync replicas, and the quorum."""
    cluster = await admin.describe_cluster()
    quorum = await admin.ask(AdminMethods.DESCRIBE_QUORUM, pb.DescribeQuorumRequest())
    topics = await admin.topics()
    moving = await admin.ask(AdminMethods.LIST_REASSIGNMENTS, pb.ListReassignmentsRequest())
    return ClusterView(
        cluster_id=cluster.cluster_id,
        nodes=tuple(map(_node, cluster.nodes)),
        topics=topics,
        min_insync=await _min_insync(admin, list(topics)),
        controller=NodeId(quorum.leader) if quorum.leader >= 0 else None,
        quorum=tuple(
            VoterView(
                NodeId(member.address.node_id),
                Address(member.address.host, member.address.port),
                member.voter,
                member.recently_active or member.address.node_id == quorum.leader,
            )
            for member in quorum.members
        ),
        reassigning=len(moving.reassignments),
    )


def _node(node: pb.NodeInfo) -> NodeView:
    return NodeView(
        NodeId(node.address.node_id),
        Address(node.address.host, node.address.port),
        tuple(node.roles),
        node.fenced,
        node.shutting_down,
        node.address.rack,
        node.software,
    )


async def _min_insync(admin: Admin, topics: list[str]) -> dict[str, int]:
    slots = asyncio.Semaphore(ASKED_AT_ONCE)

    async def of(topic: str) -> int:
        async with slots:
            return int((await admin.describe_configs(topic))[MIN_INSYNC].value)

    return dict(zip(topics, await asyncio.gather(*map(of, topics)), strict=True))
