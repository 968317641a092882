"""A broker of the replication simulation: the real cores in a shell made of callbacks.

What the shell does by itself is what the real one has to do: it takes roles by `role_of`, asks the
`Lease` before it serves anybody, gives every accepted stream a number, reads nothing from a stream
it has closed, closes the earlier stream of a node that opens another, and tells the cores of syncs
by what the log says.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from suiro.model.error_base import SuiroError
from suiro.model.errors import NotLeader, TimedOut
from suiro.model.ids import NO_LEADER, NodeId, Offset

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
    ProposeIsr,
    Read,
    Ready,
    Refuse,
    RestartAt,
    TrimTo,
    TruncateTo,
)
from cluster.broker.replication_epochs import Position
from cluster.broker.replication_role import ReplicaRole, role_of
from tests.sim.replication_controller import CONTROLLER, PARTITION
from tests.sim.replication_life import Life
from tests.sim.replication_log import Record
from tests.sim.replication_net import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.records import PartitionState

    from cluster.broker.replication_epochs import Divergence

PROPOSAL_TIMEOUT_MS: Final = 1_000
LATE_PROPOSAL_RATE: Final = 0.15
"""Of proposals that are decided on after they were given up, or after the world has changed."""
RELAXED_SYNC_RATE: Final = 0.3


@dataclass(frozen=True, slots=True)
class Sent:
    """A part with its records."""

    part: Part
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    leader_epoch: int


@dataclass(slots=True)
class Waiter:
    """A producer that waits for acks=all."""

    offset: Offset
    value: int
    answer: Callable[[SuiroError | None], None]


class Broker(Life):
    """A broker with its replica of the partition."""

    def be_born(self) -> None:
        super().be_born()
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.follows = NO_LEADER
        self.waiters: list[Waiter] = []
        self._is_syncing = False

    # -- roles ------------------------------------------------------------------------------------

    def take_role(self, state: PartitionState) -> None:
        role = role_of(self.node, self.broker_epoch, self.image.nodes, state, self.log.last_epoch)
        if role is ReplicaRole.LEADER:
            self._lead(state)
        elif role is ReplicaRole.FOLLOWER:
            self._follow(state)
        else:
            self._resign()
            self.follower = None
            if role is ReplicaRole.ABSENT and self.log.log_end > 0:
                self.log.wipe()
                self.high_watermark = self.saved_high_watermark = Offset(0)
                self.world.checker.on_lost(self.node)

    def _lead(self, state: PartitionState) -> None:
        if self.leader is not None and self.leader.state.leader_epoch == state.leader_epoch:
            self._carry_out(self.leader.on_state(state, self.now_ms))
            return
        self._resign()
        self.follower = None
        self.leader = Leader(
            PARTITION,
            self.node,
            state,
            log=self.log,
            high_watermark=self.high_watermark,
            nodes=self.image.nodes,
        )
        self.leader.lag_time_max_ms = self.world.plan.lag_time_max_ms
        self._carry_out(self.leader.start(self._held_end(), self.now_ms))

    def _follow(self, state: PartitionState) -> None:
        self._resign()
        if self.follower is not None and self.follower.leader_epoch == state.leader_epoch:
            self.follower.partition_epoch = state.partition_epoch
            return
        self.follower = Follower(
            state.leader_epoch,
            self.log,
            held_end=self._held_end(),
            high_watermark=self.high_watermark,
        )
        self.follower.partition_epoch = state.partition_epoch
        self.follows = state.leader
        self._open_stream()

    def _resign(self) -> None:
        waiters, self.waiters, self.leader = self.waiters, [], None
        for waiter in waiters:
            waiter.answer(NotLeader(PARTITION, None))

    def _held_end(self) -> Offset:
        return self.log.synced_end if self.world.plan.syncs_first else self.log.log_end

    # -- streams ----------------------------------------------------------------------------------

    def _open_stream(self) -> None:
        if self.follower is None:
            return
        stream = self.streams_out.get(self.follows)
        if stream is None or not stream.is_open:
            leader = self.world.brokers[self.follows]
            if not leader.is_up:
                return
            stream = self.streams_out[self.follows] = Stream(self.world, self, leader)
        self._obey(self.follower.announce(self.now_ms))

    def on_stream_closed(self, stream: Stream) -> None:
        if self.streams_out.get(stream.leader.node) is not stream:
            return
        del self.streams_out[stream.leader.node]
        if self.follower is not None and self.follows == stream.leader.node:
            self.follower.on_stream_closed()
            self.later(self.world.random.randrange(10, 200), self._open_stream)

    def on_follower_gone(self, stream: Stream) -> None:
        self.streams_in.pop(stream.number, None)
        if self.leader is not None:
            self.leader.on_stream_closed(stream.follower.node, stream.number)

    def _newest_stream(self, node: NodeId) -> Stream | None:
        streams = [s for s in self.streams_in.values() if s.follower.node == node]
        return streams[-1] if streams else None

    def _accept(self, stream: Stream) -> None:
        """A node has one stream to this broker: a new one closes those before it."""
        for other in list(self.streams_in.values()):
            if other.follower is stream.follower:
                other.close()
        stream.number = self.world.next_number()
        self.streams_in[stream.number] = stream
        if not stream.is_open:
            self.later(self.world.random.randrange(500), self.on_follower_gone, stream)

    def on_follower_message(self, stream: Stream, message: Any) -> None:
        node = stream.follower.node
        if stream.number < 0:
            self._accept(stream)
        if self.leader is None:
            if isinstance(message, Position):
                stream.to_follower(Refusal(message.leader_epoch))
            return
        if isinstance(message, Position):
            effects = self.leader.on_position(node, stream.number, stream.broker_epoch, message)
        else:
            leader_epoch, held_end = message
            effects = self.leader.on_ack(node, stream.number, leader_epoch, held_end, self.now_ms)
        self._carry_out(effects)

    def on_leader_message(self, stream: Stream, message: Sent | Refusal) -> None:
        if self.follower is None or self.streams_out.get(stream.leader.node) is not stream:
            return
        if isinstance(message, Refusal):
            self.follower.on_refused(self.now_ms)
            return
        effects = self.follower.on_part(message.part, self.now_ms)
        self._obey(effects, message, stream)

    # -- what the leader core wants ---------------------------------------------------------------

    def _carry_out(self, effects: Sequence[Any]) -> None:
        for effect in effects:
            if self.leader is None:
                return
            match effect:
                case HighWatermark(offset):
                    self._on_high_watermark(offset)
                case Ready(node, number):
                    self._push(node, self.streams_in.get(number))
                case ProposeIsr():
                    self._propose(effect)
                case Refuse(node, _, number):
                    stream = self.streams_in.get(number) or self._newest_stream(node)
                    if stream is not None:
                        stream.to_follower(Refusal(self.leader.state.leader_epoch))
                case EpochStarted(leader_epoch):
                    self.world.tell(f"{self.node}: {effect}")
                    known = self.leader.high_watermark
                    self.world.checker.on_high_watermark(self.node, leader_epoch, known)
                case _:
                    self.world.tell(f"{self.node}: {effect}")

    def _on_high_watermark(self, offset: Offset) -> None:
        assert self.leader is not None
        self.high_watermark = offset
        epoch = self.leader.state.leader_epoch
        self.world.checker.on_high_watermark(self.node, epoch, offset)
        due = [waiter for waiter in self.waiters if waiter.offset < offset]
        self.waiters = [waiter for waiter in self.waiters if waiter.offset >= offset]
        for waiter in due:
            self._complete(waiter)

    def _push(self, node: NodeId, stream: Stream | None) -> None:
        leader = self.leader
        if stream is None or not stream.is_open or leader is None:
            return
        while (push := leader.next_push(node)) is not None:
            records: list[Record] = []
            diverging: Divergence | None = None
            match push:
                case Read(start, _):
                    records = self.log.read(start, self.world.part_records())
                case Beat(start):
                    pass
                case Diverging(answer):
                    diverging, start = answer, Offset(0)
            end = Offset(start + len(records))
            part = Part(
                leader.state.leader_epoch,
                start,
                end,
                leader.high_watermark,
                self.log.log_start,
                diverging,
            )
            leader.on_pushed(node, end)
            stream.to_follower(Sent(part, tuple(records)))

    def _propose(self, proposal: ProposeIsr) -> None:
        leader, world = self.leader, self.world

        def known(error: SuiroError | None) -> None:
            if self.leader is leader and leader is not None:
                self._carry_out(leader.on_outcome(proposal, error, self.now_ms))

        def answer(error: SuiroError | None) -> None:
            world.send(CONTROLLER, self.node, self.later, 0, known, error)

        arguments = (self.node, self.broker_epoch, proposal, answer)
        late = 0
        if not world.is_calm and world.random.random() < LATE_PROPOSAL_RATE:
            late = world.random.randrange(4 * PROPOSAL_TIMEOUT_MS)
        world.at(late, world.send, self.node, CONTROLLER, world.controller.on_propose, *arguments)
        self.later(PROPOSAL_TIMEOUT_MS, known, TimedOut("no answer"))

    # -- what the follower core wants -------------------------------------------------------------

    def _obey(
        self,
        effects: Sequence[Any],
        sent: Sent | None = None,
        stream: Stream | None = None,
    ) -> None:
        todo = deque(effects)
        while todo and self.follower is not None:
            follower = self.follower
            effect = todo.popleft()
            match effect:
                case Append():
                    assert sent is not None
                    start = self.log.log_end
                    self.log.append(sent.records)
                    leader_start = sent.part.log_start
                    self.world.checker.on_follower_append(self.node, start, leader_start)
                    todo.extend(follower.on_appended())
                    todo.extend(self._after_append())
                case Announce(position):
                    self._to_leader(position, stream)
                case Ack(held_end):
                    self._to_leader((follower.leader_epoch, held_end), stream)
                case TruncateTo(_, offset, reason):
                    leader = self.world.brokers[self.follows]
                    self.world.tell(f"{self.node}: {effect}")
                    self.world.checker.before_truncate(self.node, offset, leader)
                    self.world.counts[f"truncated: {reason.value}"] += 1
                    self.log.truncate_to(offset)
                    todo.extend(follower.on_truncated(self.now_ms))
                    self.high_watermark = follower.high_watermark
                case RestartAt(_, offset, reason):
                    self.world.counts[f"restarted: {reason.value}"] += 1
                    self.log.restart_at(offset)
                    self.world.checker.on_lost(self.node)
                    todo.extend(follower.on_truncated(self.now_ms))
                    self.high_watermark = follower.high_watermark
                case TrimTo(offset):
                    self.log.trim_to(offset)
                case HighWatermark(offset):
                    self.high_watermark = offset
                    epoch = follower.leader_epoch
                    self.world.checker.on_follower_high_watermark(self.node, epoch, offset)
                case _:
                    raise AssertionError(effect)

    def _to_leader(self, message: Any, stream: Stream | None) -> None:
        stream = stream or self.streams_out.get(self.follows)
        if stream is not None:
            stream.to_leader(message)

    # -- the disk ---------------------------------------------------------------------------------

    def _after_append(self) -> list[Any]:
        """What the core is told at once; where syncs come first it is told by `_on_synced`."""
        if self.world.plan.syncs_first:
            if not self._is_syncing:
                self._is_syncing = True
                sync = self.log.begin_sync()
                self.later(self.world.random.randrange(1, 30), self._on_synced, sync)
            return []
        if self.leader is not None:
            return list(self.leader.on_held(self.log.log_end))
        return [] if self.follower is None else list(self.follower.on_held(self.log.log_end))

    def _on_synced(self, sync: Any) -> None:
        self.log.end_sync(sync)
        self._is_syncing = False
        if self.leader is not None:
            self._carry_out(self.leader.on_held(self.log.synced_end))
        elif self.follower is not None:
            self._obey(self.follower.on_held(self.log.synced_end))
        if self.log.synced_end < self.log.log_end:
            self._after_append()

    def tick(self) -> None:
        if self.world.random.random() < RELAXED_SYNC_RATE:
            self.saved_high_watermark = self.high_watermark
            if not self.world.plan.syncs_first:
                self.log.synced_end = self.log.log_end
        if self.leader is not None:
            self._carry_out(self.leader.tick(self.now_ms))
        elif self.follower is not None:
            if self.follows not in self.streams_out:
                self._open_stream()
            else:
                self._obey(self.follower.tick(self.now_ms))

    # -- clients ----------------------------------------------------------------------------------

    def on_produce(
        self, value: int, acks_all: bool, answer: Callable[[SuiroError | None], None]
    ) -> None:
        leader = self.leader
        try:
            self.lease.check(PARTITION, self.now_ms)
            if leader is None:
                raise NotLeader(PARTITION, None)
            if acks_all:
                leader.check_acks_all(self.world.plan.min_isr)
        except SuiroError as error:
            answer(error)
            return
        offset = self.log.offset_of.get(value)
        if offset is None:
            offset = self.log.log_end
            self.log.append([Record(leader.state.leader_epoch, value)])
            self.world.checker.on_leader_append(self.node, leader.state.leader_epoch)
            if acks_all:
                self.waiters.append(Waiter(offset, value, answer))
            self._carry_out(leader.on_appended(self.now_ms))
            self._carry_out(self._after_append())
        elif acks_all:
            self._complete_or_wait(Waiter(offset, value, answer))
        if not acks_all:
            answer(None)

    def _complete_or_wait(self, waiter: Waiter) -> None:
        if waiter.offset < self.high_watermark:
            self._complete(waiter)
        else:
            self.waiters.append(waiter)

    def _complete(self, waiter: Waiter) -> None:
        leader = self.leader
        assert leader is not None
        try:
            self.lease.check(PARTITION, self.now_ms)
            assert leader.is_committed(Offset(waiter.offset + 1), self.world.plan.min_isr)
        except SuiroError as error:
            waiter.answer(error)
            return
        checker = self.world.checker
        checker.on_ack(self.node, leader.state.leader_epoch, waiter.value, waiter.offset)
        checker.check_copies(waiter.value, waiter.offset, self.world.plan.min_isr)
        waiter.answer(None)

    def on_fetch(
        self, offset: int, known_epoch: int, answer: Callable[[Any], None], *, follower: bool
    ) -> None:
        """Read below the high watermark; the leader also says where that is, if it knows."""
        if not self.lease.holds(self.now_ms):
            return
        if follower and self.follower is not None:
            self._serve_as_follower(offset, known_epoch, answer)
        leader = self.leader
        if leader is None:
            return
        epoch = leader.state.leader_epoch
        if epoch < known_epoch:
            return
        advertised = None
        if offset >= self.high_watermark or self.world.random.random() < 0.5:
            try:
                leader.check_high_watermark()
            except SuiroError:
                self.world.counts["high watermark not known yet"] += 1
                return
            advertised = leader.high_watermark
            self.world.checker.on_advertised(self.node, epoch, advertised)
        answer((epoch, advertised, self._readable(offset)))

    def _serve_as_follower(
        self, offset: int, known_epoch: int, answer: Callable[[Any], None]
    ) -> None:
        assert self.follower is not None
        epoch = self.follower.leader_epoch
        try:
            self.follower.check_high_watermark()
        except SuiroError:
            return
        if known_epoch <= epoch and offset < self.high_watermark:
            answer((epoch, None, self._readable(offset)))

    def _readable(self, offset: int) -> tuple[int, list[Record]]:
        start = Offset(max(offset, self.log.log_start))
        return start, self.log.read(start, max(0, self.high_watermark - start))
