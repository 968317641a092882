"""Fetch: one long poll, or a conversation in which the reader grants credit."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_COMMITTED
from suiro.model.error_base import SuiroError
from suiro.model.errors import OffsetNotAvailable
from suiro.model.ids import TopicPartition
from suiro.model.limits import FETCH_BYTES_MAX, FETCH_CHUNK_BYTES, FETCH_WAIT_MS_MAX
from suiro.transport.framing import Framed
from suiro.transport.wire_errors import error_to_proto

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro._proto.common_pb2 import Isolation
    from suiro.model.batch import Buffer
    from suiro.transport.api import Peer, Stream

    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from cluster.broker.run import Run

    FetchStream = Stream[Framed[pb.FetchStreamReply], pb.FetchStreamRequest]

RECHECK_S: Final = 1.0
AHEAD_S_MAX: Final = 2.0
"""A follower in sync hears of a high watermark within a fraction of this."""


class FetchHandler:
    """Serves Fetch and FetchStream."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    async def fetch(self, request: pb.FetchRequest, _peer: Peer) -> Framed[pb.FetchReply]:
        """Answer when there are `min_bytes`, when a part failed, or after `max_wait_ms`."""
        arrived = asyncio.Event()
        watched = self._watch(request, arrived)
        wait_s = min(request.max_wait_ms, FETCH_WAIT_MS_MAX) / 1000
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    arrived.clear()
                    reply, size, failed = self._read_all(request)
                    if failed or size >= request.min_bytes:
                        return reply
                    await arrived.wait()
        except TimeoutError:
            return self._read_all(request)[0]
        finally:
            for partition in watched:
                partition.unwatch(arrived.set)

    async def fetch_stream(self, stream: FetchStream, _peer: Peer) -> None:
        await _FetchSession(self._replicas, stream).run()

    def _watch(self, request: pb.FetchRequest, arrived: asyncio.Event) -> list[Partition]:
        watched = []
        for part in request.parts:
            partition = self._replicas.find(TopicPartition(part.topic, part.partition))
            if partition is not None:
                partition.watch(arrived.set, request.isolation)
                watched.append(partition)
        return watched

    def _read_all(self, request: pb.FetchRequest) -> tuple[Framed[pb.FetchReply], int, bool]:
        budget = min(request.max_bytes or FETCH_BYTES_MAX, FETCH_BYTES_MAX)
        results: list[pb.FetchResult] = []
        batches: list[Buffer] = []
        total, failed = 0, False
        for part in request.parts:
            limit = min(part.max_bytes or budget, max(budget - total, 1))
            try:
                partition = self._replicas.get(TopicPartition(part.topic, part.partition))
                partition.check_reader(part.offset, nearby=bool(request.rack))
                partition.check_position(part.offset, part.last_epoch)
                nearby = bool(request.rack)
                run = partition.read(part.offset, limit, request.isolation, nearby=nearby)
                if part.offset > run.high_watermark:
                    raise ahead(partition, part.offset)
            except SuiroError as error:
                results.append(pb.FetchResult(error=error_to_proto(error)))
                failed = True
                continue
            result = fetch_result(run)
            results.append(result)
            batches += run.batches
            total += result.size
        hello = self._replicas.hello_reply() if request.HasField("hello") else None
        return Framed(pb.FetchReply(hello=hello, results=results), batches), total, failed


@dataclass(slots=True)
class _Slot:
    """One partition of a session: where its reader is, and how much it may still be sent."""

    number: int
    partition: Partition
    offset: int
    credit: int
    stir: Callable[[], None]
    """Called when its partition may have more."""
    ahead_since_s: float | None = None
    """Since when its reader has been waiting for offsets that this follower has not heard of."""


