"""How nodes come and go: register, unfence, leave, be fenced.

P13, as far as the controllers can see to it. A node that registers without the mark of a clean
shutdown under its former broker epoch, or without all the log directories it had, may have lost
what it had not synced. It leaves every ISR that has another member. Where it is the *last* member
it stays: nobody else has all that was acknowledged, so it is the only one who may lead again, and
the partition carries the mark LAST_STANDING until it has. (docs/metadata.md has the reasons.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from suiro.model.errors import DuplicateNode, InvalidRequest, UnknownBroker, UnsupportedVersion
from suiro.model.ids import NO_OWNER, BrokerEpoch
from suiro.model.limits import PARTITIONS_PER_DECISION_MAX
from suiro.model.records import (
    NodeFenced,
    NodeRegistered,
    NodeShuttingDown,
    NodeUnfenced,
    NodeUnregistered,
    Recovery,
    Role,
)

from cluster.controller_quorum.elections import (
    PartitionChanges,
    changed,
    handed_over,
    with_back,
    without,
)
from cluster.controller_quorum.metadata_configs import known_node
from cluster.controller_quorum.metadata_requests import (
    Heartbeat,
    Registered,
    Registration,
    Standing,
)
from cluster.controller_quorum.metadata_shards import shards_of, shards_with, shards_without
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import NodeId
    from suiro.model.image import ClusterImage, Node
    from suiro.model.records import PartitionId, PartitionState

INCARNATION_BYTES = 16


def register(image: ClusterImage, node: Registration, session_alive: bool) -> Decision[Registered]:
    former = image.nodes.get(node.node_id)
    if former is not None:
        if former.registration.incarnation == node.incarnation:
            told = former.registration  # its first answer got lost
            return Decision((), Registered(told.broker_epoch, told.lost_directories))
        # Two processes cannot listen at one address: whoever does now is the former's successor.
        if session_alive and former.registration.address != node.address:
            raise DuplicateNode(
                f"node {node.node_id} is alive at {former.registration.address}, and another "
                f"process at {node.address} wants its id"
            )
    _check(image, node)
    lost = () if former is None else _lost_directories(former, node)
    clean = former is None or (_shut_down_cleanly(former, node) and not lost)
    record = NodeRegistered(
        node.node_id,
        node.incarnation,
        BrokerEpoch(image.broker_epoch_max + 1),
        node.roles,
        node.address,
        node.rack,
        node.log_directories,
        node.features,
        node.software,
        clean,
        lost,
    )
    changes = PartitionChanges(image)
    for state in image.partitions(image.replicas_on(node.node_id)):
        changes.add(state, _restarted(image, state, node.node_id, clean))
    records = (record, *changes.records, *shards_without(image, node.node_id))
    return Decision(records, Registered(record.broker_epoch, lost), tuple(changes.effects))


def _check(image: ClusterImage, node: Registration) -> None:
    if node.node_id < 0 or len(node.incarnation) != INCARNATION_BYTES or not node.roles:
        raise InvalidRequest("a node needs an id from 0 up, an incarnation of 16 bytes and a role")
    if Role.BROKER not in node.roles and image.replicas_on(node.node_id):
        raise InvalidRequest(f"replicas are on node {node.node_id}, so it must be a broker")
    missing = sorted(
        name for name, level in image.features.items() if level and name not in node.features
    )
    if missing:
        raise UnsupportedVersion(
            f"the cluster uses {missing}, node {node.node_id} does not know it"
        )


def _lost_directories(former: Node, node: Registration) -> tuple[str, ...]:
    """What the node had and has no more, also if it died before it could say what that took."""
    told = former.registration
    return tuple(sorted({*told.log_directories, *told.lost_directories} - {*node.log_directories}))


def _shut_down_cleanly(former: Node, node: Registration) -> bool:
    return node.clean_shutdown and node.former_broker_epoch == former.broker_epoch


def _restarted(
    image: ClusterImage, state: PartitionState, node_id: NodeId, clean: bool
) -> PartitionState:
    new = without(image, state, node_id)
    if clean or new.isr != (node_id,) or new.recovery is not Recovery.NONE:
        return new
    if new is state:
        return changed(state, recovery=Recovery.LAST_STANDING)
    return replace(new, recovery=Recovery.LAST_STANDING)


def heartbeat(image: ClusterImage, heard: Heartbeat) -> Decision[Standing]:
    node = known_node(image, heard.node_id, heard.broker_epoch)
    if heard.want_shutdown:
        return controlled_shutdown(image, heard.node_id, heard.broker_epoch)
    if heard.ready:
        return unfence(image, heard.node_id, heard.broker_epoch)
    return Decision((), Standing(node.fenced))


def fence(image: ClusterImage, node_id: NodeId, broker_epoch: BrokerEpoch) -> Decision[Standing]:
    if known_node(image, node_id, broker_epoch).fenced:
        return Decision((), Standing(fenced=True))
    changes = PartitionChanges(image)
    for state in image.partitions(image.replicas_on(node_id)):
        changes.add(state, without(image, state, node_id))
    records = (
        NodeFenced(node_id, broker_epoch),
        *changes.records,
        *shards_without(image, node_id),
    )
    return Decision(records, Standing(fenced=True), tuple(changes.effects))


def evacuate(
    image: ClusterImage,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
    partitions: Sequence[PartitionId],
) -> Decision[int]:
    if known_node(image, node_id, broker_epoch).fenced:
        return Decision((), 0)
    changes = PartitionChanges(image)
    for state in image.partitions(image.replicas_on(node_id) & set(partitions)):
        changes.add(state, handed_over(image, state, node_id))
    return Decision(tuple(changes.records), len(changes.records), tuple(changes.effects))


def unfence(image: ClusterImage, node_id: NodeId, broker_epoch: BrokerEpoch) -> Decision[Standing]:
    node = known_node(image, node_id, broker_epoch)
    if not node.fenced or node.shutting_down:
        return Decision((), Standing(node.fenced))
    leaderless = sorted(image.leaderless & image.replicas_on(node_id))
    changes = _led_again(image, node_id, leaderless[:PARTITIONS_PER_DECISION_MAX])
    records = (NodeUnfenced(node_id, broker_epoch), *changes.records, *shards_with(image, node_id))
    return Decision(records, Standing(fenced=False), tuple(changes.effects))


def lead_again(
    image: ClusterImage,
    node_id: NodeId,
    broker_epoch: BrokerEpoch,
    partitions: Sequence[PartitionId],
) -> Decision[int]:
    node = known_node(image, node_id, broker_epoch)
    if node.fenced or node.shutting_down:
        return Decision((), 0)
    changes = _led_again(image, node_id, partitions)
    return Decision(tuple(changes.records), len(changes.records), tuple(changes.effects))


def _led_again(
    image: ClusterImage, node_id: NodeId, partitions: Sequence[PartitionId]
) -> PartitionChanges:
    """Those of them that have no leader and that a node may lead now that it serves again."""
    changes = PartitionChanges(image)
    mine = image.replicas_on(node_id) & set(partitions)
    for state in image.partitions(mine & image.leaderless):
        changes.add(state, with_back(image, state, node_id))
    return changes


def controlled_shutdown(
    image: ClusterImage, node_id: NodeId, broker_epoch: BrokerEpoch
) -> Decision[Standing]:
    node = known_node(image, node_id, broker_epoch)
    if node.fenced:
        return Decision((), Standing(fenced=True, may_shut_down=True))
    changes = PartitionChanges(image)
    leaders_left = 0
    for state in image.partitions(image.replicas_on(node_id)):
        new = handed_over(image, state, node_id)
        changes.add(state, new)
        # Waiting is for a replica that may still catch up; without one it would be for nothing.
        leaders_left += new.leader == node_id and any(
            image.is_available(other) for other in state.replicas if other != node_id
        )
    shards = [owned for owned in shards_without(image, node_id) if owned.owner != NO_OWNER]
    moved = {(owned.kind, owned.shard) for owned in shards}
    shards_left = sum((o.kind, o.shard) not in moved for o in shards_of(image, node_id))
    leaving = () if node.shutting_down else (NodeShuttingDown(node_id, broker_epoch),)
    standing = Standing(
        fenced=False,
        leaders_left=leaders_left,
        shards_left=shards_left,
        may_shut_down=leaders_left == 0 and shards_left == 0,
    )
    return Decision((*leaving, *changes.records, *shards), standing)


def unregister(image: ClusterImage, node_id: NodeId) -> Decision[None]:
    node = image.nodes.get(node_id)
    if node is None:
        raise UnknownBroker(f"node {node_id} is not registered")
    if not node.fenced:
        raise InvalidRequest(f"node {node_id} is alive; stop it first")
    replicas = len(image.replicas_on(node_id))
    if replicas:
        raise InvalidRequest(f"{replicas} replicas are on node {node_id}; move them away first")
    return Decision((NodeUnregistered(node_id, node.broker_epoch),), None)
