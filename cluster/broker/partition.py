"""One partition on this broker: its log, its role, and who waits for it.

Belongs to the loop's thread. What to do is decided by the pure cores (`leader`, `follower`); this
is their shell: it carries their effects out on the log and hands the rest to `Neighbours`. Appends
and reads go straight to the log (the page cache answers in microseconds); only syncs run elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from suiro._proto.common_pb2 import READ_COMMITTED
from suiro.model.errors import (
    CorruptBatch,
    NotLeader,
    OffsetNotAvailable,
    OffsetOutOfRange,
    TimedOut,
    UnknownLeaderEpoch,
)
from suiro.model.ids import NO_LEADER, NO_LEADER_EPOCH, LeaderEpoch, Offset
from suiro.model.limits import PRODUCERS_WAITING_MAX

from cluster.broker.commit_waiters import CommitWaiters
from cluster.broker.follower import Follower, Part
from cluster.broker.leader import Leader
from cluster.broker.offline import may_stay
from cluster.broker.replication_effects import (
    Ack,
    Announce,
    Append,
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
from cluster.broker.run import Run, check_position, end_of
from cluster.broker.situation import Outgoing
from cluster.broker.visible import visible_batches
from cluster.log.config import Flush

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro._proto.common_pb2 import Isolation
    from suiro.model.batch import Buffer
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import BrokerEpoch, NodeId, TopicPartition
    from suiro.model.records import PartitionState

    from cluster.broker.replication_effects import FollowerEffect, LeaderEffect
    from cluster.broker.replication_epochs import Position
    from cluster.broker.situation import Situation
    from cluster.log.partition_log import AppendInfo, PartitionLog


class Partition:
    """A log and what this broker is to it."""

    def __init__(
        self,
        partition: TopicPartition,
        situation: Situation,
        log: PartitionLog,
        state: PartitionState,
    ) -> None:
        saved = log.saved_high_watermark or log.log_start
        self.partition = partition
        self.log = log
        self.high_watermark = Offset(min(max(saved, log.log_start), log.log_end))
        self.min_isr = 1
        self.is_damaged = False
        """Whether a bad place was met in the log, which is never handed out."""
        self.state = state
        self._at = situation
        self._leader: Leader | None = None
        self._follower: Follower | None = None
        self._readers: dict[Callable[[], None], Isolation] = {}
        self._producers = CommitWaiters(PRODUCERS_WAITING_MAX)

    # -- role -------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        return self._leader is not None

    @property
    def follows(self) -> NodeId | None:
        """The leader that this replica follows, if it does."""
        return self.state.leader if self._follower is not None else None

    @property
    def has_followers(self) -> bool:
        return self._leader is not None and len(self.state.replicas) > 1

    def on_state(self, state: PartitionState, broker_epoch: BrokerEpoch) -> None:
        """The controller has decided: lead, follow, go on, or wait."""
        at, now_ms = self._at, self._now_ms()
        former, self.state = self.state, state
        role = role_of(at.node, broker_epoch, at.nodes, state, self.log.last_epoch)
        same_epoch = former.leader_epoch == state.leader_epoch
        if role is ReplicaRole.LEADER and self._leader is not None and same_epoch:
            self._lead(self._leader.on_state(state, now_ms))
        elif role is ReplicaRole.FOLLOWER and self._follower is not None and same_epoch:
            self._follower.partition_epoch = state.partition_epoch
        else:
            self._resign()
            self._take_role(role, now_ms)
        self._tell_readers()

    def _take_role(self, role: ReplicaRole, now_ms: int) -> None:
        if self._at.events.on:
            self._at.events.role(self, role)
        if self._held_end() < self.log.log_end:
            self._at.neighbours.appended(self)  # what a crash left unsynced counts once it is
        if role is ReplicaRole.LEADER:
            self._leader = Leader(
                self.partition,
                self._at.node,
                self.state,
                log=self.log,
                high_watermark=self.high_watermark,
                nodes=self._at.nodes,
            )
            self._lead(self._leader.start(self._held_end(), now_ms))
        elif role is ReplicaRole.FOLLOWER:
            self._follower = Follower(
                self.state.leader_epoch,
                self.log,
                held_end=self._held_end(),
                high_watermark=self.high_watermark,
            )
            self._follower.partition_epoch = self.state.partition_epoch
            self._follow(self._follower.announce(now_ms), b"")

    def solicit(self) -> None:
        """It leads the epoch that it led before: its followers do not know that it began anew."""
        if self._leader is not None:
            self._lead(self._leader.solicit())

    def close(self) -> None:
        """No longer here: everyone who waits is told."""
        self._resign()
        self._tell_readers()

    def tick(self) -> None:
        now_ms = self._now_ms()
        if self._leader is not None:
            if not self._at.lease.holds(now_ms):
                self._turn_away()  # cut off: there is nobody else to tell those who wait
                self._tell_readers()
            self._lead(self._leader.tick(now_ms))
        elif self._follower is not None:
            self._follow(self._follower.tick(now_ms), b"")

    def _resign(self) -> None:
        self._leader = self._follower = None
        self._turn_away()

    def _turn_away(self) -> None:
        """Whoever waits for a commit has to ask another broker what became of it."""
        self._producers.fail(self._not_leader)

    def _not_leader(self) -> NotLeader:
        leader = self.state.leader
        return NotLeader(self.partition, None if leader in {NO_LEADER, self._at.node} else leader)

    def _leading(self) -> Leader:
        """The leader core, if this broker may act as the leader at this moment."""
        if self._leader is None:
            raise self._not_leader()
        self._at.lease.check(self.partition, self._now_ms())
        return self._leader

    # -- writing ----------------------------------------------------------------------------------

    def append(self, batches: Buffer, *, acks: int) -> AppendInfo:
        """Append as the leader; the answer is due once `wait_committed` lets it through."""
        leader = self._leading()
        if acks == -1:
            leader.check_acks_all(self.min_isr)
        info = self.log.append_as_leader(batches, self.state.leader_epoch, self._at.clock.now_ms())
        return self._appended(leader, info)

    def append_marker(self, batch: Buffer) -> AppendInfo:
        """The same for the end of a transaction, as its coordinator decided it."""
        leader = self._leading()
        leader.check_acks_all(self.min_isr)
        info = self.log.append_control(batch, self.state.leader_epoch, self._at.clock.now_ms())
        return self._appended(leader, info)

    def _appended(self, leader: Leader, info: AppendInfo) -> AppendInfo:
        if info.appended:
            self._lead(leader.on_appended(self._now_ms()))
            if self.log.config.flush is not Flush.ACK:
                self._lead(leader.on_held(self.log.log_end))
            self._at.neighbours.appended(self)
        return info

    async def wait_committed(
        self, end: Offset, leader_epoch: LeaderEpoch, timeout_s: float
    ) -> None:
        """Return once every in-sync replica, and enough of them, hold everything below `end`; in
        the leader epoch of the append: a later one may have other records there.
        """
        if self.state.leader_epoch == leader_epoch and self.high_watermark < end:
            self._leading()
            await self._producers.wait(
                end,
                timeout_s,
                lambda: TimedOut(
                    f"{self.partition}: not held by all in-sync replicas within {timeout_s:g} s"
                ),
            )
        leader = self._leading()
        if leader.state.leader_epoch != leader_epoch:
            raise self._not_leader()
        leader.check_acks_all(self.min_isr)

    def on_synced(self) -> None:
        """The log has been synced up to its `synced_end`."""
        if self._at.events.on:
            self._at.events.synced(self)
        if self.log.config.flush is not Flush.ACK:
            return
        if self._leader is not None:
            self._lead(self._leader.on_held(self.log.synced_end))
        elif self._follower is not None:
            self._follow(self._follower.on_held(self.log.synced_end), b"")

    def on_storage_failed(self, error: SuiroError) -> None:
        """The disk gave up: nobody may be told that anything is held."""
        self._producers.fail(lambda: error)

    def _held_end(self) -> Offset:
        return self.log.synced_end if self.log.config.flush is Flush.ACK else self.log.log_end

    # -- reading ----------------------------------------------------------------------------------

    def check_reader(self, offset: int, *, nearby: bool) -> None:
        """Refuse a reader, or send it to the leader. With `nearby` a follower in sync serves too;
        what is out of range only the leader can say (row 27).
        """
        if self._leader is not None or self._follower is None or not nearby:
            self._leading()
            return
        self._at.lease.check(self.partition, self._now_ms())
        if self._at.node not in self.state.isr:
            raise self._not_leader()
        self._follower.check_high_watermark()
        if offset < self.log.log_start:
            raise OffsetNotAvailable(f"{self.partition}: follower begins at {self.log.log_start}")

    def read(
        self, offset: int, bytes_max: int, isolation: Isolation, *, nearby: bool = False
    ) -> Run:
        """Whole batches from the one that contains `offset`, as far as the reader may see. A
        follower has nothing yet for a reader that is ahead of the high watermark it has heard of.
        """
        self.check_reader(offset, nearby=nearby)
        stable = self.log.last_stable_offset(self.high_watermark)
        until = stable if isolation == READ_COMMITTED else self.high_watermark
        start = self.log.log_start
        if offset > self.high_watermark:
            if self._leader is None:
                return Run((), offset, self.high_watermark, stable, start)
            self._leader.check_high_watermark()
        if not start <= offset <= self.high_watermark:
            raise OffsetOutOfRange(self.partition, offset, start, self.high_watermark)
        data = self._read_good(Offset(offset), bytes_max, until) if offset < until else b""
        if not data:
            return Run((), offset, self.high_watermark, stable, start)
        end = end_of(data)
        is_committed = isolation == READ_COMMITTED
        aborted = self.log.aborted(Offset(offset), end) if is_committed else ()
        batches = visible_batches(data, aborted)
        last_epoch = self.log.epoch_of(Offset(end - 1))
        return Run(
            batches,
            end,
            self.high_watermark,
            stable,
            start,
            NO_LEADER_EPOCH if last_epoch is None else last_epoch,
        )

    def _read_good(self, offset: Offset, bytes_max: int, until: Offset) -> bytes:
        """A bad batch is never handed out. As long as others have it, the reader is sent there."""
        try:
            return self.log.read(offset, bytes_max, until)
        except CorruptBatch:
            if may_stay(self._at.node, self.state):
                raise
            raise NotLeader(self.partition, None) from None

    def latest(self, isolation: Isolation) -> Offset:
        """Where a reader that wants only what is new begins."""
        self._leading().check_high_watermark()
        if isolation == READ_COMMITTED:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    def check_position(self, offset: int, last_epoch: int) -> None:
        """Refuse a reader who comes from a log that parted from this one before its position.

        `last_epoch` is the leader epoch of the record before `offset`, -1 if the reader cannot say.
        """
        current = self.state.leader_epoch
        if last_epoch > current:
            raise UnknownLeaderEpoch(f"{self.partition}: epoch {last_epoch}, here it is {current}")
        if self._leader is not None:  # a follower may just not have it yet
            check_position(self.log, offset, last_epoch)

    def watch(self, wake: Callable[[], None], isolation: Isolation) -> None:
        """Call `wake` whenever more may be read, or the role has changed."""
        self._readers[wake] = isolation

    def unwatch(self, wake: Callable[[], None]) -> None:
        self._readers.pop(wake, None)

    def _tell_readers(self) -> None:
        for wake in tuple(self._readers):
            wake()

    # -- as a leader: what followers say ----------------------------------------------------------

    def on_position(
        self, node: NodeId, stream: int, broker_epoch: BrokerEpoch, position: Position
    ) -> None:
        if self._leader is None:
            self._at.neighbours.refuse(node, stream, self, self._not_leader())
        else:
            self._lead(self._leader.on_position(node, stream, broker_epoch, position))

    def on_ack(self, node: NodeId, stream: int, leader_epoch: int, held_end: Offset) -> None:
        if self._leader is not None:
            self._lead(self._leader.on_ack(node, stream, leader_epoch, held_end, self._now_ms()))

    def on_stream_closed(self, node: NodeId, stream: int) -> None:
        if self._leader is not None:
            self._leader.on_stream_closed(node, stream)

    def on_outcome(self, proposal: ProposeIsr, error: SuiroError | None) -> None:
        """What became of an ISR that this leader proposed."""
        if self._leader is not None:
            self._lead(self._leader.on_outcome(proposal, error, self._now_ms()))

    def next_for(self, node: NodeId, part_bytes: int | None = None) -> Outgoing | None:
        """What to send to a follower now; it counts as sent. With `part_bytes` no more batches
        than that, or one; and none at all if it is 0.
        """
        leader = self._leader
        push = None if leader is None else leader.next_push(node)
        if leader is None or push is None:
            return None
        data, diverging, start = b"", None, self.log.log_end
        match push:
            case Diverging(divergence):
                diverging = divergence
            case Read() if part_bytes == 0:
                return None
            case Read(start, bytes_max):
                bytes_max = min(bytes_max, part_bytes or bytes_max)
                data = self._at.recent.read(self.log, self.state.leader_epoch, start, bytes_max)
            case _:
                start = push.start
        leader.on_pushed(node, end_of(data) if data else start)
        return Outgoing(
            self.state.leader_epoch,
            start,
            data,
            leader.high_watermark,
            self.log.log_start,
            diverging,
        )

    def has_more_for(self, node: NodeId) -> bool:
        """Whether `next_for` has something now."""
        return self._leader is not None and self._leader.next_push(node) is not None

    def is_catching_up(self, node: NodeId) -> bool:
        return self._leader is not None and self._leader.is_catching_up(node)

    def is_being_added(self, node: NodeId) -> bool:
        return self._leader is not None and self._leader.is_being_added(node)

    def _lead(self, effects: list[LeaderEffect]) -> None:
        neighbours = self._at.neighbours
        for effect in effects:
            match effect:
                case HighWatermark(offset):
                    self._raise_high_watermark(offset)
                case Ready(node, stream):
                    neighbours.ready(node, stream, self)
                case Refuse(node, error, stream):
                    neighbours.refuse(node, stream, self, error)
                case ProposeIsr():
                    neighbours.propose(self, effect)
                case EpochStarted() | IsrChanged():
                    neighbours.event(self, effect)
                case _:
                    assert_never(effect)

    # -- as a follower: what the leader says ------------------------------------------------------

    def on_stream_open(self) -> None:
        """There is a new stream to the leader: say where this log is."""
        if self._follower is not None:
            self._follower.on_stream_closed()
            self._follow(self._follower.announce(self._now_ms()), b"")

    def on_part(self, part: Part, data: Buffer) -> None:
        if self._follower is not None:
            self._follow(self._follower.on_part(part, self._now_ms()), data)

    def on_refused(self) -> None:
        """The leader did not take what this replica said, or asks it to say it again."""
        if self._follower is not None:
            self._follower.on_refused(self._now_ms())

    def _follow(self, effects: list[FollowerEffect], data: Buffer) -> None:
        neighbours = self._at.neighbours
        for effect in effects:
            match effect:
                case Announce(position):
                    neighbours.announce(self, position)
                case Append():
                    self._append_as_follower(data)
                case Ack(held_end):
                    neighbours.ack(self, held_end)
                case HighWatermark(offset):
                    self._raise_high_watermark(offset)
                case TrimTo(offset):
                    self.log.trim_to(offset)
                case TruncateTo() | RestartAt():
                    self._cut(effect)
                case _:
                    assert_never(effect)

    def _append_as_follower(self, data: Buffer) -> None:
        assert self._follower is not None
        self.log.append_as_follower(data, self._at.clock.now_ms())
        self._at.neighbours.appended(self)
        self._follow(self._follower.on_appended(), b"")
        if self.log.config.flush is not Flush.ACK:
            self._follow(self._follower.on_held(self.log.log_end), b"")

    def _cut(self, effect: TruncateTo | RestartAt) -> None:
        assert self._follower is not None
        self._at.neighbours.event(self, effect)
        if isinstance(effect, TruncateTo):
            self.log.truncate_to(effect.offset, self._at.clock.now_ms())
        else:
            self.log.restart_at(effect.offset)
        self.high_watermark = Offset(min(self.high_watermark, self.log.log_end))
        self._follow(self._follower.on_truncated(self._now_ms()), b"")

    def _raise_high_watermark(self, offset: Offset) -> None:
        before, self.high_watermark = self.high_watermark, offset
        if self._at.events.on:
            self._at.events.effect(self, HighWatermark(offset))
        self._producers.release(offset)
        if self._readers:
            self._tell_of_more(before)

    def _tell_of_more(self, before: Offset) -> None:
        """The high watermark was `before`. What it passes that belongs to an open transaction is
        nothing to those who read committed records.
        """
        was_stable = self.log.last_stable_offset(before)
        more_stable = self.log.last_stable_offset(self.high_watermark) > was_stable
        for wake, isolation in tuple(self._readers.items()):
            if more_stable or isolation != READ_COMMITTED:
                wake()

    def _now_ms(self) -> int:
        return int(self._at.clock.monotonic_ms())
