"""The leader's side of replication: one stream per follower broker, all partitions on it.

Whatever was appended while a message was on its way goes into the next one together: small appends
leave at once when nothing is in flight and are coalesced when something is. In-sync replicas are
served before those that are catching up; replicas that a reassignment adds get what the throttle
allows, one partition after the other, and delay nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import ClusterIdMismatch, InvalidRequest
from suiro.model.ids import (
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    PartitionEpoch,
    TopicId,
)
from suiro.model.limits import MIB
from suiro.model.records import PartitionId
from suiro.transport.framing import Framed
from suiro.transport.wire_errors import error_to_proto

from cluster.broker.replication_epochs import Position
from cluster.broker.replication_progress import NO_STREAM
from cluster.broker.throttle import Throttle, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.batch import Buffer
    from suiro.transport.api import Peer, Stream

    from cluster.broker.partition import Partition
    from cluster.broker.situation import Outgoing
    from cluster.host.clock import Clock

    ReplicaStream = Stream[Framed[pb.ReplicateReply], pb.ReplicateRequest]

log = logging.getLogger("suiro.broker")

MESSAGE_BYTES: Final = 4 * MIB
"""No more partitions are added to a message that has grown beyond this."""

RETRY_S: Final = 1.0


class ReplicationSender:
    """Serves Replicate, and is told by the partitions when there is something to send."""

    def __init__(
        self, cluster_id: str, find: Callable[[PartitionId], Partition | None], clock: Clock
    ) -> None:
        self.throttle = Throttle()
        self._cluster_id = cluster_id
        self._find = find
        self._clock = clock
        self._streams: dict[NodeId, _FollowerStream] = {}
        self._accepted = 0

    def ready(self, node: NodeId, stream: int, partition: Partition) -> None:
        served = self._streams.get(node)
        if served is not None and served.number == stream:
            served.ready(partition)

    def refuse(self, node: NodeId, stream: int, partition: Partition, error: SuiroError) -> None:
        served = self._streams.get(node)
        if served is not None and stream in {served.number, NO_STREAM}:
            served.refuse(partition, error)

    def leads(self, partition: Partition) -> None:
        """Followers may have heard of it before we did, and announced themselves already."""
        for stream in self._streams.values():
            stream.take_early(partition)

    async def replicate(self, stream: ReplicaStream, _peer: Peer) -> None:
        first = await stream.receive()
        if first is None or not first.HasField("hello"):
            raise InvalidRequest("the first message of Replicate must have a hello")
        if first.hello.cluster_id != self._cluster_id:
            raise ClusterIdMismatch(
                f"this is cluster {self._cluster_id}, the follower is of {first.hello.cluster_id}"
            )
        self._accepted += 1
        node = NodeId(first.hello.node_id)
        follower = _FollowerId(node, self._accepted, BrokerEpoch(first.broker_epoch))
        served = _FollowerStream(stream, follower, self._find, Turn(self.throttle), self._clock)
        former = self._streams.get(node)
        if former is not None:
            former.supersede()
        self._streams[node] = served
        try:
            await served.run(first)
        finally:
            if self._streams.get(node) is served:
                del self._streams[node]


@dataclass(frozen=True, slots=True)
class _FollowerId:
    """Who is at the other end, and the number of its stream."""

    node: NodeId
    stream: int
    broker_epoch: BrokerEpoch


class _FollowerStream:
    """One follower broker, while its stream lasts."""

    def __init__(
        self,
        stream: ReplicaStream,
        follower: _FollowerId,
        find: Callable[[PartitionId], Partition | None],
        turn: Turn,
        clock: Clock,
    ) -> None:
        self._stream = stream
        self._node = follower.node
        self.number = follower.stream
        self._broker_epoch = follower.broker_epoch
        self._find = find
        self._turn = turn
        self._clock = clock
        self._held_back: dict[Partition, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ready: dict[Partition, None] = {}
        self._refused: deque[pb.ReplicaPart] = deque()
        self._wake = asyncio.Event()
        self._seen: dict[Partition, None] = {}
        self._early: dict[PartitionId, pb.ReplicaPosition] = {}

    def ready(self, partition: Partition) -> None:
        self._ready[partition] = None
        self._wake.set()

    def refuse(self, partition: Partition, error: SuiroError) -> None:
        state = partition.state
        self._refused.append(
            pb.ReplicaPart(
                topic_id=state.topic_id,
                partition=state.partition,
                leader_epoch=state.leader_epoch,
                error=error_to_proto(error),
            )
        )
        self._wake.set()

    def supersede(self) -> None:
        """The follower has opened another stream: what is sent from now on belongs on that."""
        self._ready.clear()
        self._held_back.clear()
        self._refused.clear()
        self._stream.cancel()

    async def run(self, first: pb.ReplicateRequest) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(self._send_forever(), name=f"feed {self._node}")
                request: pb.ReplicateRequest | None = first
                while request is not None:
                    self._take(request)
                    request = await self._stream.receive()
                sending.cancel()
        except* SuiroError as errors:
            raise errors.exceptions[0] from None
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for partition in self._seen:
                partition.on_stream_closed(self._node, self.number)

    def _take(self, request: pb.ReplicateRequest) -> None:
        for ack in request.acks:
            partition = self._find(PartitionId(TopicId(ack.topic_id), ack.partition))
            if partition is not None:
                held = Offset(ack.held_end)
                partition.on_ack(self._node, self.number, ack.leader_epoch, held)
        for item in request.positions:
            partition_id = PartitionId(TopicId(item.topic_id), item.partition)
            partition = self._find(partition_id)
            if partition is None or partition.state.leader_epoch < item.leader_epoch:
                self._early[partition_id] = item  # our metadata are behind
            else:
                self._take_position(partition, item)

    def take_early(self, partition: Partition) -> None:
        item = self._early.get(partition.state.id)
        if item is not None and item.leader_epoch <= partition.state.leader_epoch:
            del self._early[partition.state.id]
            self._take_position(partition, item)

    def _take_position(self, partition: Partition, item: pb.ReplicaPosition) -> None:
        self._seen[partition] = None
        position = Position(
            LeaderEpoch(item.leader_epoch),
            Offset(item.log_start),
            Offset(item.log_end),
            LeaderEpoch(item.last_epoch),
            PartitionEpoch(item.partition_epoch),
        )
        partition.on_position(self._node, self.number, self._broker_epoch, position)

    async def _send_forever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._ready or self._refused:
                message = self._next_message()
                if not message.header.parts:
                    break
                await self._stream.send(message)

    def _next_message(self) -> Framed[pb.ReplicateReply]:
        parts = list(self._refused)
        self._refused.clear()
        payload: list[Buffer] = []
        size = 0
        waiting, self._ready = self._ready, {}
        for partition in sorted(waiting, key=lambda p: p.is_catching_up(self._node)):
            if size >= MESSAGE_BYTES:
                self._ready[partition] = None
                continue
            outgoing = self._readable(partition)
            if outgoing is None:
                continue
            parts.append(_part(partition, outgoing))
            if outgoing.data:
                payload.append(outgoing.data)
                size += len(outgoing.data)
            if partition.has_more_for(self._node):
                self._ready[partition] = None
        return Framed(pb.ReplicateReply(parts=parts), payload)

    def _readable(self, partition: Partition) -> Outgoing | None:
        """A log with a bad place is its own trouble (P15); the others on the stream go on."""
        try:
            return self._next_of(partition)
        except SuiroError as error:
            log.warning("%s cannot be sent on: %s", partition.partition, error)
            return None

    def _next_of(self, partition: Partition) -> Outgoing | None:
        if not partition.is_being_added(self._node):
            return partition.next_for(self._node)
        now_ms = self._clock.monotonic_ms()
        wait_ms = self._turn.wait_ms(now_ms)
        outgoing = partition.next_for(self._node, 0 if wait_ms else self._turn.part_bytes)
        if outgoing is None and wait_ms:
            self._hold_back(partition, wait_ms)
        elif outgoing is not None and outgoing.data:
            self._turn.spend(len(outgoing.data), now_ms)
        return outgoing

    def _hold_back(self, partition: Partition, wait_ms: float) -> None:
        """Its turn comes; until then others are served."""
        self._held_back[partition] = None
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait_s = min(wait_ms / 1000, RETRY_S)  # the rate may be raised meanwhile
            self._timer = loop.call_later(wait_s, self._begin_turn)

    def _begin_turn(self) -> None:
        self._timer = None
        self._ready = {**self._held_back, **self._ready}
        self._held_back.clear()
        self._wake.set()


def _part(partition: Partition, outgoing: Outgoing) -> pb.ReplicaPart:
    state = partition.state
    part = pb.ReplicaPart(
        topic_id=state.topic_id,
        partition=state.partition,
        leader_epoch=outgoing.leader_epoch,
        base_offset=outgoing.start,
        size=len(outgoing.data),
        high_watermark=outgoing.high_watermark,
        log_start=outgoing.log_start,
    )
    if outgoing.diverging is not None:
        part.diverging.leader_epoch = outgoing.diverging.leader_epoch
        part.diverging.end = outgoing.diverging.end
    return part
