"""Produce: append what arrived, then answer once it is held as widely as was asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest
from suiro.model.ids import Offset, TopicPartition
from suiro.model.limits import PRODUCE_IN_FLIGHT_MAX, PRODUCE_TIMEOUT_MS_MAX
from suiro.transport.wire_errors import error_to_proto

if TYPE_CHECKING:
    from suiro.model.ids import LeaderEpoch
    from suiro.transport.api import Peer, Stream
    from suiro.transport.framing import Framed

    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas

    ProduceStream = Stream[pb.ProduceReply, Framed[pb.ProduceRequest]]

ACKS_ALL = -1


@dataclass(frozen=True, slots=True)
class _Appended:
    """A part that is in the log; where, and what its answer waits for."""

    partition: Partition
    base_offset: Offset
    end: Offset
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class _Due:
    """A request that was appended and is to be answered."""

    header: pb.ProduceRequest
    outcomes: list[_Appended | SuiroError]


class ProduceHandler:
    """Serves Produce and ProduceStream."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    async def produce(self, request: Framed[pb.ProduceRequest], _peer: Peer) -> pb.ProduceReply:
        return await self._answer(request.header, self._append_all(request))

    async def produce_stream(self, stream: ProduceStream, _peer: Peer) -> None:
        """Append in the order of arrival; answer in that order too, each when it is due."""
        due: asyncio.Queue[_Due | None] = asyncio.Queue(PRODUCE_IN_FLIGHT_MAX)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_answers(stream, due), name="produce answers")
            request = await stream.receive()
            while request is not None:
                # The next one arrives while this one is written to its file.
                following = tasks.create_task(stream.receive(), name="produce request")
                await asyncio.sleep(0)
                await due.put(_Due(request.header, self._append_all(request)))
                request = await following
            await due.put(None)

    async def _send_answers(self, stream: ProduceStream, due: asyncio.Queue[_Due | None]) -> None:
        while (item := await due.get()) is not None:
            await stream.send(await self._answer(item.header, item.outcomes))

    def _append_all(self, request: Framed[pb.ProduceRequest]) -> list[_Appended | SuiroError]:
        header = request.header
        if header.acks not in {ACKS_ALL, 0, 1}:
            raise InvalidRequest(f"acks is {header.acks}; it must be 0, 1 or -1 (all)")
        if sum(part.size for part in header.parts) != len(request.body):
            raise InvalidRequest("the sizes of the parts do not add up to the bytes sent")
        body = memoryview(request.body)
        outcomes: list[_Appended | SuiroError] = []
        start = 0
        for part in header.parts:
            outcomes.append(self._append(header, part, body[start : start + part.size]))
            start += part.size
        return outcomes

    def _append(
        self, header: pb.ProduceRequest, part: pb.ProducePart, data: memoryview
    ) -> _Appended | SuiroError:
        try:
            partition = self._replicas.get(TopicPartition(part.topic, part.partition))
            self._replicas.check_writer(partition, header.owner_epoch, part.append_at)
            info = partition.append(data, acks=header.acks)
        except SuiroError as error:
            return error
        return _Appended(partition, info.base_offset, info.end, partition.state.leader_epoch)

    async def _answer(
        self, header: pb.ProduceRequest, outcomes: list[_Appended | SuiroError]
    ) -> pb.ProduceReply:
        timeout_s = min(header.timeout_ms or PRODUCE_TIMEOUT_MS_MAX, PRODUCE_TIMEOUT_MS_MAX) / 1000
        results = []
        for outcome in outcomes:
            try:
                if isinstance(outcome, SuiroError):
                    raise outcome
                if header.acks == ACKS_ALL:
                    await outcome.partition.wait_committed(
                        outcome.end, outcome.leader_epoch, timeout_s
                    )
                base = outcome.base_offset if header.acks else -1
                results.append(pb.ProduceResult(base_offset=base, log_append_time_ms=-1))
            except SuiroError as error:
                results.append(pb.ProduceResult(error=error_to_proto(error), base_offset=-1))
        hello = self._replicas.hello_reply() if header.HasField("hello") else None
        return pb.ProduceReply(hello=hello, results=results)
