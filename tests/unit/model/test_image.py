"""The image: what records make of it, and that it can be told from its records."""

from __future__ import annotations

import dataclasses

import pytest
from suiro.model import image as image_module
from suiro.model.ids import (
    NO_LEADER,
    Address,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    OwnerEpoch,
    PartitionEpoch,
    ProducerId,
    TopicId,
)
from suiro.model.image import ClusterImage, Delta
from suiro.model.records import (
    Acl,
    AclAdded,
    AclRemoved,
    ConfigResource,
    ConfigSet,
    FeatureLevelSet,
    MetadataRecord,
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

ONE, TWO = NodeId(1), NodeId(2)
TOPIC = TopicId(b"t" * 16)


def registered(node_id: NodeId, epoch: int) -> NodeRegistered:
    return NodeRegistered(
        node_id, bytes(16), BrokerEpoch(epoch), (Role.BROKER,), Address("host", 1)
    )


def state(partition: int = 0, topic_id: TopicId = TOPIC) -> PartitionState:
    return PartitionState(topic_id, partition, (ONE, TWO), (ONE, TWO), ONE)


def changed(old: PartitionState, isr: tuple[NodeId, ...], leader: NodeId) -> PartitionState:
    return dataclasses.replace(
        old,
        isr=isr,
        leader=leader,
        leader_epoch=LeaderEpoch(old.leader_epoch + (leader != old.leader)),
        partition_epoch=PartitionEpoch(old.partition_epoch + 1),
    )


def acl(principal: str) -> Acl:
    return Acl("topic", "orders", "literal", principal, "*", "read", "allow")


EVERYTHING: list[MetadataRecord] = [
    FeatureLevelSet("share-groups", 2),
    registered(ONE, 1),
    registered(TWO, 2),
    NodeUnfenced(ONE, BrokerEpoch(1)),
    NodeUnfenced(TWO, BrokerEpoch(2)),
    NodeShuttingDown(TWO, BrokerEpoch(2)),
    TopicCreated(TOPIC, "orders"),
    PartitionCreated(state(0)),
    PartitionCreated(state(1)),
    ConfigSet(ConfigResource.TOPIC, "orders", "retention.ms", "5"),
    ConfigSet(ConfigResource.CLUSTER, "", "num.partitions", "3"),
    ReassignmentThrottleSet(1000),
    ProducerIdsAllocated(ONE, ProducerId(0), ProducerId(1000)),
    ShardOwned(ShardKind.GROUP, 0, ONE, OwnerEpoch(0)),
    UserScramSet("ada", "SCRAM-SHA-256", b"s", b"k", b"k", 4096),
    AclAdded(acl("ada")),
    QuotaSet("ada", None, "bytes", 10.0),
    QuotaSet(None, "", "bytes", 20.0),
]


def test_a_snapshot_rebuilds_it_exactly() -> None:
    image = ClusterImage(EVERYTHING)
    image.apply(PartitionChanged(changed(state(1), (TWO,), TWO)))
    image.apply(TopicDeleted(TopicId(b"x" * 16), "gone"))
    snapshot = list(image.records())
    again = ClusterImage(snapshot)
    assert list(again.records()) == snapshot
    assert again.state_hash() == image.state_hash()
    assert again.nodes == image.nodes
    assert again.topics == image.topics
    assert again.next_producer_id == 1000
    assert again.throttle_bytes_per_s == 1000
    assert again.features == {"share-groups": 2}


STOOD_ON = (registered(ONE, 1), registered(TWO, 2), TopicCreated(TOPIC, "orders"), EVERYTHING[7])


@pytest.mark.parametrize(
    "left_out", [r for r in EVERYTHING if r not in STOOD_ON], ids=lambda r: type(r).__name__
)
def test_every_record_counts_in_the_hash(left_out: MetadataRecord) -> None:
    fewer = [record for record in EVERYTHING if record != left_out]
    assert ClusterImage(fewer).state_hash() != ClusterImage(EVERYTHING).state_hash()


def test_the_hash_sees_a_change_in_a_topic_that_it_has_seen_before() -> None:
    image = ClusterImage(EVERYTHING)
    first = image.state_hash()
    image.apply(PartitionChanged(changed(state(0), (ONE,), ONE)))
    second = image.state_hash()
    assert second != first
    assert second == ClusterImage(image.records()).state_hash()


def test_the_order_of_independent_records_leaves_no_trace() -> None:
    other = TopicId(b"o" * 16)
    topics: list[list[MetadataRecord]] = [
        [TopicCreated(TOPIC, "orders"), PartitionCreated(state(0))],
        [TopicCreated(other, "audit"), PartitionCreated(state(0, other))],
    ]
    nodes = [registered(ONE, 1), registered(TWO, 2)]
    one = ClusterImage([*nodes, *topics[0], *topics[1]])
    two = ClusterImage([*reversed(nodes), *topics[1], *topics[0]])
    assert one.state_hash() == two.state_hash()
    assert list(one.records()) == list(two.records())


def test_a_broker_epoch_outlives_its_node() -> None:
    image = ClusterImage([registered(ONE, 7), NodeUnregistered(ONE, BrokerEpoch(7))])
    assert not image.nodes
    assert ClusterImage(image.records()).broker_epoch_max == 7


def test_a_topic_takes_its_partitions_and_settings_with_it() -> None:
    image = ClusterImage(EVERYTHING)
    image.apply(TopicDeleted(TOPIC, "orders"))
    assert image.topic("orders") is None
    assert image.partition(TOPIC, 0) is None
    assert image.partition_count == 0
    assert not image.replicas_on(ONE)
    assert not image.leaders_on(ONE)
    assert image.preferred_on(ONE) == 0
    assert not image.configs(ConfigResource.TOPIC, "orders")
    assert image.deleted_topics == {TOPIC: "orders"}


def test_a_topic_made_anew_keeps_its_settings_through_a_snapshot() -> None:
    """The tombstone of the old one must not take them."""
    image = ClusterImage(EVERYTHING)
    image.apply(TopicDeleted(TOPIC, "orders"))
    image.apply(TopicCreated(TopicId(b"n" * 16), "orders"))
    image.apply(ConfigSet(ConfigResource.TOPIC, "orders", "retention.ms", "9"))
    again = ClusterImage(image.records())
    assert again.configs(ConfigResource.TOPIC, "orders") == {"retention.ms": "9"}
    assert again.state_hash() == image.state_hash()


def test_deleted_topics_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_module, "DELETED_TOPICS_MAX", 3)
    image = ClusterImage(TopicDeleted(TopicId(bytes((n,)) * 16), f"t{n}") for n in range(5))
    assert list(image.deleted_topics.values()) == ["t2", "t3", "t4"]


