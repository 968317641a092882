"""The controller of the replication simulation: the real metadata machine and the real sessions.

A decision is applied, committed and fed to the brokers at once, or it never was: a quorum that
loses an uncommitted decision has shown it to nobody, so losing the request is the same. Answers may
get lost, feeds lag, and a failover leaves the cluster without a controller for a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from suiro.model.error_base import SuiroError
from suiro.model.errors import NotController
from suiro.model.ids import Address, NodeId, TopicId, TopicPartition
from suiro.model.records import PartitionChanged, PartitionCreated, Role

from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import (
    Heartbeat,
    IsrMember,
    IsrProposal,
    Move,
    NewTopic,
    Registration,
)
from cluster.controller_quorum.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.ids import BrokerEpoch
    from suiro.model.records import PartitionState

    from cluster.broker.replication_effects import ProposeIsr
    from cluster.host.machine import Decision
    from tests.sim.replication_broker import Broker
    from tests.sim.replication_world import World

CONTROLLER: Final = NodeId(0)
TOPIC: Final = TopicId(b"t" * 16)
PARTITION: Final = TopicPartition("t", 0)
SESSION_MS: Final = 3_000
CHECK_MS: Final = 100
BALANCE_MS: Final = 5_000


class Controller:
    """The active controller, whoever it is, and the committed records."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.machine = MetadataMachine()
        self.sessions = Sessions(SESSION_MS)
        self.log: list[Any] = []
        self.is_active = True
        world.at(CHECK_MS, self._check)
        world.at(BALANCE_MS, self._balance)

    @property
    def state(self) -> PartitionState | None:
        return self.machine.image.partition(TOPIC, 0)

    def create_topic(self, replicas: tuple[NodeId, ...], configs: dict[str, str]) -> None:
        topic = NewTopic(name="t", topic_id=TOPIC, assignment=(replicas,), configs=configs)
        self.carry_out(self.machine.decide_create_topics([topic]))
        assert self.state is not None

    def carry_out(self, decision: Decision[Any]) -> Any:
        """Apply and commit; the brokers hear of it as the network likes."""
        for record in decision.records:
            self.machine.apply(record)
            self.log.append(record)
            if isinstance(record, PartitionChanged | PartitionCreated):
                self.world.note("decision", record.state.leader)
                self.world.tell(f"controller: {_show(record.state)}")
                self.world.checker.on_state(record.state)
        if decision.records:
            self.world.feed_all()
        return decision.reply

    # -- what brokers ask -------------------------------------------------------------------------

    def on_register(self, broker: Broker, life: int, clean_epoch: BrokerEpoch | None) -> None:
        if not self.is_active:
            return
        now = self.world.now
        node = Registration(
            node_id=broker.node,
            incarnation=life.to_bytes(16, "big"),
            roles=(Role.BROKER,),
            address=Address("h", 1),
            log_directories=("d",),
            clean_shutdown=clean_epoch is not None,
            former_broker_epoch=-1 if clean_epoch is None else clean_epoch,  # type: ignore[arg-type]
        )
        alive = self.sessions.is_alive(broker.node, now)
        known = self.machine.image.nodes.get(broker.node)
        if known is not None and int.from_bytes(known.registration.incarnation, "big") > life:
            return  # a register of a life that is over, late: the process is not there to be heard
        try:
            reply = self.carry_out(self.machine.decide_register(node, session_alive=alive))
        except SuiroError:
            return  # it will ask again
        self.sessions.on_registered(broker.node, reply.broker_epoch, now)
        if broker.life == life and broker.is_up:
            self.world.checker.on_registered(broker.node)
        index = len(self.log)
        self.world.send(
            CONTROLLER, broker.node, broker.on_registered, life, reply.broker_epoch, index
        )

    def on_heartbeat(self, broker: Broker, heard: Heartbeat, stream: int, sent_ms: int) -> None:
        if not self.is_active:
            return
        life = broker.life
        try:
            standing = self.carry_out(self.machine.decide_heartbeat(heard))
        except SuiroError:
            return  # an incarnation that is over
        self.sessions.on_opened(heard.node_id, heard.broker_epoch, stream, self.world.now)
        facts = (life, stream, sent_ms, len(self.log))
        self.world.send(CONTROLLER, broker.node, broker.on_notice, facts, standing)

    def on_propose(
        self,
        node: NodeId,
        broker_epoch: BrokerEpoch,
        proposal: ProposeIsr,
        answer: Callable[[SuiroError | None], None],
    ) -> None:
        if not self.is_active:
            answer(NotController(None))
            return
        members = tuple(IsrMember(m.node_id, m.broker_epoch) for m in proposal.members)
        assert self.state is not None
        wanted = IsrProposal(
            self.state.id, proposal.leader_epoch, proposal.partition_epoch, members
        )
        try:
            decision = self.machine.decide_alter_isr(node, broker_epoch, [wanted])
        except SuiroError as error:
            answer(error)
            return
        (outcome,) = self.carry_out(decision)
        self.world.counts["proposals accepted" if outcome.error is None else "refused"] += 1
        answer(outcome.error)

    # -- what it does by itself -------------------------------------------------------------------

    def fail_over(self, away_ms: int) -> None:
        self.is_active = False
        self.world.at(away_ms, self._become_active)

    def on_session_broken(self, node: NodeId, broker_epoch: BrokerEpoch, stream: int) -> None:
        if self.is_active:
            self.sessions.on_broken(node, broker_epoch, stream)

    def on_process_gone(self, node: NodeId, broker_epoch: BrokerEpoch, stream: int) -> None:
        """Its stream broke, and its machine says that nobody listens there any more."""
        self.on_session_broken(node, broker_epoch, stream)
        if self.is_active:
            self.sessions.on_dead(node, broker_epoch)

    def elect_preferred(self) -> None:
        if self.is_active:
            self.carry_out(self.machine.decide_elect_leaders([PARTITION]))

    def reassign(self, replicas: tuple[NodeId, ...]) -> None:
        if self.is_active:
            self.carry_out(self.machine.decide_reassign([Move(PARTITION, replicas)]))

    def _become_active(self) -> None:
        self.is_active = True
        alive = [(n.id, n.broker_epoch) for n in self.machine.image.nodes.values() if not n.fenced]
        self.sessions.restart(alive, self.world.now)

    def _check(self) -> None:
        self.world.at(CHECK_MS, self._check)
        if not self.is_active:
            return
        for node, broker_epoch in self.sessions.due(self.world.now):
            self.sessions.forget(node, broker_epoch)
            self.world.note("fenced", node)
            self.carry_out(self.machine.decide_fence(node, broker_epoch))

    def _balance(self) -> None:
        self.world.at(BALANCE_MS, self._balance)
        if self.is_active:
            self.carry_out(self.machine.decide_complete_reassignments())
            self.carry_out(self.machine.decide_balance_leaders(10))


def _show(state: PartitionState) -> str:
    recovery = f" {state.recovery.name}" if state.recovery else ""
    return (
        f"leader {state.leader} epoch {state.leader_epoch} partition epoch "
        f"{state.partition_epoch} isr {list(state.isr)} of {list(state.replicas)}{recovery}"
    )
