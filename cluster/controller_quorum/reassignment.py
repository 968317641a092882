"""Move the replicas of a partition: begin, complete, cancel.

While it is under way the partition has the old replicas and, behind them, those being added; the
old ones go only when every added one is in the ISR and what remains of the ISR is enough for
min.insync.replicas. So no moment has fewer in-sync replicas than the topic asks for because of a
reassignment, and cancelling restores the old replicas in their old order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    InvalidReplicationFactor,
    InvalidRequest,
    LeaderNotAvailable,
    NoReassignment,
    ReassignmentInProgress,
    UnknownBroker,
)
from suiro.model.ids import NO_LEADER, LeaderEpoch, PartitionEpoch
from suiro.model.records import PartitionState, Reassignment, ReassignmentThrottleSet, Role

from cluster.controller_quorum.elections import (
    PartitionChanges,
    best_leader,
    changed,
    find,
    name_of,
)
from cluster.controller_quorum.metadata_configs import topic_setting
from cluster.controller_quorum.metadata_requests import Move, PartitionOutcome
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import NodeId
    from suiro.model.image import ClusterImage


def reassign(
    image: ClusterImage, moves: Sequence[Move], throttle_bytes_per_s: int | None
) -> Decision[tuple[PartitionOutcome, ...]]:
    if len({move.partition for move in moves}) < len(moves):
        raise InvalidRequest("a partition is moved twice in one request")
    changes = PartitionChanges(image)
    outcomes = []
    for move in moves:
        try:
            old = find(image, move.partition)
            new = _begun(image, old, move.replicas) if move.replicas else _cancelled(image, old)
        except SuiroError as error:
            outcomes.append(PartitionOutcome(move.partition, error=error))
            continue
        changes.add(old, new)
        outcomes.append(PartitionOutcome(move.partition, new.leader))
    throttle = _throttled(image, throttle_bytes_per_s)
    return Decision((*throttle, *changes.records), tuple(outcomes))


def complete_reassignments(image: ClusterImage) -> Decision[int]:
    changes = PartitionChanges(image)
    for state in image.partitions(image.reassigning):
        changes.add(state, advanced(image, state, since=state))
    return Decision(tuple(changes.records), len(changes.records))


def advanced(image: ClusterImage, state: PartitionState, since: PartitionState) -> PartitionState:
    """`state` with its reassignment completed, if that can be. `since` is the state that the
    decision started from: one decision is one step of the epochs.
    """
    moving = state.reassignment
    if moving is None:
        return state
    isr = tuple(node_id for node_id in moving.target if node_id in state.isr)
    wanted = topic_setting(image, image.topics[state.topic_id].name, "min.insync.replicas")
    if not set(moving.adding) <= set(isr) or len(isr) < min(wanted, len(moving.target)):
        return state
    leader = state.leader if state.leader in isr else best_leader(image, state, isr, but=NO_LEADER)
    if leader == NO_LEADER:
        return state
    return _step(
        since,
        replace(
            state,
            replicas=moving.target,
            isr=isr,
            leader=leader,
            reassignment=None,
            offline=_staying(state.offline, moving.target),
        ),
    )


def _begun(
    image: ClusterImage, state: PartitionState, target: tuple[NodeId, ...]
) -> PartitionState:
    name = name_of(image, state)
    if state.reassignment is not None:
        raise ReassignmentInProgress(
            f"{name}: on its way to {list(state.reassignment.target)} already"
        )
    if len(set(target)) < len(target):
        raise InvalidReplicationFactor(f"{name}: a node can hold one replica, not two")
    wanted = topic_setting(image, name.topic, "min.insync.replicas")
    if len(target) < min(wanted, len(state.replicas)):
        raise InvalidReplicationFactor(
            f"{name}: min.insync.replicas={wanted} can never be met with {len(target)} replicas"
        )
    adding = tuple(node_id for node_id in target if node_id not in state.replicas)
    for node_id in adding:
        node = image.nodes.get(node_id)
        if node is None or not node.available or Role.BROKER not in node.registration.roles:
            raise UnknownBroker(f"{name}: node {node_id} is no broker that is alive and staying")
    if target == state.replicas:
        return state
    replicas = (*state.replicas, *adding)
    begun = changed(
        state,
        replicas=replicas,
        reassignment=Reassignment(target, adding),
    )
    return advanced(image, begun, since=state)


def _cancelled(image: ClusterImage, state: PartitionState) -> PartitionState:
    name = name_of(image, state)
    if state.reassignment is None:
        raise NoReassignment(f"{name}: nothing is under way")
    adding = state.reassignment.adding
    replicas = tuple(node_id for node_id in state.replicas if node_id not in adding)
    isr = tuple(node_id for node_id in state.isr if node_id not in adding)
    if not isr:
        raise LeaderNotAvailable(f"{name}: only added replicas are in sync, so they have to stay")
    leader = state.leader
    if state.has_leader and leader not in isr:
        leader = best_leader(image, state, isr, but=NO_LEADER)
    return changed(
        state,
        replicas=replicas,
        isr=isr,
        leader=leader,
        reassignment=None,
        offline=_staying(state.offline, replicas),
    )


def _step(since: PartitionState, new: PartitionState) -> PartitionState:
    """`new` with the epochs that are one change after `since`."""
    return replace(
        new,
        leader_epoch=LeaderEpoch(since.leader_epoch + (new.leader != since.leader)),
        partition_epoch=PartitionEpoch(since.partition_epoch + 1),
    )


def _staying(some: tuple[NodeId, ...], replicas: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return tuple(node_id for node_id in replicas if node_id in some)


def _throttled(image: ClusterImage, bytes_per_s: int | None) -> tuple[ReassignmentThrottleSet, ...]:
    if bytes_per_s is None or bytes_per_s == image.throttle_bytes_per_s:
        return ()
    if bytes_per_s < 0:
        raise InvalidRequest(f"a throttle of {bytes_per_s} bytes/s would never end")
    return (ReassignmentThrottleSet(bytes_per_s),)
