"""Random lives of a cluster: whatever is decided, the invariants hold after it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from suiro.model.codec import decode, encode
from suiro.model.error_base import SuiroError
from suiro.model.ids import (
    NO_LEADER,
    NO_OWNER,
    Address,
    BrokerEpoch,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from suiro.model.image import ClusterImage
from suiro.model.records import (
    ConfigResource,
    PartitionChanged,
    PartitionId,
    PartitionState,
    Recovery,
    Role,
    ShardKind,
)
from suiro.model.topics import GROUP_TOPIC, TXN_TOPIC

from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import (
    Heartbeat,
    IsrMember,
    IsrProposal,
    Move,
    NewTopic,
    Registration,
    UncleanElection,
)

if TYPE_CHECKING:
    from cluster.host.machine import Decision

NODES = [NodeId(n) for n in range(5)]
NAMES = ["a", "b", "c", GROUP_TOPIC, TXN_TOPIC]
ALL_ROLES = (Role.BROKER, Role.GROUP, Role.TXN)

node_ids = st.sampled_from(NODES)
seldom = st.sampled_from([0, 0, 0, 0, 1])
names = st.sampled_from(NAMES)


class Cluster(RuleBasedStateMachine):
    """Nodes that come, go and lie about their epochs; topics; leaders that propose."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = MetadataMachine()
        self.follower = ClusterImage()
        self.ids = 0
        self.given: set[BrokerEpoch] = set()
        self.producer_ids_end = 0
        self.epochs: dict[PartitionId, PartitionState] = {}
        self.owner_epochs: dict[tuple[ShardKind, int], Any] = {}

    # -- carrying decisions out -------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        return self.machine.image

    def carry_out(self, decision: Decision[Any]) -> Any:
        """Apply here, and through the codec at a follower, as the quorum would."""
        for record in decision.records:
            if isinstance(record, PartitionChanged):
                self.check_election(record.state, decision)
            data = encode(record)
            assert decode(data) == record
            self.machine.apply(record)
            self.follower.apply(decode(data))
        return decision.reply

    def check_election(self, new: PartitionState, decision: Decision[Any]) -> None:
        """P12: from the ISR, or where the topic allows it and then for everyone to see."""
        old = self.image.partition(*new.id)
        assert old is not None
        if not new.has_leader or new.leader in old.isr:
            return
        name = self.image.topics[new.topic_id].name
        if old.reassignment is not None and new.reassignment is None:
            assert new.leader in old.reassignment.target  # it joined the ISR in the same step
            return
        configs = self.image.configs(ConfigResource.TOPIC, name)
        assert configs["unclean.leader.election.enable"] == "true"
        assert new.recovery is Recovery.UNCLEAN
        assert new.isr == (new.leader,)
        told = UncleanElection(TopicPartition(name, new.partition), new.leader, old.isr)
        assert told in decision.effects

    def ask(self, choose: Any) -> Any:
        """A refusal is a fine answer too, if it changes nothing."""
        before = self.image.state_hash()
        try:
            decision = choose()
        except SuiroError:
            decision = None
        assert self.image.state_hash() == before, "a decision changed the state"
        return None if decision is None else self.carry_out(decision)

    def fresh_id(self) -> bytes:
        self.ids += 1
        return self.ids.to_bytes(16, "big")

    def epoch_of(self, node_id: NodeId) -> BrokerEpoch:
        node = self.image.nodes.get(node_id)
        return BrokerEpoch(-1) if node is None else node.broker_epoch

    def all_partitions(self) -> list[PartitionState]:
        return [s for name in sorted(self.image.topics_by_name) for s in self.partitions(name)]

    def partitions(self, name: str) -> list[PartitionState]:
        topic = self.image.topic(name)
        return [] if topic is None else topic.partitions

    # -- nodes ------------------------------------------------------------------------------------

    @initialize(clean=st.booleans())
    def three_brokers(self, clean: bool) -> None:
        for node_id in NODES[:3]:
            self.register(node_id, clean, False, ALL_ROLES)
            self.heartbeat(node_id, True, False)

    @rule(
        node_id=node_ids,
        clean=st.booleans(),
        alive=st.booleans(),
        roles=st.sampled_from([ALL_ROLES, ALL_ROLES, (Role.BROKER,), (Role.GROUP, Role.TXN)]),
    )
    def register(self, node_id: NodeId, clean: bool, alive: bool, roles: tuple[Role, ...]) -> None:
        held = [s for s in self.all_partitions() if node_id in s.isr]
        node = Registration(
            node_id=node_id,
            incarnation=self.fresh_id(),
            roles=roles,
            address=Address("host", 9000 + node_id),
            rack=f"rack{node_id % 2}",
            log_directories=(f"dir{node_id}",),
            clean_shutdown=clean,
            former_broker_epoch=self.epoch_of(node_id),
        )
        reply = self.ask(lambda: self.machine.decide_register(node, session_alive=alive))
        if reply is None:
            return
        assert reply.broker_epoch not in self.given, "a broker epoch was given twice"
        self.given.add(reply.broker_epoch)
        for state in held if not clean else ():
            self.check_left_isr(state, node_id)

    def check_left_isr(self, old: PartitionState, node_id: NodeId) -> None:
        """P13: an unclean restart is in no ISR, but for the last one standing, which is marked."""
        new = self.image.partition(*old.id)
        assert new is not None
        if node_id in new.isr:
            assert old.isr == new.isr == (node_id,)
            assert new.recovery is not Recovery.NONE
            assert not new.has_leader

    @rule(node_id=node_ids, ready=st.booleans(), leave=st.booleans())
    def heartbeat(self, node_id: NodeId, ready: bool, leave: bool) -> None:
        heard = Heartbeat(node_id, self.epoch_of(node_id), ready, leave)
        standing = self.ask(lambda: self.machine.decide_heartbeat(heard))
        if standing is not None:
            assert standing.fenced == self.image.nodes[node_id].fenced
        if leave and standing is not None and standing.may_shut_down:
            for state in self.image.partitions(self.image.leaders_on(node_id)):
                others = [other for other in state.replicas if other != node_id]
                assert not any(self.image.is_available(other) for other in others)
            assert all(owned.owner != node_id for owned in self.image.shards.values())

    @rule()
    def heal(self) -> None:
        """Everyone who may comes back."""
        for node_id in NODES:
            node = self.image.nodes.get(node_id)
            if node is None or node.shutting_down:
                self.register(node_id, True, False, ALL_ROLES)
            self.heartbeat(node_id, True, False)

    @rule(node_id=node_ids, ago=seldom)
    def fence(self, node_id: NodeId, ago: int) -> None:
        epoch = BrokerEpoch(self.epoch_of(node_id) - ago)
        self.ask(lambda: self.machine.decide_fence(node_id, epoch))

    @rule(node_id=node_ids)
    def unregister(self, node_id: NodeId) -> None:
        self.ask(lambda: self.machine.decide_unregister(node_id))

    # -- topics -----------------------------------------------------------------------------------

    @rule(
        wanted=st.lists(names, min_size=1, max_size=2),
        partitions=st.integers(0, 5),
        replicas=st.integers(0, 3),
        unclean=st.booleans(),
    )
    def create(self, wanted: list[str], partitions: int, replicas: int, unclean: bool) -> None:
        configs = {"unclean.leader.election.enable": str(unclean)}
        topics = [
            NewTopic(
                name=name,
                topic_id=TopicId(self.fresh_id()),
                partitions=partitions,
                replication_factor=replicas,
                configs=configs,
            )
            for name in wanted
        ]
        self.ask(lambda: self.machine.decide_create_topics(topics))

    @rule(name=names, assignment=st.lists(st.lists(node_ids, max_size=3), max_size=3))
    def create_by_hand(self, name: str, assignment: list[list[NodeId]]) -> None:
        by_hand = tuple(tuple(replicas) for replicas in assignment)
        topic = NewTopic(name=name, topic_id=TopicId(self.fresh_id()), assignment=by_hand)
        self.ask(lambda: self.machine.decide_create_topics([topic]))

    @rule(name=names)
    def delete(self, name: str) -> None:
        self.ask(lambda: self.machine.decide_delete_topics([name, name]))

    @rule(name=names, total=st.integers(1, 8))
    def add_partitions(self, name: str, total: int) -> None:
        self.ask(lambda: self.machine.decide_add_partitions(name, total))

    @rule(
        name=names,
        value=st.sampled_from(["true", "false", None]),
        insync=st.sampled_from(["1", "2", None]),
    )
    def configure(self, name: str, value: str | None, insync: str | None) -> None:
        changes = {"unclean.leader.election.enable": value, "min.insync.replicas": insync}
        self.ask(lambda: self.machine.decide_alter_config(ConfigResource.TOPIC, name, changes))

    # -- leaders and replicas ---------------------------------------------------------------------

    @precondition(lambda self: self.image.partition_count)
    @rule()
    def catch_up(self) -> None:
        """Every leader proposes everyone who may join."""
        for state in self.all_partitions():
            members = {n for n in state.replicas if self.image.is_available(n)} | set(state.isr)
            self.propose(state, members)

    @precondition(lambda self: self.image.partition_count)
    @rule(data=st.data(), late=seldom, other=seldom)
    def alter_isr(self, data: st.DataObject, late: int, other: int) -> None:
        state = data.draw(st.sampled_from(self.all_partitions()), label="partition")
        members = data.draw(st.sets(st.sampled_from(state.replicas)), label="members")
        self.propose(state, members | {state.leader}, late, other)

    def propose(
        self, state: PartitionState, members: set[NodeId], late: int = 0, other: int = 0
    ) -> None:
        isr = tuple(IsrMember(n, BrokerEpoch(self.epoch_of(n) - other)) for n in sorted(members))
        proposal = IsrProposal(
            state.id,
            state.leader_epoch,
            PartitionEpoch(state.partition_epoch - late),
            isr,
        )
        outcomes = self.ask(
            lambda: self.machine.decide_alter_isr(
                state.leader, self.epoch_of(state.leader), [proposal]
            )
        )
        if outcomes is not None and outcomes[0].error is None:
            assert not late, "a stale partition epoch was accepted"
            assert not other, "a stale broker epoch was accepted"
            new = self.image.partition(*state.id)
            assert new == outcomes[0].state
            assert all(self.image.is_available(n) for n in members - set(state.isr))

    @rule(unclean=st.booleans())
    def elect(self, unclean: bool) -> None:
        self.ask(lambda: self.machine.decide_elect_leaders(unclean=unclean))

    @rule(moves_max=st.integers(0, 3))
    def balance(self, moves_max: int) -> None:
        self.ask(lambda: self.machine.decide_balance_leaders(moves_max))

    @precondition(lambda self: self.image.partition_count)
    @rule(data=st.data(), wanted=st.lists(node_ids, max_size=4, unique=True))
    def reassign(self, data: st.DataObject, wanted: list[NodeId]) -> None:
        state = data.draw(st.sampled_from(self.all_partitions()), label="partition")
        partition = TopicPartition(self.image.topics[state.topic_id].name, state.partition)
        move = Move(partition, tuple(wanted))
        self.ask(lambda: self.machine.decide_reassign([move], throttle_bytes_per_s=len(wanted)))
        self.ask(self.machine.decide_complete_reassignments)

    @rule(node_id=node_ids)
    def producer_ids(self, node_id: NodeId) -> None:
        epoch = self.epoch_of(node_id)
        ids = self.ask(lambda: self.machine.decide_allocate_producer_ids(node_id, epoch))
        if ids is not None:
            assert ids.start >= self.producer_ids_end
            self.producer_ids_end = ids.end

    @rule(kind=st.sampled_from(ShardKind))
    def assign_shards(self, kind: ShardKind) -> None:
        self.ask(lambda: self.machine.decide_assign_shards(kind))

    # -- what always holds ------------------------------------------------------------------------

    @invariant()
    def partitions_are_sound(self) -> None:
        for state in self.all_partitions():
            assert state.isr
            assert set(state.isr) <= set(state.replicas)
            if state.has_leader:
                assert state.leader in state.isr
                assert not self.image.nodes[state.leader].fenced
            serving = [n for n in state.isr if not self.image.nodes[n].fenced]
            assert serving == list(state.isr) or len(state.isr) == 1
            assert state.has_leader or not serving, "someone could lead and nobody does"
            if state.reassignment is not None:
                assert state.replicas[-len(state.reassignment.adding) or len(state.replicas) :] == (
                    state.reassignment.adding
                )

    @invariant()
    def epochs_only_rise(self) -> None:
        now = {state.id: state for state in self.all_partitions()}
        for partition, new in now.items():
            old = self.epochs.get(partition)
            if old is None:
                continue
            assert new.partition_epoch >= old.partition_epoch
            assert new.leader_epoch >= old.leader_epoch
            assert new == old or new.partition_epoch > old.partition_epoch
            assert new.leader == old.leader or new.leader_epoch > old.leader_epoch
        self.epochs = now
        for key, owned in self.image.shards.items():
            former = self.owner_epochs.get(key)
            assert former is None or former == owned or former.owner_epoch < owned.owner_epoch
        self.owner_epochs = dict(self.image.shards)

    @invariant()
    def shards_are_spread(self) -> None:
        for kind in ShardKind:
            shards = [s for s in self.image.shards.values() if s.kind == kind]
            owners = [node.id for node in self.image.available(Role(kind.value))]
            held = Counter(s.owner for s in shards)
            for owner in held:
                assert owner == NO_OWNER or not self.image.nodes[owner].fenced
            if shards and owners:
                assert held[NO_OWNER] == 0
                loads = [held[owner] for owner in owners]
                assert max(loads) - min(loads) <= 1

    @invariant()
    def images_agree(self) -> None:
        """M4: here, at a follower that replays, and at one that starts from the snapshot."""
        snapshot = list(self.image.records())
        restored = ClusterImage(decode(encode(record)) for record in snapshot)
        assert list(restored.records()) == snapshot == list(self.follower.records())
        assert restored.state_hash() == self.image.state_hash() == self.follower.state_hash()
        for image in (self.image, restored):
            check_indexes(image)


def check_indexes(image: ClusterImage) -> None:
    """Whatever is kept along the way equals what a look at everything finds."""
    states = [state for topic in image.topics.values() for state in topic.partitions]
    assert image.partition_count == len(states)
    assert image.leaderless == {s.id for s in states if s.leader == NO_LEADER}
    assert image.not_preferred == {s.id for s in states if s.leader != s.replicas[0]}
    assert image.under_replicated == {s.id for s in states if len(s.isr) < len(s.replicas)}
    assert image.reassigning == {s.id for s in states if s.reassignment is not None}
    for node_id in NODES:
        assert image.replicas_on(node_id) == {s.id for s in states if node_id in s.replicas}
        assert image.leaders_on(node_id) == {s.id for s in states if s.leader == node_id}
        assert image.preferred_on(node_id) == sum(s.replicas[0] == node_id for s in states)


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
