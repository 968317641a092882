"""A replicated partition as a transcript sees it: nothing arrives, and nobody learns, unless told.

The cores and the controller's machine are the real ones, the logs those of the simulation. Time,
the network and the feed of metadata are in the hands of the transcript. A record is printed as its
leader epoch and its value, `0a`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.errors import TimedOut
from suiro.model.ids import Address, BrokerEpoch, NodeId, Offset, TopicId, TopicPartition
from suiro.model.image import ClusterImage
from suiro.model.records import Role

from cluster.broker.follower import Follower, Part
from cluster.broker.leader import Leader
from cluster.broker.replication_effects import (
    Ack,
    Announce,
    Append,
    Beat,
    Diverging,
    EpochStarted,
    HighWatermark,
    IsrChanged,
    ProposeIsr,
    Read,
    Ready,
    Refuse,
    RestartAt,
    TrimTo,
    TruncateTo,
)
from cluster.broker.replication_role import ReplicaRole, role_of
from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import (
    Heartbeat,
    IsrMember,
    IsrProposal,
    NewTopic,
    Registration,
)
from tests.sim.replication_log import MemoryLog, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.records import PartitionState

    from cluster.host.machine import Decision

TOPIC = TopicId(b"t" * 16)
NAME = TopicPartition("t", 0)


class Replica:
    """A broker: what is on its disk, and what its process knows."""

    def __init__(self, node: NodeId) -> None:
        self.node = node
        self.log = MemoryLog()
        self.high_watermark = Offset(0)
        self.is_up = True
        self.broker_epoch = BrokerEpoch(-1)
        self.forget()

    def forget(self) -> None:
        self.image = ClusterImage()
        self.told = 0
        self.stream = 0
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.follows = NodeId(-1)
        self.proposals: list[ProposeIsr] = []


class PartitionEnv:
    """One partition; `run` carries out one command and returns what there is to say."""

    def __init__(self) -> None:
        self.machine = MetadataMachine()
        self.records: list[Any] = []
        self.replicas: dict[int, Replica] = {}
        self.mailbox: list[tuple[int, int, int, Any]] = []
        self.now_ms = 0
        self.syncs_first = False
        self.min_isr = 1
        self.part_records = 100
        self.stream_epochs: list[BrokerEpoch] = []
        """Which incarnation opened each stream."""
        self.out: list[str] = []

    def run(self, command: str, arguments: list[str]) -> str:
        self.out = []
        action: Callable[[list[str]], None] = getattr(self, f"do_{command.replace('-', '_')}")
        try:
            action(arguments)
        except SuiroError as error:
            self.out.append(f"{type(error).__name__}: {error.message}")
        return "\n".join(self.out) or "ok"

    def say(self, text: str) -> None:
        self.out.append(text)

    # -- commands: the cluster --------------------------------------------------------------------

    def do_start(self, arguments: list[str]) -> None:
        """start replicas=1,2,3 [flush=ack] [min-isr=2] [part=1]: records in a part"""
        options = dict(argument.split("=") for argument in arguments)
        self.syncs_first = options.get("flush") == "ack"
        self.min_isr = int(options.get("min-isr", 1))
        self.part_records = int(options.get("part", 100))
        nodes = [NodeId(int(node)) for node in options["replicas"].split(",")]
        for node in nodes:
            self.replicas[node] = Replica(node)
            self._register(node, clean=True)
            self._beat(node)
        topic = NewTopic(name="t", topic_id=TOPIC, assignment=(tuple(nodes),))
        self._commit(self.machine.decide_create_topics([topic]))
        self.do_tell(["all"])
        self.do_deliver([])

    def do_fence(self, arguments: list[str]) -> None:
        for node in map(NodeId, map(int, arguments)):
            epoch = self.machine.image.nodes[node].broker_epoch
            self._commit(self.machine.decide_fence(node, epoch))
        self.do_state([])

    def do_elect(self, _: list[str]) -> None:
        """Let the preferred replica lead."""
        self._commit(self.machine.decide_elect_leaders([NAME]))
        self.do_state([])

    def do_restart(self, arguments: list[str]) -> None:
        """A new process on the same disk; it registers, without a mark of a clean shutdown."""
        for node in map(int, arguments):
            replica = self.replicas[node]
            replica.is_up = True
            replica.high_watermark = min(replica.high_watermark, replica.log.log_end)
            replica.forget()
            self._register(replica.node, clean=False)
        self.do_state([])

    def do_beat(self, arguments: list[str]) -> None:
        """A heartbeat: the node is ready."""
        for node in map(NodeId, map(int, arguments)):
            self._beat(node)
        self.do_state([])

    def do_decide(self, arguments: list[str]) -> None:
        """decide 1 [first]: on a leader's last or first proposal; the leader hears the answer"""
        replica = self.replicas[int(arguments[0])]
        proposal = replica.proposals[0 if "first" in arguments else -1]
        error = self._decide(replica, proposal)
        if replica.leader is not None:
            self._lead(replica, replica.leader.on_outcome(proposal, error, self.now_ms))

    def do_give_up(self, arguments: list[str]) -> None:
        """A leader hears nothing about its proposal; the controller may still decide on it."""
        replica = self.replicas[int(arguments[0])]
        assert replica.leader is not None
        error = TimedOut("no answer")
        self._lead(replica, replica.leader.on_outcome(replica.proposals[-1], error, self.now_ms))

    def do_tell(self, arguments: list[str]) -> None:
        """Brokers learn all that is committed: tell 1 2, tell all"""
        nodes = [*self.replicas] if arguments == ["all"] else [int(node) for node in arguments]
        for node in nodes:
            replica = self.replicas[node]
            for record in self.records[replica.told :]:
                replica.image.apply(record)
            replica.told = len(self.records)
            state = replica.image.partition(TOPIC, 0)
            if state is not None and replica.is_up:
                self._take_role(replica, state)

    def do_state(self, _: list[str]) -> None:
        state = self.machine.image.partition(TOPIC, 0)
        assert state is not None
        leader = state.leader if state.has_leader else "nobody"
        mark = f" {state.recovery.name}" if state.recovery else ""
        self.say(
            f"controller: {leader} leads epoch {state.leader_epoch}, isr {_list(state.isr)}{mark}"
        )

    # -- commands: brokers ------------------------------------------------------------------------

    def do_append(self, arguments: list[str]) -> None:
        """append 1 a b: the leader appends, a record a value"""
        node, *values = arguments
        replica = self.replicas[int(node)]
        assert replica.leader is not None
        epoch = replica.leader.state.leader_epoch
        replica.log.append([Record(epoch, ord(value)) for value in values])
        self._lead(replica, replica.leader.on_appended(self.now_ms))
        if not self.syncs_first:
            self._lead(replica, replica.leader.on_held(replica.log.log_end))

    def do_sync(self, arguments: list[str]) -> None:
        replica = self.replicas[int(arguments[0])]
        replica.log.synced_end = replica.log.log_end
        if replica.leader is not None:
            self._lead(replica, replica.leader.on_held(replica.log.synced_end))
        elif replica.follower is not None:
            self._follow(replica, replica.follower.on_held(replica.log.synced_end))

    def do_crash(self, arguments: list[str]) -> None:
        """crash 2 [keep]: the process dies, and what the disk had not kept"""
        replica = self.replicas[int(arguments[0])]
        if len(arguments) > 1:
            replica.log.truncate_to(Offset(int(arguments[1])))
        replica.is_up = False
        replica.leader = replica.follower = None

    def do_trim(self, arguments: list[str]) -> None:
        self.replicas[int(arguments[0])].log.trim_to(Offset(int(arguments[1])))

    def do_advance(self, arguments: list[str]) -> None:
        """So many milliseconds pass; everyone ticks."""
        self.now_ms += int(arguments[0])
        for replica in self.replicas.values():
            if replica.leader is not None:
                self._lead(replica, replica.leader.tick(self.now_ms))
            elif replica.follower is not None:
                self._follow(replica, replica.follower.tick(self.now_ms))

    def do_reconnect(self, arguments: list[str]) -> None:
        """A follower opens another stream; what is on the old one stays in the mailbox."""
        replica = self.replicas[int(arguments[0])]
        assert replica.follower is not None
        self._open_stream(replica)

    def do_latest(self, arguments: list[str]) -> None:
        """What a leader tells a reader who asks for the latest offset."""
        leader = self.replicas[int(arguments[0])].leader
        if leader is None:
            self.say("not the leader")
            return
        leader.check_high_watermark()
        self.say(str(leader.high_watermark))

    def do_committed(self, arguments: list[str]) -> None:
        """committed 1 5: whether the leader may answer acks=all for what ends at 5"""
        leader = self.replicas[int(arguments[0])].leader
        assert leader is not None
        self.say(str(leader.is_committed(Offset(int(arguments[1])), self.min_isr)).lower())

    def do_logs(self, _: list[str]) -> None:
        for node, replica in self.replicas.items():
            log = replica.log
            records = " ".join(f"{r.leader_epoch}{chr(r.value)}" for r in log.records)
            start = f" from {log.log_start}" if log.log_start else ""
            self.say(f"{node}: [{records}]{start} high watermark {replica.high_watermark}")

    # -- commands: the network --------------------------------------------------------------------

    def do_deliver(self, arguments: list[str]) -> None:
        """deliver, or deliver 1->2 …: until nothing is left of it"""
        while (at := self._find(arguments)) is not None:
            self._deliver(*self.mailbox.pop(at))

    def do_deliver_one(self, arguments: list[str]) -> None:
        at = self._find(arguments)
        assert at is not None, "nothing to deliver"
        self._deliver(*self.mailbox.pop(at))

    def do_drop(self, arguments: list[str]) -> None:
        while (at := self._find(arguments)) is not None:
            source, target, _, message = self.mailbox.pop(at)
            self.say(f"dropped {source}->{target} {_show(message)}")

    def _find(self, pairs: list[str]) -> int | None:
        for at, (source, target, _, _) in enumerate(self.mailbox):
            if not pairs or f"{source}->{target}" in pairs:
                return at
        return None

    def _deliver(self, source: int, target: int, stream: int, message: Any) -> None:
        self.say(f"{source}->{target} {_show(message)}")
        replica = self.replicas[target]
        if isinstance(message, Part | str):
            self._on_part(replica, stream, message)
            return
        leader = replica.leader
        if leader is None:
            if isinstance(message, Announce):
                self.mailbox.append((target, source, stream, "NotLeader"))
            return
        if isinstance(message, Announce):
            node, broker_epoch = NodeId(source), self.stream_epochs[stream]
            self._lead(replica, leader.on_position(node, stream, broker_epoch, message.position))
        else:
            epoch, held_end = message
            effects = leader.on_ack(NodeId(source), stream, epoch, held_end, self.now_ms)
            self._lead(replica, effects)

    def _on_part(self, replica: Replica, stream: int, message: Part | str) -> None:
        if replica.follower is None or stream != replica.stream:
            return
        if isinstance(message, str):
            replica.follower.on_refused(self.now_ms)
            return
        leader = self.replicas[replica.follows].log
        records = [leader.at(offset) for offset in range(message.base_offset, message.end)]
        self._follow(replica, replica.follower.on_part(message, self.now_ms), records)

    # -- what the cores want ----------------------------------------------------------------------

    def _take_role(self, replica: Replica, state: PartitionState) -> None:
        nodes, last_epoch = replica.image.nodes, replica.log.last_epoch
        role = role_of(replica.node, replica.broker_epoch, nodes, state, last_epoch)
        if role is ReplicaRole.LEADER:
            replica.follower = None
            if replica.leader and replica.leader.state.leader_epoch == state.leader_epoch:
                self._lead(replica, replica.leader.on_state(state, self.now_ms))
                return
            replica.leader = Leader(
                NAME,
                replica.node,
                state,
                log=replica.log,
                high_watermark=replica.high_watermark,
                nodes=nodes,
            )
            self._lead(replica, replica.leader.start(self._held_end(replica), self.now_ms))
            return
        replica.leader = None
        if role is not ReplicaRole.FOLLOWER:
            replica.follower = None
            return
        if replica.follower and replica.follower.leader_epoch == state.leader_epoch:
            replica.follower.partition_epoch = state.partition_epoch
        else:
            replica.follower = Follower(
                state.leader_epoch,
                replica.log,
                held_end=self._held_end(replica),
                high_watermark=replica.high_watermark,
            )
            replica.follower.partition_epoch = state.partition_epoch
            replica.follows = state.leader
            self._open_stream(replica)

    def _held_end(self, replica: Replica) -> Offset:
        return replica.log.synced_end if self.syncs_first else replica.log.log_end

    def _open_stream(self, replica: Replica) -> None:
        assert replica.follower is not None
        replica.stream = len(self.stream_epochs)
        self.stream_epochs.append(replica.broker_epoch)
        self._follow(replica, replica.follower.announce(self.now_ms))

    def _lead(self, replica: Replica, effects: Sequence[Any]) -> None:
        for effect in effects:
            match effect:
                case HighWatermark(offset):
                    replica.high_watermark = offset
                    self.say(f"{replica.node}: high watermark {offset}")
                case EpochStarted(leader_epoch, start):
                    self.say(f"{replica.node}: leads epoch {leader_epoch} from {start}")
                case IsrChanged(_, before, after):
                    self.say(f"{replica.node}: isr {_list(before)} -> {_list(after)}")
                case ProposeIsr():
                    replica.proposals.append(effect)
                    self.say(f"{replica.node}: proposes {_list(effect.nodes)}")
                case Ready(node, stream):
                    self._push(replica, node, stream)
                case Refuse(node, error, stream):
                    number = stream if stream >= 0 else self.replicas[node].stream
                    self.mailbox.append((replica.node, node, number, type(error).__name__))
                case _:
                    raise AssertionError(effect)

    def _push(self, replica: Replica, node: NodeId, stream: int) -> None:
        leader = replica.leader
        assert leader is not None
        while (push := leader.next_push(node)) is not None:
            start = end = Offset(0)
            diverging = None
            match push:
                case Read(start, _):
                    end = Offset(min(replica.log.log_end, start + self.part_records))
                case Beat(start):
                    end = start
                case Diverging(answer):
                    diverging = answer
            facts = (leader.high_watermark, replica.log.log_start, diverging)
            leader.on_pushed(node, end)
            part = Part(leader.state.leader_epoch, start, end, *facts)
            self.mailbox.append((replica.node, node, stream, part))

    def _follow(
        self, replica: Replica, effects: Sequence[Any], records: Sequence[Record] = ()
    ) -> None:
        follower = replica.follower
        assert follower is not None
        for effect in effects:
            match effect:
                case Announce():
                    self._to_leader(replica, effect)
                case Ack(held_end):
                    self._to_leader(replica, (follower.leader_epoch, held_end))
                case Append():
                    replica.log.append(records)
                    self._follow(replica, follower.on_appended())
                    if not self.syncs_first:
                        self._follow(replica, follower.on_held(replica.log.log_end))
                case TruncateTo(log_end, offset, reason):
                    self.say(f"{replica.node}: cuts {log_end} to {offset}, {reason.value}")
                    replica.log.truncate_to(offset)
                    self._cut(replica, follower)
                case RestartAt(log_end, offset, reason):
                    self.say(f"{replica.node}: drops {log_end}, begins at {offset}, {reason.value}")
                    replica.log.restart_at(offset)
                    self._cut(replica, follower)
                case TrimTo(offset):
                    replica.log.trim_to(offset)
                case HighWatermark(offset):
                    replica.high_watermark = offset
                case _:
                    raise AssertionError(effect)

    def _cut(self, replica: Replica, follower: Follower) -> None:
        effects = follower.on_truncated(self.now_ms)
        replica.high_watermark = follower.high_watermark
        self._follow(replica, effects)

    def _to_leader(self, replica: Replica, message: Any) -> None:
        self.mailbox.append((replica.node, replica.follows, replica.stream, message))

    # -- the controller ---------------------------------------------------------------------------

    def _commit(self, decision: Decision[Any]) -> Any:
        for record in decision.records:
            self.machine.apply(record)
            self.records.append(record)
        return decision.reply

    def _register(self, node: NodeId, *, clean: bool) -> None:
        former = self.machine.image.nodes.get(node)
        registration = Registration(
            node_id=node,
            incarnation=len(self.records).to_bytes(16, "big"),
            roles=(Role.BROKER,),
            address=Address("h", 1),
            log_directories=("d",),
            clean_shutdown=clean,
            former_broker_epoch=BrokerEpoch(-1) if former is None else former.broker_epoch,
        )
        decision = self.machine.decide_register(registration, session_alive=False)
        self.replicas[node].broker_epoch = self._commit(decision).broker_epoch

    def _beat(self, node: NodeId) -> None:
        heartbeat = Heartbeat(node, self.replicas[node].broker_epoch)
        self._commit(self.machine.decide_heartbeat(heartbeat))

    def _decide(self, replica: Replica, proposal: ProposeIsr) -> SuiroError | None:
        members = tuple(IsrMember(m.node_id, m.broker_epoch) for m in proposal.members)
        state = self.machine.image.partition(TOPIC, 0)
        assert state is not None
        wanted = IsrProposal(state.id, proposal.leader_epoch, proposal.partition_epoch, members)
        node, epoch = replica.node, replica.broker_epoch
        try:
            (outcome,) = self._commit(self.machine.decide_alter_isr(node, epoch, [wanted]))
        except SuiroError as error:
            self.say(f"controller: {type(error).__name__}")
            return error
        if outcome.error is not None:
            self.say(f"controller: {type(outcome.error).__name__}")
        else:
            self.do_state([])
        error_or_none: SuiroError | None = outcome.error
        return error_or_none


def _list(nodes: Sequence[int]) -> str:
    return ",".join(map(str, sorted(nodes)))


def _show(message: Any) -> str:
    match message:
        case Announce(position):
            p = position
            return f"position: epoch {p.leader_epoch}, end {p.log_end}, last epoch {p.last_epoch}"
        case Part(leader_epoch, _, _, _, _, diverging) if diverging is not None:
            return (
                f"diverging: epoch {leader_epoch}, from epoch {diverging.leader_epoch} "
                f"on at {diverging.end}"
            )
        case Part(leader_epoch, base, end, high_watermark):
            return f"part: epoch {leader_epoch}, {base} to {end}, high watermark {high_watermark}"
        case str():
            return f"refused: {message}"
        case (leader_epoch, held_end):
            return f"ack: epoch {leader_epoch}, {held_end}"
        case _:
            raise AssertionError(message)
