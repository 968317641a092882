"""Topics: create, delete, give more partitions."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from suiro.model.configs import broker_config, checked, topic_config
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    InvalidConfig,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    TopicExists,
    UnknownBroker,
    UnknownTopicOrPartition,
)
from suiro.model.limits import PARTITIONS_PER_TOPIC_MAX
from suiro.model.records import (
    ConfigResource,
    ConfigSet,
    PartitionCreated,
    PartitionState,
    Role,
    TopicCreated,
    TopicDeleted,
)
from suiro.model.topics import (
    INTERNAL_TOPIC_CONFIGS,
    SHARD_KINDS,
    check_topic_name,
    is_internal,
)

from cluster.controller_quorum.metadata_requests import Assignment, NewTopic, TopicOutcome
from cluster.controller_quorum.metadata_shards import coordinators, respread
from cluster.controller_quorum.placement import Candidate, place
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import NodeId, TopicId
    from suiro.model.image import ClusterImage, Topic
    from suiro.model.records import MetadataRecord

TOPIC_ID_BYTES = 16


def create_topics(
    image: ClusterImage, topics: Sequence[NewTopic], validate_only: bool
) -> Decision[tuple[TopicOutcome, ...]]:
    """Topics of one request see each other's load, and two of one name are one too many."""
    candidates = _candidates(image)
    records: list[MetadataRecord] = []
    outcomes = []
    names: set[str] = set()
    ids: set[TopicId] = set()
    for topic in topics:
        try:
            if topic.name in names or image.topic(topic.name) is not None:
                raise TopicExists(f"there is a topic {topic.name} already")
            _check_id(image, topic, ids)
            assignment = _assignment(image, topic, candidates)
            made = _created(image, topic, assignment)
        except SuiroError as error:
            outcomes.append(TopicOutcome(topic.name, error=error))
            continue
        names.add(topic.name)
        ids.add(topic.topic_id)
        records += made
        outcomes.append(
            TopicOutcome(topic.name, topic.topic_id, len(assignment), len(assignment[0]))
        )
    return Decision(() if validate_only else tuple(records), tuple(outcomes))


def delete_topics(image: ClusterImage, names: Sequence[str]) -> Decision[tuple[TopicOutcome, ...]]:
    records = []
    outcomes = []
    for name in dict.fromkeys(names):
        topic = image.topic(name)
        if topic is None:
            error: SuiroError = UnknownTopicOrPartition(f"there is no topic {name}")
            outcomes.append(TopicOutcome(name, error=error))
        elif is_internal(name):
            error = InvalidTopic(f"{name} holds the state of the coordinators; it has to stay")
            outcomes.append(TopicOutcome(name, error=error))
        else:
            records.append(TopicDeleted(topic.id, name))
            outcomes.append(TopicOutcome(name, topic.id, len(topic.partitions)))
    return Decision(tuple(records), tuple(outcomes))


