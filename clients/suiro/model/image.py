"""The cluster metadata as every node holds it: `ClusterImage`, which records build and rebuild.

`apply` is the only mutator, and what it costs is the size of the change, whatever the size of the
cluster. `records()` gives the records that build an equal image: a snapshot is these, the feed is
these and then whatever is committed later. Nodes whose images have seen the same records have the
same `state_hash()`, also if one of them began with a snapshot (M4).

`apply` asserts what must hold of any record that was ever decided: epochs only rise, the ISR is
within the replicas, a leader is in the ISR. Whether a change is *allowed* was the business of the
machine that decided it. Callers look and never touch: what the look-ups return is the image's own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, get_args

from suiro.model.codec import encode
from suiro.model.ids import BrokerEpoch, NodeId, ProducerId, TopicId
from suiro.model.limits import DELETED_TOPICS_MAX
from suiro.model.records import (
    Acl,
    AclAdded,
    AclRemoved,
    ConfigResource,
    ConfigSet,
    FeatureLevelSet,
    MetadataRecord,
    NodeEpochReached,
    NodeFenced,
    NodeRegistered,
    NodeShuttingDown,
    NodeUnfenced,
    NodeUnregistered,
    PartitionChanged,
    PartitionCreated,
    PartitionId,
    PartitionState,
    ProducerIdsAllocated,
    QuotaSet,
    ReassignmentThrottleSet,
    Role,
    ShardKind,
    ShardOwned,
    TopicCreated,
    TopicDeleted,
    UserScramRemoved,
    UserScramSet,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Set

ConfigKey = tuple[ConfigResource, str]
ShardKey = tuple[ShardKind, int]

_NOTHING: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True)
class Node:
    """A registered node and whether it may serve."""

    registration: NodeRegistered
    fenced: bool = True
    shutting_down: bool = False

    @property
    def id(self) -> NodeId:
        return self.registration.node_id

    @property
    def broker_epoch(self) -> BrokerEpoch:
        return self.registration.broker_epoch

    @property
    def available(self) -> bool:
        """Whether it may be given something new: a leader, a place in an ISR, a shard."""
        return not self.fenced and not self.shutting_down


@dataclass(slots=True)
class Topic:
    """A topic and its partitions, from 0 up."""

    id: TopicId
    name: str
    partitions: list[PartitionState] = field(default_factory=list)


class ClusterImage:
    """All of the metadata, with what must be found fast kept up to date along the way."""

    def __init__(self, records: Iterable[MetadataRecord] = ()) -> None:
        self.nodes: dict[NodeId, Node] = {}
        self.broker_epoch_max = BrokerEpoch(0)
        self.topics: dict[TopicId, Topic] = {}
        self.topics_by_name: dict[str, Topic] = {}
        self.deleted_topics: dict[TopicId, str] = {}
        self.features: dict[str, int] = {}
        self.throttle_bytes_per_s = 0
        self.shards: dict[ShardKey, ShardOwned] = {}
        self.users: dict[tuple[str, str], UserScramSet] = {}
        self.acls: set[Acl] = set()
        self.quotas: dict[tuple[str | None, str | None, str], QuotaSet] = {}
        self.partition_count = 0

        self.leaderless: set[PartitionId] = set()
        self.not_preferred: set[PartitionId] = set()
        self.under_replicated: set[PartitionId] = set()
        self.reassigning: set[PartitionId] = set()

        self._configs: dict[ConfigKey, dict[str, str]] = {}
        self._producer_ids: ProducerIdsAllocated | None = None
        self._replicas_on: defaultdict[NodeId, set[PartitionId]] = defaultdict(set)
        self._leaders_on: defaultdict[NodeId, set[PartitionId]] = defaultdict(set)
        self._preferred_on: defaultdict[NodeId, int] = defaultdict(int)
        self._digests: dict[TopicId, bytes] = {}
        for record in records:
            self.apply(record)

    # -- looking ----------------------------------------------------------------------------------

    def topic(self, name: str) -> Topic | None:
        return self.topics_by_name.get(name)

    def partition(self, topic_id: TopicId, partition: int) -> PartitionState | None:
        topic = self.topics.get(topic_id)
        if topic is None or not 0 <= partition < len(topic.partitions):
            return None
        return topic.partitions[partition]

    def partitions(self, ids: Iterable[PartitionId]) -> list[PartitionState]:
        """The states of existing partitions, in the order of their ids: sets have no order, and
        what is decided must not depend on one.
        """
        topics = self.topics
        return [topics[topic_id].partitions[partition] for topic_id, partition in sorted(ids)]

    def is_available(self, node_id: NodeId) -> bool:
        node = self.nodes.get(node_id)
        return node is not None and node.available

    def available(self, role: Role) -> list[Node]:
        """The nodes of that role that may be given something new, by id."""
        return [
            self.nodes[node_id]
            for node_id in sorted(self.nodes)
            if self.nodes[node_id].available and role in self.nodes[node_id].registration.roles
        ]

    def replicas_on(self, node_id: NodeId) -> Set[PartitionId]:
        return self._replicas_on.get(node_id, _NOTHING)

    def leaders_on(self, node_id: NodeId) -> Set[PartitionId]:
        return self._leaders_on.get(node_id, _NOTHING)

    def preferred_on(self, node_id: NodeId) -> int:
        """How many partitions that node should lead."""
        return self._preferred_on.get(node_id, 0)

    def configs(self, resource: ConfigResource, name: str = "") -> Mapping[str, str]:
        """The settings that were set on it, not the defaults behind them."""
        return self._configs.get((resource, name), {})

    def shard(self, kind: ShardKind, shard: int) -> ShardOwned | None:
        return self.shards.get((kind, shard))

    @property
    def next_producer_id(self) -> ProducerId:
        return ProducerId(0) if self._producer_ids is None else self._producer_ids.end

    # -- as a whole -------------------------------------------------------------------------------

    def records(self) -> Iterator[MetadataRecord]:
        """What builds an equal image, in an order that depends on the state alone."""
        yield from self._records_but_topics()
        for name in sorted(self.topics_by_name):
            yield from _topic_records(self.topics_by_name[name])

    def state_hash(self) -> bytes:
        """16 bytes that are equal where the state is. Topics that did not change since the last
        call cost next to nothing.
        """
        whole = blake2b(digest_size=16)
        for record in self._records_but_topics():
            _feed(whole, encode(record))
        for name in sorted(self.topics_by_name):
            topic = self.topics_by_name[name]
            digest = self._digests.get(topic.id)
            if digest is None:
                part = blake2b(digest_size=16)
                for record in _topic_records(topic):
                    _feed(part, encode(record))
                digest = self._digests[topic.id] = part.digest()
            whole.update(digest)
        return whole.digest()

    def _records_but_topics(self) -> Iterator[MetadataRecord]:
        for name in sorted(self.features):
            yield FeatureLevelSet(name, self.features[name])
        if self.broker_epoch_max:
            yield NodeEpochReached(self.broker_epoch_max)
        for node_id in sorted(self.nodes):
            yield from _node_records(self.nodes[node_id])
        for topic_id, name in self.deleted_topics.items():  # in the order of their deletion
            yield TopicDeleted(topic_id, name)
        for resource, name in sorted(self._configs):
            for key, value in sorted(self._configs[resource, name].items()):
                yield ConfigSet(resource, name, key, value)
        if self.throttle_bytes_per_s:
            yield ReassignmentThrottleSet(self.throttle_bytes_per_s)
        if self._producer_ids is not None:
            yield self._producer_ids
        for shard_key in sorted(self.shards):
            yield self.shards[shard_key]
        yield from self._security_records()

    def _security_records(self) -> Iterator[MetadataRecord]:
        for user_key in sorted(self.users):
            yield self.users[user_key]
        for acl in sorted(self.acls):
            yield AclAdded(acl)
        for quota_key in sorted(self.quotas, key=repr):  # None has no order of its own
            yield self.quotas[quota_key]

    # -- changing ---------------------------------------------------------------------------------

    def apply(self, record: MetadataRecord) -> None:
        """Make the image what it is after `record`, which has been decided on."""
        _APPLY[type(record)](self, record)

    def _node_registered(self, record: NodeRegistered) -> None:
        former = self.nodes.get(record.node_id)
        assert former is None or former.broker_epoch < record.broker_epoch
        self.nodes[record.node_id] = Node(record)
        self.broker_epoch_max = max(self.broker_epoch_max, record.broker_epoch)

    def _node_fenced(self, record: NodeFenced) -> None:
        self.nodes[record.node_id] = replace(self._node(record), fenced=True)

    def _node_unfenced(self, record: NodeUnfenced) -> None:
        node = self._node(record)
        # Whoever is ready has said what it lost.
        told = replace(node.registration, lost_directories=())
        self.nodes[record.node_id] = replace(node, registration=told, fenced=False)

    def _node_shutting_down(self, record: NodeShuttingDown) -> None:
        self.nodes[record.node_id] = replace(self._node(record), shutting_down=True)

    def _node_unregistered(self, record: NodeUnregistered) -> None:
        assert self._node(record).fenced
        assert not self.replicas_on(record.node_id)
        del self.nodes[record.node_id]

    def _node(
        self, record: NodeFenced | NodeUnfenced | NodeShuttingDown | NodeUnregistered
    ) -> Node:
        node = self.nodes[record.node_id]
        assert node.broker_epoch == record.broker_epoch
        return node

    def _node_epoch_reached(self, record: NodeEpochReached) -> None:
        self.broker_epoch_max = max(self.broker_epoch_max, record.broker_epoch)

    def _topic_created(self, record: TopicCreated) -> None:
        assert record.name not in self.topics_by_name
        assert record.topic_id not in self.topics
        topic = Topic(record.topic_id, record.name)
        self.topics[record.topic_id] = self.topics_by_name[record.name] = topic

    def _topic_deleted(self, record: TopicDeleted) -> None:
        """In a snapshot the topic is not there: the record only says that it once was."""
        topic = self.topics.pop(record.topic_id, None)
        if topic is not None:
            del self.topics_by_name[topic.name]
            self._configs.pop((ConfigResource.TOPIC, topic.name), None)
            self._digests.pop(topic.id, None)
            self.partition_count -= len(topic.partitions)
            for state in topic.partitions:
                self._move(state, None)
        self.deleted_topics[record.topic_id] = record.name
        if len(self.deleted_topics) > DELETED_TOPICS_MAX:
            del self.deleted_topics[next(iter(self.deleted_topics))]

    def _partition_created(self, record: PartitionCreated) -> None:
        state = record.state
        topic = self.topics[state.topic_id]
        assert state.partition == len(topic.partitions), "partitions come in order"
        _check(state)
        topic.partitions.append(state)
        self.partition_count += 1
        self._digests.pop(state.topic_id, None)
        self._move(None, state)

    def _partition_changed(self, record: PartitionChanged) -> None:
        new = record.state
        partitions = self.topics[new.topic_id].partitions
        old = partitions[new.partition]
        assert new.partition_epoch == old.partition_epoch + 1
        assert new.leader_epoch == old.leader_epoch + (new.leader != old.leader)
        _check(new)
        partitions[new.partition] = new
        self._digests.pop(new.topic_id, None)
        self._move(old, new)

    def _config_set(self, record: ConfigSet) -> None:
        key = (record.resource, record.name)
        if record.value is not None:
            self._configs.setdefault(key, {})[record.key] = record.value
            return
        settings = self._configs.get(key, {})
        settings.pop(record.key, None)
        if not settings:
            self._configs.pop(key, None)

    def _feature_level_set(self, record: FeatureLevelSet) -> None:
        self.features[record.name] = record.level

    def _reassignment_throttle_set(self, record: ReassignmentThrottleSet) -> None:
        self.throttle_bytes_per_s = record.bytes_per_s

    def _producer_ids_allocated(self, record: ProducerIdsAllocated) -> None:
        assert self.next_producer_id <= record.start < record.end
        self._producer_ids = record

    def _shard_owned(self, record: ShardOwned) -> None:
        key = (record.kind, record.shard)
        former = self.shards.get(key)
        assert former is None or former.owner_epoch < record.owner_epoch
        self.shards[key] = record

    def _user_scram_set(self, record: UserScramSet) -> None:
        self.users[record.user, record.mechanism] = record

    def _user_scram_removed(self, record: UserScramRemoved) -> None:
        self.users.pop((record.user, record.mechanism), None)

    def _acl_added(self, record: AclAdded) -> None:
        self.acls.add(record.acl)

    def _acl_removed(self, record: AclRemoved) -> None:
        self.acls.discard(record.acl)

    def _quota_set(self, record: QuotaSet) -> None:
        key = (record.user, record.client_id, record.key)
        if record.value is None:
            self.quotas.pop(key, None)
        else:
            self.quotas[key] = record

    # -- what is kept along the way ---------------------------------------------------------------

    def _move(self, old: PartitionState | None, new: PartitionState | None) -> None:
        """Bring every index from the old state of a partition to the new one."""
        state = new or old
        assert state is not None
        partition = state.id
        before, after = (() if s is None else s.replicas for s in (old, new))
        if before != after:
            self._move_replicas(partition, before, after)
        self._move_leader(partition, old, new)
        _mark(
            self.under_replicated, partition, new is not None and len(new.isr) < len(new.replicas)
        )
        _mark(self.reassigning, partition, new is not None and new.reassignment is not None)

    def _move_replicas(
        self, partition: PartitionId, before: tuple[NodeId, ...], after: tuple[NodeId, ...]
    ) -> None:
        for node_id in before:
            if node_id not in after:
                self._replicas_on[node_id].discard(partition)
        for node_id in after:
            if node_id not in before:
                self._replicas_on[node_id].add(partition)
        if before:
            self._preferred_on[before[0]] -= 1
        if after:
            self._preferred_on[after[0]] += 1

    def _move_leader(
        self, partition: PartitionId, old: PartitionState | None, new: PartitionState | None
    ) -> None:
        if old is not None and old.has_leader:
            self._leaders_on[old.leader].discard(partition)
        if new is not None and new.has_leader:
            self._leaders_on[new.leader].add(partition)
        _mark(self.leaderless, partition, new is not None and not new.has_leader)
        _mark(self.not_preferred, partition, new is not None and new.leader != new.replicas[0])


@dataclass(slots=True)
class Delta:
    """What a run of records touches, so that a node looks only at that.

    A partition of a deleted topic is not listed: the topic is, and it is in `deleted_topics`.
    """

    nodes: set[NodeId] = field(default_factory=set)
    topics: set[TopicId] = field(default_factory=set)
    partitions: set[PartitionId] = field(default_factory=set)
    configs: set[ConfigKey] = field(default_factory=set)
    shards: set[ShardKey] = field(default_factory=set)

    def add(self, record: MetadataRecord) -> None:
        match record:
            case PartitionCreated(state) | PartitionChanged(state):
                self.partitions.add(state.id)
            case TopicCreated() | TopicDeleted():
                self.topics.add(record.topic_id)
            case (
                NodeRegistered()
                | NodeFenced()
                | NodeUnfenced()
                | NodeShuttingDown()
                | NodeUnregistered()
            ):
                self.nodes.add(record.node_id)
            case ConfigSet(resource, name):
                self.configs.add((resource, name))
            case ShardOwned(kind, shard):
                self.shards.add((kind, shard))
            case _:
                pass  # what is left is read from the image when it is needed


def _mark(marked: set[PartitionId], partition: PartitionId, is_so: bool) -> None:
    if is_so:
        marked.add(partition)
    else:
        marked.discard(partition)


def _check(state: PartitionState) -> None:
    """What holds of every partition that was ever decided."""
    replicas, isr = set(state.replicas), state.isr
    assert isr, "an empty ISR would let anyone lead"
    assert len(replicas) == len(state.replicas)
    assert isr == state.replicas or (replicas.issuperset(isr) and len(set(isr)) == len(isr))
    assert state.leader in isr or not state.has_leader
    assert replicas.issuperset(state.offline)
    assert state.leader not in state.offline
    if state.reassignment is not None:
        assert replicas.issuperset(state.reassignment.target)
        assert replicas.issuperset(state.reassignment.adding)


def _topic_records(topic: Topic) -> Iterator[MetadataRecord]:
    yield TopicCreated(topic.id, topic.name)
    for state in topic.partitions:
        yield PartitionCreated(state)


def _node_records(node: Node) -> Iterator[MetadataRecord]:
    yield node.registration
    if not node.fenced:
        yield NodeUnfenced(node.id, node.broker_epoch)
    if node.shutting_down:
        yield NodeShuttingDown(node.id, node.broker_epoch)


def _feed(digest: Any, encoded: bytes) -> None:
    """With its length, so that no two lists of records look alike."""
    digest.update(len(encoded).to_bytes(4, "big"))
    digest.update(encoded)


_APPLY: dict[type, Callable[[ClusterImage, Any], None]] = {
    NodeRegistered: ClusterImage._node_registered,
    NodeFenced: ClusterImage._node_fenced,
    NodeUnfenced: ClusterImage._node_unfenced,
    NodeShuttingDown: ClusterImage._node_shutting_down,
    NodeUnregistered: ClusterImage._node_unregistered,
    NodeEpochReached: ClusterImage._node_epoch_reached,
    TopicCreated: ClusterImage._topic_created,
    TopicDeleted: ClusterImage._topic_deleted,
    PartitionCreated: ClusterImage._partition_created,
    PartitionChanged: ClusterImage._partition_changed,
    ConfigSet: ClusterImage._config_set,
    FeatureLevelSet: ClusterImage._feature_level_set,
    ReassignmentThrottleSet: ClusterImage._reassignment_throttle_set,
    ProducerIdsAllocated: ClusterImage._producer_ids_allocated,
    ShardOwned: ClusterImage._shard_owned,
    UserScramSet: ClusterImage._user_scram_set,
    UserScramRemoved: ClusterImage._user_scram_removed,
    AclAdded: ClusterImage._acl_added,
    AclRemoved: ClusterImage._acl_removed,
    QuotaSet: ClusterImage._quota_set,
}
assert _APPLY.keys() == set(get_args(MetadataRecord)), "a record that nobody applies"
