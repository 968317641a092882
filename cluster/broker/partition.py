"""One partition on this broker: its log, its role, and who waits for it.

Belongs to the loop's thread. Appends and reads go straight to the log (the page cache answers in
microseconds); only syncs run elsewhere, through `Syncer`. Readers are told when more became visible
by callbacks that may not block.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro._proto.common_pb2 import READ_COMMITTED
from suiro.model.batch import walk
from suiro.model.errors import (
    FencedLeaderEpoch,
    NotLeader,
    OffsetOutOfRange,
    TimedOut,
    UnknownLeaderEpoch,
)
from suiro.model.ids import NO_LEADER, LeaderEpoch, Offset
from suiro.model.limits import PRODUCERS_WAITING_MAX

from cluster.broker.leader import Leader
from cluster.broker.replication_effects import HighWatermark
from cluster.broker.visible import committed_only
from cluster.host.waitlist import Waitlist
from cluster.log.config import Flush

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from suiro._proto.common_pb2 import Isolation
    from suiro.model.batch import Buffer
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import NodeId, TopicPartition
    from suiro.model.image import Node
    from suiro.model.records import PartitionState

    from cluster.broker.replication_effects import LeaderEffect
    from cluster.log.partition_log import AppendInfo, PartitionLog


@dataclass(frozen=True, slots=True)
class Run:
    """Batches for a reader, and where it goes on; what was left out lies before `next_offset`."""

    batches: Sequence[Buffer]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start: int

    @property
    def is_empty(self) -> bool:
        return not self.batches


class Partition:
    """A log and what this broker is to it."""

    def __init__(
        self,
        partition: TopicPartition,
        node: NodeId,
        log: PartitionLog,
        high_watermark: Offset,
        nodes: Mapping[NodeId, Node],
    ) -> None:
        self.partition = partition
        self.log = log
        self.high_watermark = high_watermark
        self.min_isr = 1
        self._node = node
        self._nodes = nodes
        self._state: PartitionState | None = None
        self._leader: Leader | None = None
        self._readers: dict[Callable[[], None], None] = {}
        self._producers: Waitlist[asyncio.Future[None]] = Waitlist(PRODUCERS_WAITING_MAX)

    # -- role -------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        return self._leader is not None

    @property
    def state(self) -> PartitionState | None:
        """What the metadata says of this partition, as far as this broker knows."""
        return self._state

    def on_state(self, state: PartitionState, now_ms: int) -> None:
        """The controller has decided: lead, go on leading, or stop."""
        former, self._state = self._state, state
        if state.leader != self._node:
            self._resign()
        elif former is None or former.leader_epoch != state.leader_epoch or not self._leader:
            self._resign()
            self._leader = Leader(
                self.partition,
                self._node,
                state,
                log=self.log,
                high_watermark=self.high_watermark,
                nodes=self._nodes,
            )
            self._carry_out(self._leader.start(self._held_end(), now_ms))
        else:
            self._carry_out(self._leader.on_state(state, now_ms))
        self._tell_readers()

    def close(self) -> None:
        """No longer here: everyone who waits is told."""
        self._resign()
        self._tell_readers()

    def _resign(self) -> None:
        self._leader = None
        for waiter in self._producers.drain():
            if not waiter.done():
                waiter.set_exception(self._not_leader())

    def _not_leader(self) -> NotLeader:
        leader = self._state.leader if self._state is not None else NO_LEADER
        return NotLeader(self.partition, None if leader in {NO_LEADER, self._node} else leader)

    def _leading(self) -> Leader:
        if self._leader is None:
            raise self._not_leader()
        return self._leader

    # -- writing ----------------------------------------------------------------------------------

    def append(self, batches: Buffer, *, acks: int, now_ms: int) -> AppendInfo:
        """Append as the leader; the answer is due once `wait_committed` lets it through."""
        leader = self._leading()
        if acks == -1:
            leader.check_acks_all(self.min_isr)
        info = self.log.append_as_leader(batches, leader.state.leader_epoch, now_ms)
        if info.appended:
            self._carry_out(leader.on_appended(now_ms))
            if self.log.config.flush is not Flush.ACK:
                self._carry_out(leader.on_held(self.log.log_end))
        return info

    async def wait_committed(self, end: Offset, timeout_s: float) -> None:
        """Return once every in-sync replica holds everything below `end`."""
        if self.high_watermark >= end:
            return
        self._leading()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        deadline_ms = (loop.time() + timeout_s) * 1000
        ticket = self._producers.park(waiter, offset=end, deadline_ms=deadline_ms)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter
        except TimeoutError:
            raise TimedOut(
                f"{self.partition}: not held by all in-sync replicas within {timeout_s:g} s"
            ) from None
        finally:
            self._producers.drop(ticket)

    def on_synced(self) -> None:
        """The log has been synced up to its `synced_end`."""
        if self._leader is not None and self.log.config.flush is Flush.ACK:
            self._carry_out(self._leader.on_held(self.log.synced_end))

    def on_storage_failed(self, error: SuiroError) -> None:
        """The disk gave up: nobody may be told that anything is held."""
        for waiter in self._producers.drain():
            if not waiter.done():
                waiter.set_exception(error)

    def _held_end(self) -> Offset:
        return self.log.synced_end if self.log.config.flush is Flush.ACK else self.log.log_end

    def _carry_out(self, effects: list[LeaderEffect]) -> None:
        for effect in effects:
            if isinstance(effect, HighWatermark):
                self.high_watermark = effect.offset
                for waiter in self._producers.release(effect.offset):
                    if not waiter.done():
                        waiter.set_result(None)
                self._tell_readers()

    # -- reading ----------------------------------------------------------------------------------

    def read(self, offset: int, bytes_max: int, isolation: Isolation) -> Run:
        """Whole batches from the one that contains `offset`, as far as the reader may see."""
        self._leading()
        stable = self.log.last_stable_offset(self.high_watermark)
        until = stable if isolation == READ_COMMITTED else self.high_watermark
        start = self.log.log_start
        if not start <= offset <= self.high_watermark:
            raise OffsetOutOfRange(self.partition, offset, start, self.high_watermark)
        if offset >= until:
            return Run((), offset, self.high_watermark, stable, start)
        data = self.log.read(Offset(offset), bytes_max, until)
        end = _end_of(data)
        batches: Sequence[Buffer] = (data,)
        if isolation == READ_COMMITTED:
            batches = committed_only(data, self.log.aborted(Offset(offset), end))
        return Run(batches, end, self.high_watermark, stable, start)

    def latest(self, isolation: Isolation) -> Offset:
        """Where a reader that wants only what is new begins."""
        self._leading()
        if isolation == READ_COMMITTED:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    def check_epoch(self, last_epoch: int) -> None:
        """Refuse a reader whose last record is of an epoch that this log does not know."""
        current = self._leading().state.leader_epoch
        if last_epoch > current:
            raise UnknownLeaderEpoch(f"{self.partition}: epoch {last_epoch}, here it is {current}")
        if last_epoch >= 0 and self.log.end_offset_for(LeaderEpoch(last_epoch)) is None:
            raise FencedLeaderEpoch(f"{self.partition}: epoch {last_epoch} is unknown here")

    def watch(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever more may be read, or the role has changed."""
        self._readers[wake] = None

    def unwatch(self, wake: Callable[[], None]) -> None:
        self._readers.pop(wake, None)

    def _tell_readers(self) -> None:
        for wake in tuple(self._readers):
            wake()


def _end_of(data: bytes) -> Offset:
    """The offset after a run of batches."""
    end = 0
    for _, header in walk(data):
        end = header.end
    return Offset(end)
