"""A leader's proposal for its ISR: accepted whole or refused, and only if nothing has changed.

The leader's own part, before it proposes: a follower joins only when it has fetched up to the high
watermark *and* up to the start of the leader's epoch (row 5 of RELIABILITY.md). The controller's,
here: the proposal is compared and set by the partition epoch (M8); it counts only from the leader
of the current leader epoch, so a deposed one cannot shrink or grow anything (row 1); every member
must still be the incarnation that the leader saw, and a new one neither fenced nor leaving, so that
no restart between looking and proposing lets a replica in that has lost its tail (row 7, P13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    BrokerFenced,
    FencedLeaderEpoch,
    InvalidRequest,
    NotLeader,
    StaleBrokerEpoch,
    StalePartitionEpoch,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from suiro.model.records import Recovery

from cluster.controller_quorum.elections import PartitionChanges, changed, name_of
from cluster.controller_quorum.metadata_configs import known_node
from cluster.controller_quorum.metadata_requests import IsrMember, IsrOutcome, IsrProposal
from cluster.controller_quorum.reassignment import advanced
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import BrokerEpoch, NodeId
    from suiro.model.image import ClusterImage
    from suiro.model.records import PartitionState


def alter_isr(
    image: ClusterImage,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
    proposals: Sequence[IsrProposal],
) -> Decision[tuple[IsrOutcome, ...]]:
    if known_node(image, node_id, broker_epoch).fenced:
        raise BrokerFenced(f"node {node_id} is fenced and leads nothing")
    if len({proposal.partition for proposal in proposals}) < len(proposals):
        raise InvalidRequest("a partition is proposed for twice in one request")
    changes = PartitionChanges(image)
    outcomes = []
    for proposal in proposals:
        try:
            old = _checked(image, node_id, proposal)
        except SuiroError as error:
            outcomes.append(IsrOutcome(proposal.partition, error=error))
            continue
        new = _accepted(image, old, proposal)
        changes.add(old, new)
        outcomes.append(IsrOutcome(proposal.partition, new))
    return Decision(tuple(changes.records), tuple(outcomes))


def _checked(image: ClusterImage, node_id: NodeId, proposal: IsrProposal) -> PartitionState:
    """The partition that the proposal is for, if it may change it."""
    state = image.partition(*proposal.partition)
    if state is None:
        raise UnknownTopicOrPartition(f"there is no partition {proposal.partition}")
    name = name_of(image, state)
    if proposal.leader_epoch < state.leader_epoch:
        raise FencedLeaderEpoch(f"{name}: leader epoch {proposal.leader_epoch} is over")
    if proposal.leader_epoch > state.leader_epoch:
        raise UnknownLeaderEpoch(f"{name}: no leader epoch {proposal.leader_epoch} is known here")
    if state.leader != node_id:
        raise NotLeader(name, state.leader if state.has_leader else None)
    if proposal.partition_epoch != state.partition_epoch:
        raise StalePartitionEpoch(
            f"{name}: proposed at partition epoch {proposal.partition_epoch}, "
            f"it is {state.partition_epoch} now"
        )
    members = {member.node_id for member in proposal.isr}
    if len(members) < len(proposal.isr) or node_id not in members:
        raise InvalidRequest(f"{name}: an ISR has its leader in it, and everyone once")
    if not members <= set(state.replicas):
        raise InvalidRequest(f"{name}: {sorted(members - set(state.replicas))} hold no replica")
    for member in proposal.isr:
        _check_member(image, state, member)
    return state


def _check_member(image: ClusterImage, state: PartitionState, member: IsrMember) -> None:
    node = image.nodes.get(member.node_id)
    if node is None or node.broker_epoch != member.broker_epoch:
        raise StaleBrokerEpoch(
            f"{name_of(image, state)}: node {member.node_id} has restarted since broker epoch "
            f"{member.broker_epoch}"
        )
    if member.node_id not in state.isr and not node.available:
        reason = "is fenced" if node.fenced else "is shutting down"
        raise BrokerFenced(f"{name_of(image, state)}: node {member.node_id} {reason}")
    if member.node_id in state.offline:
        raise InvalidRequest(f"{name_of(image, state)}: the replica {member.node_id} is offline")


def _accepted(image: ClusterImage, state: PartitionState, proposal: IsrProposal) -> PartitionState:
    """In the order of the replicas, so that equal sets are equal. Whatever the leader may have
    lacked when it began, its followers agree with it now: the mark goes.
    """
    members = {member.node_id for member in proposal.isr}
    isr = tuple(node_id for node_id in state.replicas if node_id in members)
    if isr == state.isr and state.recovery is Recovery.NONE:
        return state
    new = changed(state, isr=isr, recovery=Recovery.NONE)
    return advanced(image, new, since=state)
