"""Who leads a partition, and what becomes of its ISR when a node comes or goes.

The rule under all others (P12): a leader comes from the ISR. Whoever is outside may lack records
that were acknowledged, and leads only where the topic's unclean.leader.election.enable says so;
then the partition is marked, and an effect tells of it. An ISR is never empty: its last member
stays in it through fencing and restarts, as the only one who may lead.

The functions on a `PartitionState` return the new state, or the very same one if nothing changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suiro.model.errors import InvalidRequest, LeaderNotAvailable, UnknownTopicOrPartition
from suiro.model.ids import NO_LEADER, LeaderEpoch, PartitionEpoch, TopicPartition
from suiro.model.records import PartitionChanged, PartitionState, Recovery

from cluster.controller_quorum.metadata_configs import topic_setting
from cluster.controller_quorum.metadata_requests import PartitionOutcome, UncleanElection
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.model.ids import NodeId, TopicId
    from suiro.model.image import ClusterImage


class PartitionChanges:
    """The records and effects of a decision on many partitions."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self.records: list[PartitionChanged] = []
        self.effects: list[UncleanElection] = []

    def add(self, old: PartitionState, new: PartitionState) -> None:
        if new is old:
            return
        self.records.append(PartitionChanged(new))
        if new.recovery is Recovery.UNCLEAN and new.leader not in old.isr:
            self.effects.append(
                UncleanElection(name_of(self._image, new), new.leader, former_isr=old.isr)
            )


def changed(state: PartitionState, **to: Any) -> PartitionState:
    """`state` with other fields, and with the epochs that go with the change."""
    leader = to.get("leader", state.leader)
    return replace(
        state,
        leader_epoch=LeaderEpoch(state.leader_epoch + (leader != state.leader)),
        partition_epoch=PartitionEpoch(state.partition_epoch + 1),
        **to,
    )


def best_leader(
    image: ClusterImage, state: PartitionState, candidates: Iterable[NodeId], but: NodeId
) -> NodeId:
    """The first candidate that may be given leadership; else one that is leaving but still serves;
    else nobody. `but` is the node that the decision takes out.
    """
    leaving = NO_LEADER
    for node_id in candidates:
        node = image.nodes.get(node_id)
        if node is None or node.fenced or node_id == but or node_id in state.offline:
            continue
        if not node.shutting_down:
            return node_id
        if leaving == NO_LEADER:
            leaving = node_id
    return leaving


def elected(
    image: ClusterImage, state: PartitionState, isr: tuple[NodeId, ...], but: NodeId = NO_LEADER
) -> PartitionState:
    """The partition with a new leader from `isr`, or if there is none from wherever the topic
    allows, or with no leader at all.
    """
    leader = best_leader(image, state, (node for node in state.replicas if node in isr), but)
    if leader == NO_LEADER and allows_unclean(image, state.topic_id):
        leader = best_leader(image, state, state.replicas, but)
        if leader != NO_LEADER:
            return changed(state, isr=(leader,), leader=leader, recovery=Recovery.UNCLEAN)
    if isr == state.isr and leader == state.leader:
        return state
    return changed(state, isr=isr, leader=leader)


def without(image: ClusterImage, state: PartitionState, node_id: NodeId) -> PartitionState:
    """The partition once `node_id` no longer serves: out of the ISR, unless it is the last one."""
    isr = tuple(member for member in state.isr if member != node_id) or state.isr
    if state.leader == node_id:
        return elected(image, state, isr, but=node_id)
    return state if isr == state.isr else changed(state, isr=isr)


def handed_over(image: ClusterImage, state: PartitionState, node_id: NodeId) -> PartitionState:
    """The partition once `node_id` has given it up of its own will; it stays as it is where nobody
    else could take over.
    """
    isr = tuple(member for member in state.isr if member != node_id)
    if len(isr) == len(state.isr):
        return state
    if state.leader != node_id:
        return changed(state, isr=isr) if isr else state
    candidates = (node for node in state.replicas if node in isr)
    leader = best_leader(image, state, candidates, but=node_id)
    if leader == NO_LEADER or not image.is_available(leader):
        return state
    return changed(state, isr=isr, leader=leader)


