"""The follower's side of replication: one stream per leader broker, opened by the follower.

It announces where each of its logs is, appends what the leader pushes, and acknowledges what it
holds; acks that become due together are sent together.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb
from suiro.cancellation import heed_cancellation
from suiro.model.batch import walk
from suiro.model.error_base import SuiroError
from suiro.model.errors import Unavailable
from suiro.model.ids import LeaderEpoch, Offset, TopicId
from suiro.model.records import PartitionId
from suiro.retry import Backoff
from suiro.transport.methods import BrokerMethods

from cluster.broker.follower import Part
from cluster.broker.replication_epochs import Divergence

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro._proto.common_pb2 import Hello
    from suiro.model.ids import Address, BrokerEpoch, NodeId
    from suiro.transport.api import Stream
    from suiro.transport.framing import Framed

    from cluster.broker.partition import Partition
    from cluster.broker.replication_epochs import Position
    from cluster.host.env import Env

    LeaderStream = Stream[pb.ReplicateRequest, Framed[pb.ReplicateReply]]

log = logging.getLogger("suiro.broker")


class Replicator:
    """One leader broker that this one follows, with whatever partitions it leads at the moment."""

    def __init__(
        self,
        env: Env,
        leader: NodeId,
        address_of: Callable[[NodeId], Address | None],
        hello: Hello,
        broker_epoch: Callable[[], BrokerEpoch | None],
    ) -> None:
        self._env = env
        self._leader = leader
        self._address_of = address_of
        self._hello = hello
        self._broker_epoch = broker_epoch
        self._partitions: dict[PartitionId, Partition] = {}
        self._positions: dict[PartitionId, Position] = {}
        self._acks: dict[PartitionId, tuple[LeaderEpoch, Offset]] = {}
        self._wake = asyncio.Event()
        self._troubled: set[Partition] = set()

    def add(self, partition: Partition) -> None:
        self._partitions[partition.state.id] = partition

    def remove(self, partition: Partition) -> None:
        self._troubled.discard(partition)
        self._partitions.pop(partition.state.id, None)
        self._positions.pop(partition.state.id, None)
        self._acks.pop(partition.state.id, None)

    def announce(self, partition: Partition, position: Position) -> None:
        self._acks.pop(partition.state.id, None)  # an ack from before no longer counts
        self._positions[partition.state.id] = position
        self._wake.set()

    def ack(self, partition: Partition, held_end: Offset) -> None:
        self._acks[partition.state.id] = (partition.state.leader_epoch, held_end)
        self._wake.set()

    async def run(self) -> None:
        backoff = Backoff(self._env.rng)
        while True:
            address = self._address_of(self._leader) if self._partitions else None
            if address is not None:
                try:
                    await self._follow(address, backoff)
                except* SuiroError as errors:
                    log.debug("replication from %d broke: %s", self._leader, errors.exceptions[0])
                heed_cancellation()
            await asyncio.sleep(backoff.next_s())

    async def _follow(self, address: Address, backoff: Backoff) -> None:
        stream = await self._env.transport.open(address, BrokerMethods.REPLICATE)
        self._positions.clear()
        self._acks.clear()
        for partition in list(self._partitions.values()):
            partition.on_stream_open()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(stream), name=f"acks to {self._leader}")
                while (message := await stream.receive()) is not None:
                    backoff.reset()
                    self._take(message)
                raise Unavailable(f"broker {self._leader} ended the stream")
        finally:
            stream.cancel()

    async def _send(self, stream: LeaderStream) -> None:
        request = pb.ReplicateRequest(hello=self._hello, broker_epoch=self._broker_epoch())
        while True:
            self._fill(request)
            await stream.send(request)
            await self._wake.wait()
            self._wake.clear()
            request = pb.ReplicateRequest()

    def _fill(self, request: pb.ReplicateRequest) -> None:
        for (topic_id, number), position in self._positions.items():
            request.positions.add(
                topic_id=topic_id,
                partition=number,
                leader_epoch=position.leader_epoch,
                log_end=position.log_end,
                last_epoch=position.last_epoch,
                log_start=position.log_start,
                partition_epoch=position.partition_epoch or 0,
            )
        for (topic_id, number), (leader_epoch, held_end) in self._acks.items():
            request.acks.add(
                topic_id=topic_id, partition=number, leader_epoch=leader_epoch, held_end=held_end
            )
        self._positions.clear()
        self._acks.clear()

    def _take(self, message: Framed[pb.ReplicateReply]) -> None:
        body = memoryview(message.body)
        start = 0
        for item in message.header.parts:
            data = body[start : start + item.size]
            start += item.size
            partition = self._partitions.get(PartitionId(TopicId(item.topic_id), item.partition))
            if partition is None:
                continue  # given up meanwhile
            if item.error.code:
                log.debug("refused by broker %d: %s", self._leader, item.error.message)
                partition.on_refused()
                continue
            self._take_part(partition, _part(item, data), data)

    def _take_part(self, partition: Partition, part: Part, data: memoryview) -> None:
        """A full or broken disk is this replica's trouble; the others on the stream go on."""
        try:
            partition.on_part(part, data)
        except SuiroError as error:
            if partition not in self._troubled:
                log.warning("%s cannot follow: %s", partition.partition, error)
            self._troubled.add(partition)
            partition.on_refused()
        else:
            self._troubled.discard(partition)


def _part(item: pb.ReplicaPart, data: memoryview) -> Part:
    end = item.base_offset
    for _, header in walk(data):
        end = header.end
    diverging = None
    if item.HasField("diverging"):
        diverging = Divergence(LeaderEpoch(item.diverging.leader_epoch), Offset(item.diverging.end))
    return Part(
        LeaderEpoch(item.leader_epoch),
        Offset(item.base_offset),
        Offset(end),
        Offset(item.high_watermark),
        Offset(item.log_start),
        diverging,
    )