def test_what_is_removed_leaves_nothing_behind() -> None:
    image = ClusterImage()
    empty = image.state_hash()
    for record in (
        ConfigSet(ConfigResource.BROKER, "1", "num.partitions", "3"),
        ConfigSet(ConfigResource.BROKER, "1", "num.partitions", None),
        UserScramSet("ada", "m", b"", b"", b"", 1),
        UserScramRemoved("ada", "m"),
        AclAdded(acl("ada")),
        AclRemoved(acl("ada")),
        QuotaSet("ada", None, "bytes", 1.0),
        QuotaSet("ada", None, "bytes", None),
    ):
        image.apply(record)
    assert list(image.records()) == []
    assert image.state_hash() == empty


@pytest.mark.parametrize(
    "wrong",
    [
        dataclasses.replace(state(0), partition_epoch=PartitionEpoch(2)),
        changed(state(0), (), NO_LEADER),
        changed(state(0), (TWO,), ONE),
        changed(state(0), (NodeId(9),), NodeId(9)),
        dataclasses.replace(changed(state(0), (TWO,), TWO), leader_epoch=LeaderEpoch(0)),
        dataclasses.replace(changed(state(0), (ONE,), ONE), leader_epoch=LeaderEpoch(1)),
        dataclasses.replace(changed(state(0), (ONE,), ONE), offline=(ONE,)),
    ],
)
def test_a_record_that_nobody_can_have_decided_is_caught(wrong: PartitionState) -> None:
    image = ClusterImage(EVERYTHING)
    with pytest.raises(AssertionError):
        image.apply(PartitionChanged(wrong))


def test_an_old_incarnation_cannot_be_fenced_for_the_new_one() -> None:
    image = ClusterImage([registered(ONE, 1), registered(ONE, 2)])
    with pytest.raises(AssertionError):
        image.apply(NodeUnfenced(ONE, BrokerEpoch(1)))


def test_a_delta_lists_what_was_touched() -> None:
    delta = Delta()
    for record in (*EVERYTHING, NodeFenced(TWO, BrokerEpoch(2))):
        delta.add(record)
    assert delta.nodes == {ONE, TWO}
    assert delta.topics == {TOPIC}
    assert delta.partitions == {PartitionId(TOPIC, 0), PartitionId(TOPIC, 1)}
    assert delta.configs == {(ConfigResource.TOPIC, "orders"), (ConfigResource.CLUSTER, "")}
    assert delta.shards == {(ShardKind.GROUP, 0)}


def test_look_ups_of_what_is_not_there() -> None:
    image = ClusterImage(EVERYTHING)
    assert image.partition(TOPIC, 2) is None
    assert image.partition(TOPIC, -1) is None
    assert image.shard(ShardKind.TXN, 0) is None
    assert not image.is_available(TWO), "it is shutting down"
    assert [node.id for node in image.available(Role.BROKER)] == [ONE]
    assert not image.replicas_on(NodeId(9))
