"""Decisions that the transcripts do not tell: repeats, refusals, and what must not happen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from suiro.model.errors import (
    BrokerFenced,
    FencedLeaderEpoch,
    InvalidConfig,
    InvalidReplicationFactor,
    InvalidRequest,
    LeaderNotAvailable,
    StaleBrokerEpoch,
    UnknownBroker,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from suiro.model.ids import Address, BrokerEpoch, LeaderEpoch, NodeId, TopicId, TopicPartition
from suiro.model.limits import PARTITIONS_PER_DECISION_MAX
from suiro.model.records import ConfigResource, Recovery, Role, ShardKind, TopicCreated
from suiro.model.topics import GROUP_TOPIC, TXN_TOPIC, shard_of

from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import (
    Heartbeat,
    IsrMember,
    IsrProposal,
    Move,
    NewTopic,
    Registration,
)

if TYPE_CHECKING:
    from suiro.model.records import PartitionState

    from cluster.host.machine import Decision

ALL_ROLES = (Role.BROKER, Role.GROUP, Role.TXN)


def node(number: int, life: int = 0, **more: Any) -> Registration:
    fields: dict[str, Any] = {
        "roles": ALL_ROLES,
        "address": Address("host", 9000 + number),
        "log_directories": ("a",),
        **more,
    }
    return Registration(
        node_id=NodeId(number), incarnation=bytes((number, life)) + bytes(14), **fields
    )


def topic(name: str, number: int = 1, **more: Any) -> NewTopic:
    return NewTopic(name=name, topic_id=TopicId(bytes((number,)) * 16), **more)


class Bench:
    """A machine whose decisions are carried out at once."""

    def __init__(self, brokers: int = 3) -> None:
        self.machine = MetadataMachine()
        for number in range(1, brokers + 1):
            self.start(node(number))

    def do(self, decision: Decision[Any]) -> Any:
        for record in decision.records:
            self.machine.apply(record)
        return decision.reply

    def start(self, registration: Registration) -> BrokerEpoch:
        reply = self.do(self.machine.decide_register(registration, session_alive=False))
        self.do(self.machine.decide_unfence(registration.node_id, reply.broker_epoch))
        epoch: BrokerEpoch = reply.broker_epoch
        return epoch

    def epoch(self, number: int) -> BrokerEpoch:
        return self.machine.image.nodes[NodeId(number)].broker_epoch

    def create(self, *topics: NewTopic) -> Any:
        return self.do(self.machine.decide_create_topics(topics))

    def partition(self, name: str = "orders") -> PartitionState:
        found = self.machine.image.topic(name)
        assert found is not None
        return found.partitions[0]


# -- nodes ----------------------------------------------------------------------------------------


def test_registering_twice_in_one_life_is_registering_once() -> None:
    bench = Bench(1)
    again = bench.machine.decide_register(node(1), session_alive=True)
    assert again.records == ()
    assert again.reply.broker_epoch == bench.epoch(1)


@pytest.mark.parametrize(
    ("how", "clean"),
    [
        ({"clean_shutdown": True, "former_broker_epoch": 1}, True),
        ({"clean_shutdown": False, "former_broker_epoch": 1}, False),
        ({"clean_shutdown": True, "former_broker_epoch": 0}, False),
        ({"clean_shutdown": True, "former_broker_epoch": 1, "log_directories": ("b",)}, False),
        ({"clean_shutdown": True, "former_broker_epoch": 1, "log_directories": ("a", "b")}, True),
    ],
)
def test_a_clean_shutdown_needs_the_mark_of_the_last_epoch_on_every_disk(
    how: dict[str, Any], clean: bool
) -> None:
    bench = Bench(1)
    bench.create(topic("orders"))
    decision = bench.machine.decide_register(node(1, life=1, **how), session_alive=False)
    assert decision.records[0].clean_shutdown is clean
    bench.do(decision)
    wanted = Recovery.NONE if clean else Recovery.LAST_STANDING
    assert bench.partition().recovery is wanted


def test_a_broker_epoch_is_never_given_again() -> None:
    bench = Bench(2)
    bench.do(bench.machine.decide_fence(NodeId(2), bench.epoch(2)))
    bench.do(bench.machine.decide_unregister(NodeId(2)))
    assert bench.start(node(3)) == 3


def test_a_node_without_the_clusters_features_stays_outside() -> None:
    bench = Bench(0)
    bench.start(node(1, features=("tiering",)))
    bench.do(bench.machine.decide_set_feature_level("tiering", 1))
    with pytest.raises(UnsupportedVersion, match="tiering"):
        bench.machine.decide_register(node(2), session_alive=False)
    bench.start(node(2, features=("tiering",)))
    with pytest.raises(UnsupportedVersion, match=r"not understood by the nodes \[1, 2\]"):
        bench.machine.decide_set_feature_level("share", 1)
    with pytest.raises(InvalidRequest, match="cannot go back"):
        bench.machine.decide_set_feature_level("tiering", 0)
    assert bench.machine.decide_set_feature_level("tiering", 1).records == ()


@pytest.mark.parametrize(
    "wrong",
    [
        replace(node(1), node_id=NodeId(-1)),
        replace(node(1), incarnation=b"short"),
        replace(node(1), roles=()),
    ],
)
def test_a_registration_is_checked(wrong: Registration) -> None:
    with pytest.raises(InvalidRequest):
        MetadataMachine().decide_register(wrong, session_alive=False)


def test_a_node_with_replicas_stays_a_broker() -> None:
    bench = Bench(1)
    bench.create(topic("orders"))
    with pytest.raises(InvalidRequest, match="must be a broker"):
        bench.machine.decide_register(node(1, 1, roles=(Role.GROUP,)), session_alive=False)


def test_a_heartbeat_of_a_node_that_is_not_ready_changes_nothing() -> None:
    bench = Bench(0)
    epoch = bench.do(bench.machine.decide_register(node(1), session_alive=False)).broker_epoch
    decision = bench.machine.decide_heartbeat(Heartbeat(NodeId(1), epoch, ready=False))
    assert decision.records == ()
    assert decision.reply.fenced
    assert not bench.do(bench.machine.decide_heartbeat(Heartbeat(NodeId(1), epoch))).fenced


def test_a_fenced_node_may_go_at_once() -> None:
    bench = Bench(1)
    bench.do(bench.machine.decide_fence(NodeId(1), bench.epoch(1)))
    standing = bench.machine.decide_controlled_shutdown(NodeId(1), bench.epoch(1)).reply
    assert standing.may_shut_down


def test_a_leader_that_leaves_may_let_its_follower_in_and_then_goes() -> None:
    """It cannot hand over while it is alone in the ISR; being on its way out must not stop it from
    making the ISR larger.
    """
    bench = Bench(2)
    bench.create(topic("orders", assignment=((NodeId(1), NodeId(2)),)))
    bench.do(bench.machine.decide_fence(NodeId(2), bench.epoch(2)))
    bench.do(bench.machine.decide_unfence(NodeId(2), bench.epoch(2)))
    leaving = bench.do(bench.machine.decide_controlled_shutdown(NodeId(1), bench.epoch(1)))
    assert leaving.leaders_left == 1
    state = bench.partition()
    isr = tuple(IsrMember(n, bench.epoch(n)) for n in state.replicas)
    proposal = IsrProposal(state.id, state.leader_epoch, state.partition_epoch, isr)
    (outcome,) = bench.do(bench.machine.decide_alter_isr(NodeId(1), bench.epoch(1), [proposal]))
    assert outcome.error is None
    leaving = bench.do(bench.machine.decide_controlled_shutdown(NodeId(1), bench.epoch(1)))
    assert leaving.may_shut_down
    assert bench.partition().leader == 2


# -- topics and settings --------------------------------------------------------------------------


def test_validation_alone_makes_no_records() -> None:
    bench = Bench()
    decision = bench.machine.decide_create_topics([topic("orders")], validate_only=True)
    assert decision.records == ()
    assert decision.reply[0].error is None
    assert decision.reply[0].replication_factor == 3
    bench.create(topic("orders"))
    assert bench.machine.decide_add_partitions("orders", 9, validate_only=True).records == ()
    changes = {"retention.ms": "1"}
    altered = bench.machine.decide_alter_config(
        ConfigResource.TOPIC, "orders", changes, validate_only=True
    )
    assert altered.records == ()


def test_one_bad_topic_does_not_spoil_the_others() -> None:
    bench = Bench()
    outcomes = bench.create(
        topic("a", 1), topic("b/c", 2), topic("a", 3), topic("d", 1), topic("e", 4)
    )
    assert [outcome.error is None for outcome in outcomes] == [True, False, False, False, True]
    assert sorted(bench.machine.image.topics_by_name) == ["a", "e"]


def test_a_topic_id_is_never_used_again() -> None:
    bench = Bench()
    bench.create(topic("orders"))
    bench.do(bench.machine.decide_delete_topics(["orders"]))
    (outcome,) = bench.create(topic("orders"))
    assert isinstance(outcome.error, InvalidRequest)
    (outcome,) = bench.create(topic("orders", 2))
    assert outcome.error is None


def test_the_clusters_defaults_count() -> None:
    bench = Bench()
    changes = {"num.partitions": "4", "default.replication.factor": "2"}
    bench.do(bench.machine.decide_alter_config(ConfigResource.CLUSTER, "", changes))
    (outcome,) = bench.create(topic("orders"))
    assert (outcome.partitions, outcome.replication_factor) == (4, 2)


def test_settings_are_changed_all_or_none() -> None:
    bench = Bench()
    bench.create(topic("orders", configs={"retention.ms": "7"}))
    alter = bench.machine.decide_alter_config
    with pytest.raises(InvalidConfig, match=r"flush\.policy"):
        alter(ConfigResource.TOPIC, "orders", {"retention.ms": "1", "flush.policy": "never"})
    lags = {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}
    with pytest.raises(InvalidConfig, match="is over"):
        alter(ConfigResource.TOPIC, "orders", lags)
    with pytest.raises(InvalidConfig, match="no setting"):
        alter(ConfigResource.TOPIC, "orders", {"retention.minutes": None})
    assert alter(ConfigResource.TOPIC, "orders", {"retention.ms": "7"}).records == ()
    assert alter(ConfigResource.TOPIC, "orders", {"segment.ms": None}).records == ()
    bench.do(alter(ConfigResource.TOPIC, "orders", {"retention.ms": None, "segment.ms": "5"}))
    assert bench.machine.image.configs(ConfigResource.TOPIC, "orders") == {"segment.ms": "5"}


def test_settings_belong_to_something_that_is_there() -> None:
    alter = Bench(1).machine.decide_alter_config
    with pytest.raises(UnknownTopicOrPartition):
        alter(ConfigResource.TOPIC, "orders", {})
    with pytest.raises(UnknownBroker):
        alter(ConfigResource.BROKER, "7", {})
    with pytest.raises(UnknownBroker):
        alter(ConfigResource.BROKER, "one", {})
    with pytest.raises(InvalidRequest):
        alter(ConfigResource.CLUSTER, "name", {})
    decision = alter(ConfigResource.BROKER, "01", {"replica.lag.time.max.ms": "500"})
    assert decision.records[0].name == "1", "one broker has one name"


# -- leaders and replicas -------------------------------------------------------------------------


def test_a_partition_is_proposed_for_once_in_a_request() -> None:
    bench = Bench()
    bench.create(topic("orders"))
    state = bench.partition()
    leader = state.leader
    isr = (IsrMember(leader, bench.epoch(leader)),)
    proposal = IsrProposal(state.id, state.leader_epoch, state.partition_epoch, isr)
    with pytest.raises(InvalidRequest, match="twice"):
        bench.machine.decide_alter_isr(leader, bench.epoch(leader), [proposal, proposal])
    with pytest.raises(StaleBrokerEpoch):
        bench.machine.decide_alter_isr(leader, BrokerEpoch(99), [proposal])


@pytest.mark.parametrize(("off", "error"), [(-1, FencedLeaderEpoch), (1, UnknownLeaderEpoch)])
def test_a_proposal_of_another_leader_epoch_is_refused(off: int, error: type) -> None:
    bench = Bench()
    bench.create(topic("orders"))
    state = bench.partition()
    isr = (IsrMember(state.leader, bench.epoch(state.leader)),)
    leader_epoch = LeaderEpoch(state.leader_epoch + off)
    proposal = IsrProposal(state.id, leader_epoch, state.partition_epoch, isr)
    decision = bench.machine.decide_alter_isr(state.leader, bench.epoch(state.leader), [proposal])
    assert decision.records == ()
    assert type(decision.reply[0].error) is error


def test_a_proposal_that_changes_nothing_costs_nothing() -> None:
    bench = Bench()
    bench.create(topic("orders"))
    state = bench.partition()
    isr = tuple(IsrMember(n, bench.epoch(n)) for n in reversed(state.isr))
    proposal = IsrProposal(state.id, state.leader_epoch, state.partition_epoch, isr)
    decision = bench.machine.decide_alter_isr(state.leader, bench.epoch(state.leader), [proposal])
    assert decision.records == ()
    assert decision.reply[0].state == state


def test_a_throttle_is_recorded_once() -> None:
    machine = Bench().machine
    decision = machine.decide_reassign([], throttle_bytes_per_s=1000)
    assert len(decision.records) == 1
    machine.apply(decision.records[0])
    assert machine.decide_reassign([], throttle_bytes_per_s=1000).records == ()
    assert machine.decide_reassign([]).records == ()
    with pytest.raises(InvalidRequest):
        machine.decide_reassign([], throttle_bytes_per_s=-1)
    twice = [Move(TopicPartition("orders", 0), (NodeId(1),))] * 2
    with pytest.raises(InvalidRequest, match="twice"):
        machine.decide_reassign(twice)


def test_a_waiting_reassignment_completes_when_the_topic_asks_for_less() -> None:
    bench = Bench()
    by_hand = ((NodeId(1), NodeId(2), NodeId(3)),)
    bench.create(topic("orders", assignment=by_hand, configs={"min.insync.replicas": "2"}))
    bench.do(bench.machine.decide_fence(NodeId(3), bench.epoch(3)))
    move = Move(TopicPartition("orders", 0), (NodeId(2), NodeId(3)))
    bench.do(bench.machine.decide_reassign([move]))
    assert bench.do(bench.machine.decide_complete_reassignments()) == 0
    changes = {"min.insync.replicas": "1"}
    bench.do(bench.machine.decide_alter_config(ConfigResource.TOPIC, "orders", changes))
    assert bench.do(bench.machine.decide_complete_reassignments()) == 1
    assert bench.partition().replicas == (2, 3)
    assert bench.partition().leader == 2


def test_fewer_replicas_than_the_topic_asks_for_are_refused() -> None:
    bench = Bench()
    bench.create(topic("orders", replication_factor=3, configs={"min.insync.replicas": "2"}))
    move = Move(TopicPartition("orders", 0), bench.partition().replicas[:1])
    (outcome,) = bench.do(bench.machine.decide_reassign([move]))
    assert isinstance(outcome.error, InvalidReplicationFactor)
    fewer = Move(TopicPartition("orders", 0), bench.partition().replicas[:2])
    (outcome,) = bench.do(bench.machine.decide_reassign([fewer]))
    assert (outcome.error, len(bench.partition().isr)) == (None, 2)


def test_leaders_go_back_when_a_broker_misses_more_than_its_share() -> None:
    bench = Bench()
    by_hand = tuple((NodeId(1), NodeId(2)) for _ in range(10))
    bench.create(topic("orders", assignment=by_hand))
    bench.do(bench.machine.decide_fence(NodeId(1), bench.epoch(1)))
    bench.do(bench.machine.decide_unfence(NodeId(1), bench.epoch(1)))
    image = bench.machine.image
    for state in image.partitions(image.not_preferred):
        isr = tuple(IsrMember(n, bench.epoch(n)) for n in state.replicas)
        proposal = IsrProposal(state.id, state.leader_epoch, state.partition_epoch, isr)
        bench.do(bench.machine.decide_alter_isr(NodeId(2), bench.epoch(2), [proposal]))
    assert len(image.not_preferred) == 10
    assert bench.do(bench.machine.decide_balance_leaders(9, 10)) == 9
    assert bench.do(bench.machine.decide_balance_leaders(9, 10)) == 0, "one in ten is no more"
    assert bench.do(bench.machine.decide_balance_leaders(9, 9)) == 1


def half_moved() -> Bench:
    """orders-0 moves from 1 to 2 and 3; so far 2 is in sync."""
    bench = Bench()
    bench.create(topic("orders", assignment=((NodeId(1),),)))
    move = Move(TopicPartition("orders", 0), (NodeId(2), NodeId(3)))
    bench.do(bench.machine.decide_reassign([move]))
    state = bench.partition()
    isr = tuple(IsrMember(NodeId(n), bench.epoch(n)) for n in (1, 2))
    proposal = IsrProposal(state.id, state.leader_epoch, state.partition_epoch, isr)
    bench.do(bench.machine.decide_alter_isr(NodeId(1), bench.epoch(1), [proposal]))
    assert bench.partition().isr == (1, 2)
    return bench


def test_cancelling_takes_added_replicas_out_of_the_isr() -> None:
    bench = half_moved()
    (outcome,) = bench.do(bench.machine.decide_reassign([Move(TopicPartition("orders", 0), ())]))
    assert outcome.leader == 1
    state = bench.partition()
    assert (state.replicas, state.isr, state.reassignment) == ((1,), (1,), None)


def test_cancelling_is_refused_when_only_added_replicas_are_in_sync() -> None:
    bench = half_moved()
    bench.do(bench.machine.decide_controlled_shutdown(NodeId(1), bench.epoch(1)))
    assert bench.partition().leader == 2
    (outcome,) = bench.do(bench.machine.decide_reassign([Move(TopicPartition("orders", 0), ())]))
    assert isinstance(outcome.error, LeaderNotAvailable), "the added one has the only good copy"
    state = bench.partition()
    assert (state.leader, state.isr, state.replicas) == (2, (2,), (1, 2, 3))


# -- producers and coordinators -------------------------------------------------------------------


def test_producer_ids_are_given_once_and_only_to_the_living() -> None:
    bench = Bench(2)
    allocate = bench.machine.decide_allocate_producer_ids
    first = bench.do(allocate(NodeId(1), bench.epoch(1)))
    second = bench.do(allocate(NodeId(2), bench.epoch(2)))
    assert first.start < first.end == second.start < second.end
    with pytest.raises(StaleBrokerEpoch):
        allocate(NodeId(1), bench.epoch(2))
    bench.do(bench.machine.decide_fence(NodeId(1), bench.epoch(1)))
    with pytest.raises(BrokerFenced):
        allocate(NodeId(1), bench.epoch(1))


def test_both_kinds_of_shards_follow_their_topics() -> None:
    bench = Bench(3)
    bench.create(topic(GROUP_TOPIC, 1, partitions=6), topic(TXN_TOPIC, 2, partitions=3))
    for kind, per_owner in ((ShardKind.GROUP, 2), (ShardKind.TXN, 1)):
        owners = [s.owner for s in bench.machine.image.shards.values() if s.kind == kind]
        assert [owners.count(NodeId(n)) for n in (1, 2, 3)] == [per_owner] * 3
    assert bench.machine.decide_assign_shards(ShardKind.GROUP).records == ()


def test_a_restarted_coordinator_never_has_its_old_owner_epoch() -> None:
    bench = Bench(1)
    bench.create(topic(GROUP_TOPIC, partitions=1))
    before = bench.machine.image.shards[ShardKind.GROUP, 0]
    bench.start(node(1, life=1))
    after = bench.machine.image.shards[ShardKind.GROUP, 0]
    assert after.owner == before.owner
    assert after.owner_epoch > before.owner_epoch


def test_names_are_spread_over_the_shards() -> None:
    counts = [0] * 16
    for number in range(1600):
        counts[shard_of(f"group-{number}", 16)] += 1
    assert min(counts) > 50
    assert shard_of("group-1", 16) == 8, "clients and coordinators have to agree forever"


def test_deciding_twice_without_applying_gives_the_same() -> None:
    bench = Bench()
    once = bench.machine.decide_create_topics([topic("orders", partitions=9)])
    again = bench.machine.decide_create_topics([topic("orders", partitions=9)])
    assert once == again
    assert once.records[0] == TopicCreated(TopicId(b"\x01" * 16), "orders")


def test_a_node_that_was_evacuated_before_leaves_the_same_behind() -> None:
    """In steps or at once: who leads and who is in sync is the same when it is fenced."""
    at_once, in_steps = Bench(), Bench()
    for bench in (at_once, in_steps):
        bench.do(
            bench.machine.decide_create_topics(
                [topic("spread", partitions=30, replication_factor=2)]
            )
        )
    gone = NodeId(2)
    image = in_steps.machine.image
    held = sorted(image.replicas_on(gone))
    for start in range(0, len(held), 4):
        some = held[start : start + 4]
        decision = in_steps.machine.decide_evacuate(gone, in_steps.epoch(2), some)
        assert len(decision.records) == decision.reply == len(some)
        in_steps.do(decision)
    assert not image.leaders_on(gone)
    assert not image.nodes[gone].fenced
    for bench in (at_once, in_steps):
        bench.do(bench.machine.decide_fence(gone, bench.epoch(2)))
    assert image.state_hash() == at_once.machine.image.state_hash()
    again = in_steps.machine.decide_evacuate(gone, in_steps.epoch(2), held)
    assert again.records == ()


def test_a_node_that_comes_back_leads_what_nobody_leads_in_steps() -> None:
    bench = Bench(brokers=1)
    count = PARTITIONS_PER_DECISION_MAX + 5
    bench.do(
        bench.machine.decide_create_topics([topic("alone", partitions=count, replication_factor=1)])
    )
    image = bench.machine.image
    bench.do(bench.machine.decide_fence(NodeId(1), bench.epoch(1)))
    assert len(image.leaderless) == count
    assert bench.machine.decide_lead_again(NodeId(1), bench.epoch(1), []).records == ()
    bench.do(bench.machine.decide_unfence(NodeId(1), bench.epoch(1)))
    left = sorted(image.leaderless)
    assert len(left) == 5
    assert bench.do(bench.machine.decide_lead_again(NodeId(1), bench.epoch(1), left)) == 5
    assert not image.leaderless
