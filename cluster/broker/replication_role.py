"""What a broker is to a partition, by what it knows of the metadata.

A broker that has just started may be fed an old image first. It takes no role from one that does
not yet know of its present incarnation: in it the broker may still lead an epoch whose tail it has
lost, or follow a leader that is long deposed and truncate what was committed since (row 7).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.model.ids import BrokerEpoch, LeaderEpoch, NodeId
    from suiro.model.image import Node
    from suiro.model.records import PartitionState


class ReplicaRole(Enum):
    """What to do about a partition."""

    LEADER = "leader"
    FOLLOWER = "follower"
    WAITING = "waiting"
    """Nobody leads, or it is not known who does, or the controllers take the log for unusable."""
    ABSENT = "absent"
    """No replica belongs here. Its files go only when the metadata say so (M10)."""


def role_of(
    node: NodeId,
    broker_epoch: BrokerEpoch,
    nodes: Mapping[NodeId, Node],
    state: PartitionState,
    last_epoch: LeaderEpoch,
) -> ReplicaRole:
    """`last_epoch` is that of the log: what has records of a later leader epoch than the metadata
    know of must wait for the rest of them.
    """
    if not is_known(node, broker_epoch, nodes):
        return ReplicaRole.WAITING
    if node not in state.replicas:
        return ReplicaRole.ABSENT
    if not state.has_leader or state.leader_epoch < last_epoch or node in state.offline:
        return ReplicaRole.WAITING
    return ReplicaRole.LEADER if state.leader == node else ReplicaRole.FOLLOWER


def is_known(node: NodeId, broker_epoch: BrokerEpoch, nodes: Mapping[NodeId, Node]) -> bool:
    """Whether the metadata know of this incarnation of the broker."""
    known = nodes.get(node)
    return known is not None and known.broker_epoch == broker_epoch


def is_beyond(
    node: NodeId,
    broker_epoch: BrokerEpoch,
    nodes: Mapping[NodeId, Node],
    state: PartitionState,
    last_epoch: LeaderEpoch,
) -> bool:
    """Whether a log has records of a leader epoch that there never was. Metadata that know of this
    incarnation know of every epoch that an earlier one could write in, so a bit has flipped in the
    one field of the last record that neither its checksum nor a neighbour tells.
    """
    return is_known(node, broker_epoch, nodes) and state.leader_epoch < last_epoch


def is_outside(node: NodeId, state: PartitionState) -> bool:
    """Whether a node has a replica, somebody to follow, and is not in the ISR; one that is being
    added by a reassignment may take its time.
    """
    moving = state.reassignment
    is_new = moving is not None and node in moving.adding
    return state.has_leader and node in state.replicas and node not in state.isr and not is_new
