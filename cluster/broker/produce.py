"""Produce: append what arrived, then answer once it is held as widely as was asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro.model.batch import walk
from suiro.model.error_base import SuiroError
from suiro.model.errors import CorruptBatch, InvalidRequest
from suiro.model.ids import Offset, TopicPartition
from suiro.model.limits import PRODUCE_IN_FLIGHT_MAX, PRODUCE_TIMEOUT_MS_MAX
from suiro.transport.wire_errors import error_to_proto

from cluster.broker.txn_verify import ArrivedPart

if TYPE_CHECKING:
    from suiro.model.ids import LeaderEpoch
    from suiro.transport.api import Peer, Stream
    from suiro.transport.framing import Framed

    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from cluster.broker.txn_verify import TxnVerifier

    ProduceStream = Stream[pb.ProduceReply, Framed[pb.ProduceRequest]]

ACKS_ALL: Final = -1
LARGE_BYTES: Final = 64 << 10
"""Requests from this size on take so long to write that receiving beside it pays for the task."""


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

    def __init__(self, replicas: Replicas, verifier: TxnVerifier) -> None:
        self._replicas = replicas
        self._verifier = verifier

    async def produce(self, request: Framed[pb.ProduceRequest], _peer: Peer) -> pb.ProduceReply:
        return await self._answer(request.header, await self._append_all(request))

    async def produce_stream(self, stream: ProduceStream, _peer: Peer) -> None:
        """Append in the order of arrival; answer in that order too, each when it is due."""
        due: asyncio.Queue[_Due | None] = asyncio.Queue(PRODUCE_IN_FLIGHT_MAX)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send_answers(stream, due), name="produce answers")
                request = await stream.receive()
                while request is not None:
                    following = None
                    if len(request.body) >= LARGE_BYTES:
                        # The next one arrives while this one is written to its file.
                        following = tasks.create_task(stream.receive(), name="produce request")
                        await asyncio.sleep(0)
                    await due.put(_Due(request.header, await self._append_all(request)))
                    request = await (following or stream.receive())
                await due.put(None)
        except* SuiroError as errors:
            raise errors.exceptions[0] from None

    async def _send_answers(self, stream: ProduceStream, due: asyncio.Queue[_Due | None]) -> None:
        while (item := await due.get()) is not None:
            await stream.send(await self._answer(item.header, item.outcomes))

    async def _append_all(self, request: Framed[pb.ProduceRequest]) -> list[_Appended | SuiroError]:
        header = request.header
        if header.acks not in {ACKS_ALL, 0, 1}:
            raise InvalidRequest(f"acks is {header.acks}; it must be 0, 1 or -1 (all)")
        if sum(part.size for part in header.parts) != len(request.body):
            raise InvalidRequest("the sizes of the parts do not add up to the bytes sent")
        body = memoryview(request.body)
        parts: list[tuple[pb.ProducePart, memoryview]] = []
        start = 0
        for part in header.parts:
            parts.append((part, body[start : start + part.size]))
            start += part.size
        refused = await self._verify(header.transactional_id, parts)
        return [
            refused.get(TopicPartition(part.topic, part.partition))
            or self._append(header, part, data)
            for part, data in parts
        ]

    async def _verify(
        self, transactional_id: str, parts: list[tuple[pb.ProducePart, memoryview]]
    ) -> dict[TopicPartition, SuiroError]:
        """The parts that would open a transaction without the coordinator's knowledge."""
        arrived = []
        for part, data in parts:
            where = TopicPartition(part.topic, part.partition)
            partition = self._replicas.find(where)
            if partition is not None and partition.leads and is_transactional(data):
                arrived.append(ArrivedPart(where, partition.log.producers, data))
        return await self._verifier.refusals(transactional_id, arrived) if arrived else {}

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


def is_transactional(data: memoryview) -> bool:
    """Whether any of the batches is part of a transaction; what is not even a header is not."""
    try:
        return any(header.is_transactional for _, header in walk(data))
    except CorruptBatch:
        return False  # appending it will say what is wrong