def add_partitions(
    image: ClusterImage, name: str, total: int, validate_only: bool
) -> Decision[int]:
    topic = image.topic(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {name}")
    if is_internal(name):
        raise InvalidTopic(f"{name}: another number of partitions would move every name's shard")
    has = len(topic.partitions)
    if not has < total <= PARTITIONS_PER_TOPIC_MAX:
        raise InvalidTopic(
            f"{name} has {has} partitions; it can have more, up to {PARTITIONS_PER_TOPIC_MAX}"
        )
    replication_factor = len(_settled_replicas(topic.partitions[0]))
    candidates = _candidates(image, topic)
    _check_replication_factor(name, replication_factor, len(candidates))
    seed = _seed(topic.id)
    assignment = place(candidates, total - has, replication_factor, seed + has)
    records = tuple(
        _partition(image, topic.id, has + at, replicas) for at, replicas in enumerate(assignment)
    )
    return Decision(() if validate_only else records, total)


def _created(image: ClusterImage, topic: NewTopic, assignment: Assignment) -> list[MetadataRecord]:
    records: list[MetadataRecord] = [TopicCreated(topic.topic_id, topic.name)]
    for key, value in _configs(topic, len(assignment[0])).items():
        records.append(ConfigSet(ConfigResource.TOPIC, topic.name, key, value))
    records += (
        _partition(image, topic.topic_id, partition, replicas)
        for partition, replicas in enumerate(assignment)
    )
    kind = SHARD_KINDS.get(topic.name)
    if kind is not None:
        records += respread(image, kind, coordinators(image, kind), len(assignment))
    return records


def _configs(topic: NewTopic, replication_factor: int) -> dict[str, str]:
    texts = {**(INTERNAL_TOPIC_CONFIGS if is_internal(topic.name) else {}), **topic.configs}
    configs = {key: checked(ConfigResource.TOPIC, key, texts[key]) for key in sorted(texts)}
    wanted = topic_config(configs).min_insync_replicas
    if wanted > replication_factor:
        raise InvalidConfig(
            f"min.insync.replicas={wanted} can never be met with {replication_factor} replicas"
        )
    return configs


def _partition(
    image: ClusterImage, topic_id: TopicId, partition: int, replicas: tuple[NodeId, ...]
) -> PartitionCreated:
    """All replicas that are there are in sync: the log is empty."""
    isr = tuple(node_id for node_id in replicas if image.is_available(node_id))
    return PartitionCreated(PartitionState(topic_id, partition, replicas, isr, isr[0]))


def _check_id(image: ClusterImage, topic: NewTopic, taken: set[TopicId]) -> None:
    """An id is never used again, not even one of a topic that is gone: files are found by it."""
    used = topic.topic_id in taken or topic.topic_id in image.topics
    if len(topic.topic_id) != TOPIC_ID_BYTES or used or topic.topic_id in image.deleted_topics:
        raise InvalidRequest(f"{topic.name}: a topic id is {TOPIC_ID_BYTES} new random bytes")


# -- who gets what --------------------------------------------------------------------------------


def _assignment(image: ClusterImage, topic: NewTopic, candidates: list[Candidate]) -> Assignment:
    check_topic_name(topic.name)
    if topic.assignment:
        return _checked_assignment(image, topic)
    defaults = broker_config({}, image.configs(ConfigResource.CLUSTER))
    partitions = topic.partitions or defaults.num_partitions
    replication_factor = topic.replication_factor or min(
        defaults.default_replication_factor, max(1, len(candidates))
    )
    if not 1 <= partitions <= PARTITIONS_PER_TOPIC_MAX:
        raise InvalidTopic(
            f"{topic.name}: {partitions} partitions is outside [1, {PARTITIONS_PER_TOPIC_MAX}]"
        )
    _check_replication_factor(topic.name, replication_factor, len(candidates))
    for candidate in candidates:
        candidate.topic_replicas = candidate.topic_leaders = 0
    return tuple(place(candidates, partitions, replication_factor, _seed(topic.topic_id)))


def _checked_assignment(image: ClusterImage, topic: NewTopic) -> Assignment:
    if topic.partitions or topic.replication_factor:
        raise InvalidRequest(f"{topic.name}: an assignment by hand stands instead of numbers")
    if len(topic.assignment) > PARTITIONS_PER_TOPIC_MAX:
        raise InvalidTopic(f"{topic.name}: over {PARTITIONS_PER_TOPIC_MAX} partitions")
    sizes = {len(replicas) for replicas in topic.assignment}
    if len(sizes) != 1 or sizes == {0}:
        raise InvalidReplicationFactor(f"{topic.name}: all partitions need as many replicas")
    for partition, replicas in enumerate(topic.assignment):
        if len(set(replicas)) < len(replicas):
            raise InvalidReplicationFactor(
                f"{topic.name}-{partition}: a node can hold one replica, not two"
            )
        for node_id in replicas:
            node = image.nodes.get(node_id)
            if node is None or Role.BROKER not in node.registration.roles:
                raise UnknownBroker(f"{topic.name}-{partition}: node {node_id} is no broker")
        if not any(image.is_available(node_id) for node_id in replicas):
            raise InvalidReplicationFactor(f"{topic.name}-{partition}: none of {replicas} is alive")
    return topic.assignment


def _check_replication_factor(name: str, replication_factor: int, brokers: int) -> None:
    if not 1 <= replication_factor <= brokers:
        raise InvalidReplicationFactor(
            f"{name}: {replication_factor} replicas were asked for, {brokers} brokers are alive"
        )


def _candidates(image: ClusterImage, topic: Topic | None = None) -> list[Candidate]:
    """The brokers that may take replicas, with what they have of everything and of `topic`."""
    found = {
        node.id: Candidate(
            node.id,
            node.registration.rack,
            len(image.replicas_on(node.id)),
            image.preferred_on(node.id),
        )
        for node in image.available(Role.BROKER)
    }
    for state in () if topic is None else topic.partitions:
        for node_id in state.replicas:
            if node_id in found:
                found[node_id].topic_replicas += 1
        if state.preferred in found:
            found[state.preferred].topic_leaders += 1
    return list(found.values())


def _settled_replicas(state: PartitionState) -> tuple[NodeId, ...]:
    """The replicas once no reassignment is under way."""
    return state.replicas if state.reassignment is None else state.reassignment.target


def _seed(topic_id: TopicId) -> int:
    return zlib.crc32(topic_id)
