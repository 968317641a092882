"""Replicas that their broker cannot use, while it lives: a disk that failed, a log that is damaged.

The broker says so; what follows is decided here. An offline replica leads nothing and leaves the
ISR, unless it is the last one in it: nobody else has all that was acknowledged, so nobody leads
until it is back (P15: stop, never silently shorten). The mark is about the log, not about the
process. It outlives a restart of the broker, which takes it back once it has the log open, or has
begun it anew: and anew it may begin only outside the ISR, where nobody counts on what it held.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cluster.controller_quorum.elections import PartitionChanges, changed, with_back, without
from cluster.controller_quorum.metadata_configs import known_node
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import BrokerEpoch, NodeId
    from suiro.model.image import ClusterImage
    from suiro.model.records import PartitionId, PartitionState


def report_replicas(
    image: ClusterImage,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
    offline: Sequence[PartitionId],
    online: Sequence[PartitionId],
) -> Decision[int]:
    """What the node no longer holds, or never did, is passed over: the report is old."""
    known_node(image, node_id, broker_epoch)
    mine = image.replicas_on(node_id)
    changes = PartitionChanges(image)
    for state in image.partitions(mine & set(offline)):
        changes.add(state, _with_offline(image, state, node_id))
    for state in image.partitions(mine & (set(online) - set(offline))):
        changes.add(state, _with_online(image, state, node_id))
    return Decision(tuple(changes.records), len(changes.records), tuple(changes.effects))


def _with_offline(image: ClusterImage, state: PartitionState, node_id: NodeId) -> PartitionState:
    if node_id in state.offline:
        return state
    marked = replace(
        state, offline=tuple(n for n in state.replicas if n == node_id or n in state.offline)
    )
    new = without(image, marked, node_id)
    return changed(marked) if new is marked else new


def _with_online(image: ClusterImage, state: PartitionState, node_id: NodeId) -> PartitionState:
    if node_id not in state.offline:
        return state
    back = replace(state, offline=tuple(n for n in state.offline if n != node_id))
    if back.has_leader or not image.is_available(node_id):
        return changed(back)
    new = with_back(image, back, node_id)
    return changed(back) if new is back else new