class _FetchSession:
    """One reader's stream: what it asked for, served in turn, as far as its credit goes."""

    def __init__(self, replicas: Replicas, stream: FetchStream) -> None:
        self._replicas = replicas
        self._stream = stream
        self._slots: dict[int, _Slot] = {}
        self._stirred: dict[int, None] = {}
        """Slots that may have something to send."""
        self._isolation: Isolation | None = None
        self._nearby = False
        self._notes: deque[Framed[pb.FetchStreamReply]] = deque()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(self._send_forever(), name="fetch answers")
                while (request := await self._stream.receive()) is not None:
                    self._take(request)
                sending.cancel()
        except* SuiroError as errors:
            raise errors.exceptions[0] from None
        finally:
            for slot in list(self._slots.values()):
                self._drop(slot)

    def _take(self, request: pb.FetchStreamRequest) -> None:
        if self._isolation is None:
            self._isolation = request.isolation
            self._nearby = bool(request.rack)
            hello = pb.FetchStreamReply(hello=self._replicas.hello_reply())
            self._notes.append(Framed(hello))
        for number in request.stop:
            if number in self._slots:
                self._drop(self._slots[number])
        for start in request.start:
            self._start(start)
        for credit in request.credit:
            if credit.slot in self._slots:
                self._slots[credit.slot].credit += credit.bytes
                self._stir(credit.slot)
        self._wake.set()

    def _stir(self, number: int) -> None:
        self._stirred[number] = None
        self._wake.set()

    def _start(self, start: pb.FetchStart) -> None:
        try:
            partition = self._replicas.get(TopicPartition(start.topic, start.partition))
            self._replicas.check_topic_id(partition, start.topic_id)
            partition.check_reader(start.offset, nearby=self._nearby)
            partition.check_position(start.offset, start.last_epoch)
        except SuiroError as error:
            self._fail(start.slot, error)
            return
        assert self._isolation is not None
        stir = partial(self._stir, start.slot)
        partition.watch(stir, self._isolation)
        self._slots[start.slot] = _Slot(start.slot, partition, start.offset, start.credit, stir)
        self._stir(start.slot)

    async def _send_forever(self) -> None:
        while True:
            self._wake.clear()
            while self._notes:  # only this task sends: a stream takes one message at a time
                await self._stream.send(self._notes.popleft())
            stirred, self._stirred = self._stirred, {}
            for number in stirred:
                slot = self._slots.get(number)
                if slot is not None and slot.credit > 0 and await self._send_some(slot):
                    self._stir(number)
            if not (self._notes or self._stirred):
                await self._wait()

    async def _wait(self) -> None:
        """Until something has changed. A follower looks again by itself, too: nobody tells it that
        it no longer hears from the leader or the controllers.
        """
        if not self._nearby:
            await self._wake.wait()
            return
        try:
            async with asyncio.timeout(RECHECK_S):
                await self._wake.wait()
        except TimeoutError:
            self._stirred.update(dict.fromkeys(self._slots))

    async def _send_some(self, slot: _Slot) -> bool:
        """One message of one slot, if there is anything to say; whether there may be more."""
        assert self._isolation is not None
        try:
            limit = min(slot.credit, FETCH_CHUNK_BYTES)
            run = slot.partition.read(slot.offset, limit, self._isolation, nearby=self._nearby)
            self._check_ahead(slot, run)
        except SuiroError as error:
            self._drop(slot)
            self._fail(slot.number, error)
            return False
        if run.next_offset == slot.offset:
            return False
        result = fetch_result(run)
        slot.offset = run.next_offset
        slot.credit -= result.size
        reply = pb.FetchStreamReply(slot=slot.number, result=result)
        await self._stream.send(Framed(reply, run.batches))
        committed = self._isolation == READ_COMMITTED
        return slot.offset < (run.last_stable_offset if committed else run.high_watermark)

    def _check_ahead(self, slot: _Slot, run: Run) -> None:
        """The leader may have told the reader more than this follower knows; but not for long."""
        if slot.offset <= run.high_watermark:
            slot.ahead_since_s = None
            return
        now_s = asyncio.get_running_loop().time()
        slot.ahead_since_s = slot.ahead_since_s or now_s
        if now_s - slot.ahead_since_s > AHEAD_S_MAX:
            raise ahead(slot.partition, slot.offset)

    def _fail(self, number: int, error: SuiroError) -> None:
        result = pb.FetchResult(error=error_to_proto(error))
        self._notes.append(Framed(pb.FetchStreamReply(slot=number, result=result)))

    def _drop(self, slot: _Slot) -> None:
        self._slots.pop(slot.number, None)
        slot.partition.unwatch(slot.stir)


def ahead(partition: Partition, offset: int) -> OffsetNotAvailable:
    """For a reader that is ahead of a follower: the leader knows whether that can be."""
    return OffsetNotAvailable(
        f"{partition.partition}: offset {offset} is beyond {partition.high_watermark}, the high "
        "watermark that this follower knows"
    )


def fetch_result(run: Run) -> pb.FetchResult:
    return pb.FetchResult(
        high_watermark=run.high_watermark,
        last_stable_offset=run.last_stable_offset,
        log_start=run.log_start,
        next_offset=run.next_offset,
        size=sum(map(len, run.batches)),
        last_epoch=run.last_epoch,
    )