def with_back(image: ClusterImage, state: PartitionState, node_id: NodeId) -> PartitionState:
    """A partition without a leader, once its replica `node_id` serves again."""
    assert not state.has_leader
    if node_id in state.offline:
        return state
    if node_id in state.isr:
        return changed(state, leader=node_id)
    if allows_unclean(image, state.topic_id):
        return changed(state, isr=(node_id,), leader=node_id, recovery=Recovery.UNCLEAN)
    return state


def with_preferred(image: ClusterImage, state: PartitionState) -> PartitionState:
    """The partition led by its preferred replica, if that one may."""
    preferred = state.preferred
    if state.leader == preferred or preferred not in state.isr or preferred in state.offline:
        return state
    if not image.is_available(preferred):
        return state
    return changed(state, leader=preferred)


def allows_unclean(image: ClusterImage, topic_id: TopicId) -> bool:
    name = image.topics[topic_id].name
    return bool(topic_setting(image, name, "unclean.leader.election.enable"))


def name_of(image: ClusterImage, state: PartitionState) -> TopicPartition:
    return TopicPartition(image.topics[state.topic_id].name, state.partition)


def find(image: ClusterImage, partition: TopicPartition) -> PartitionState:
    topic = image.topic(partition.topic)
    state = None if topic is None else image.partition(topic.id, partition.partition)
    if state is None:
        raise UnknownTopicOrPartition(f"there is no partition {partition}")
    return state


# -- what can be asked ----------------------------------------------------------------------------


def elect_leaders(
    image: ClusterImage, partitions: Sequence[TopicPartition] | None, unclean: bool
) -> Decision[tuple[PartitionOutcome, ...]]:
    if partitions is None:
        wanted = image.leaderless if unclean else image.leaderless | image.not_preferred
        partitions = [name_of(image, state) for state in image.partitions(wanted)]
    changes = PartitionChanges(image)
    outcomes = []
    for partition in dict.fromkeys(partitions):  # each once: it can change only once
        try:
            old = find(image, partition)
            new = _elect_one(image, partition, old, unclean)
        except (UnknownTopicOrPartition, LeaderNotAvailable, InvalidRequest) as error:
            outcomes.append(PartitionOutcome(partition, error=error))
            continue
        changes.add(old, new)
        outcomes.append(PartitionOutcome(partition, new.leader))
    return Decision(tuple(changes.records), tuple(outcomes), tuple(changes.effects))


def _elect_one(
    image: ClusterImage, partition: TopicPartition, state: PartitionState, unclean: bool
) -> PartitionState:
    if state.has_leader and (unclean or state.leader == state.preferred):
        return state
    if state.has_leader:
        new = with_preferred(image, state)
        if new is state:
            raise LeaderNotAvailable(
                f"{partition}: the preferred replica {state.preferred} is not ready to lead; "
                f"in sync are {list(state.isr)}"
            )
        return new
    new = elected(image, state, state.isr)
    if not new.has_leader:
        if unclean and not allows_unclean(image, state.topic_id):
            raise InvalidRequest(
                f"{partition}: the topic does not allow unclean elections; setting "
                "unclean.leader.election.enable=true on it does, and may lose records"
            )
        raise LeaderNotAvailable(f"{partition}: none of {list(state.isr)} is alive")
    return new


def balance_leaders(
    image: ClusterImage, moves_max: int, imbalance_percentage: int = 0
) -> Decision[int]:
    changes = PartitionChanges(image)
    for state in image.partitions(image.leaderless):
        changes.add(state, elected(image, state, state.isr))
    led_elsewhere = image.partitions(image.not_preferred - image.leaderless)
    missing = Counter(state.preferred for state in led_elsewhere)
    for state in led_elsewhere:
        if len(changes.records) >= moves_max:
            break
        if missing[state.preferred] * 100 > imbalance_percentage * image.preferred_on(
            state.preferred
        ):
            changes.add(state, with_preferred(image, state))
    return Decision(tuple(changes.records), len(changes.records), tuple(changes.effects))
