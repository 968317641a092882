"""Old records go: by the topics' limits, in the background, or because someone asks for it.

The leader alone decides. It moves the start of its log; the start travels to the followers with
the next part, and each lets its own files go. Always: nothing at or above the high watermark goes,
and whoever still reads below the new start is told where the log begins now (OffsetOutOfRange).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_UNCOMMITTED
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest, OffsetOutOfRange
from suiro.model.ids import Offset, TopicPartition
from suiro.model.topics import is_internal

if TYPE_CHECKING:
    from suiro.transport.api import Peer

    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from cluster.host.clock import Clock

log = logging.getLogger("suiro.broker")

CHECK_S: Final = 60.0
"""How late a segment may go; limits are hours and days."""

EVERYTHING: Final = -1
"""As an offset to delete before: all that is committed."""


class Retention:
    """`run` is a task of the broker; `delete_records` serves the rpc of that name."""

    def __init__(self, replicas: Replicas, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock

    async def run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            for partition in self._replicas.all():
                self.check(partition)
                await asyncio.sleep(0)  # thousands of them shall not hold the loop up

    def check(self, partition: Partition) -> None:
        """Let go what the topic's limits allow."""
        if not partition.leads or not partition.log.config.deletes:
            return
        before = partition.log.log_start
        try:
            start = partition.log.apply_retention(partition.high_watermark, self._clock.now_ms())
        except SuiroError as error:
            log.warning("%s: old segments stay: %s", partition.partition, error)
            return
        if start > before:
            log.info("%s: the log starts at %d now, was %d", partition.partition, start, before)
            partition.tick()  # tells the followers

    async def delete_records(
        self, request: pb.DeleteRecordsRequest, _peer: Peer
    ) -> pb.DeleteRecordsReply:
        where = TopicPartition(request.topic, request.partition)
        if is_internal(where.topic):
            raise InvalidRequest(f"{where.topic} is not for people to trim")
        partition = self._replicas.get(where)
        high_watermark = partition.latest(READ_UNCOMMITTED)
        if not partition.log.config.deletes:
            raise InvalidRequest(f"{where.topic} is compacted: its cleanup.policy deletes nothing")
        before = high_watermark if request.before == EVERYTHING else Offset(request.before)
        if not 0 <= before <= high_watermark:
            start = partition.log.log_start
            raise OffsetOutOfRange(where, before, start, high_watermark)
        partition.log.trim_to(before)
        partition.tick()
        return pb.DeleteRecordsReply(log_start=partition.log.log_start)
