"""One producer's line to one broker: a produce stream with up to five requests unanswered.

A batch leaves at once while the line is idle; while something is under way it waits until it is
full or has lingered, so batches grow with the load and an idle line never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Protocol

from suiro._proto import broker_pb2 as pb
from suiro.cancellation import heed_cancellation
from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.error_base import SuiroError
from suiro.model.errors import BatchTooLarge, Unavailable
from suiro.model.limits import PRODUCE_IN_FLIGHT_MAX
from suiro.retry import Backoff
from suiro.transport.framing import Framed
from suiro.transport.methods import BrokerMethods
from suiro.transport.wire_errors import error_from_proto

if TYPE_CHECKING:
    from suiro._proto.common_pb2 import Hello
    from suiro.accumulator import Batch
    from suiro.connection import Connection
    from suiro.model.ids import Address, NodeId
    from suiro.settings import ProducerSettings
    from suiro.transport.api import Stream

    ProduceStream = Stream[Framed[pb.ProduceRequest], pb.ProduceReply]


class Source(Protocol):
    """Where batches come from and go back to: the producer."""

    settings: ProducerSettings
    connection: Connection

    def take_for(self, node: NodeId, *, idle: bool) -> tuple[list[Batch], float | None]: ...
    def stored(self, batch: Batch, base_offset: int) -> None: ...
    def try_again(self, batches: list[Batch], error: SuiroError) -> None: ...
    def failed(self, batch: Batch, error: SuiroError) -> None: ...


class BrokerLine:
    """Runs until it is cancelled; opens its stream anew whenever it broke."""

    def __init__(self, source: Source, node: NodeId, address: Address) -> None:
        self.address = address
        self._source = source
        self._node = node
        self._wake = asyncio.Event()
        self._in_flight: deque[list[Batch]] = deque()

    def wake(self) -> None:
        """There may be something to send."""
        self._wake.set()

    async def run(self) -> None:
        connection = self._source.connection
        backoff = Backoff(connection.rng)
        while True:
            await self._wake.wait()
            stream = await connection.transport.open(self.address, BrokerMethods.PRODUCE_STREAM)
            try:
                async with asyncio.TaskGroup() as tasks:
                    receiving = tasks.create_task(self._receive(stream, backoff))
                    await self._send(stream)
                    receiving.cancel()
            except* SuiroError as failures:
                self._give_back(failures.exceptions[0])
            finally:
                stream.cancel()
            heed_cancellation()
            await asyncio.sleep(backoff.next_s())

    async def _send(self, stream: ProduceStream) -> None:
        hello: Hello | None = self._source.connection.hello()
        while True:
            self._wake.clear()
            if len(self._in_flight) >= PRODUCE_IN_FLIGHT_MAX:
                await self._wake.wait()
                continue
            batches, wait_ms = self._source.take_for(self._node, idle=not self._in_flight)
            if batches:
                ready = self._encode(batches)
                if ready:
                    self._in_flight.append(ready)
                    await stream.send(self._request(ready, hello))
                    hello = None
            else:
                await self._pause(wait_ms)

    async def _pause(self, wait_ms: float | None) -> None:
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await self._wake.wait()
        except TimeoutError:
            return  # a batch has lingered long enough

    async def _receive(self, stream: ProduceStream, backoff: Backoff) -> None:
        while (reply := await stream.receive()) is not None:
            batches = self._in_flight.popleft()
            again = []
            for batch, result in zip(batches, reply.results, strict=True):
                if not result.error.code:
                    self._source.stored(batch, result.base_offset)
                    backoff.reset()
                    continue
                error = error_from_proto(result.error)
                if error.retriable:
                    again.append((batch, error))
                else:
                    self._source.failed(batch, error)
            if again:
                self._source.try_again([batch for batch, _ in again], again[0][1])
            self._wake.set()
        raise Unavailable(f"broker {self._node} at {self.address} ended the stream")

    def _encode(self, batches: list[Batch]) -> list[Batch]:
        """Encode what was not encoded before; a batch that cannot be is failed and left out."""
        ready = []
        for batch in batches:
            try:
                if batch.encoded is None:
                    batch.encoded = encode_rows(batch, self._source.settings)
            except BatchTooLarge as error:
                self._source.failed(batch, error)
                continue
            ready.append(batch)
        return ready

    def _request(self, batches: list[Batch], hello: Hello | None) -> Framed[pb.ProduceRequest]:
        settings = self._source.settings
        payload = [batch.encoded for batch in batches if batch.encoded is not None]
        header = pb.ProduceRequest(
            hello=hello,
            acks=-1 if settings.acks == "all" else settings.acks,
            timeout_ms=int(settings.request_timeout_ms),
            parts=[
                pb.ProducePart(
                    topic=b.partition.topic, partition=b.partition.partition, size=len(p)
                )
                for b, p in zip(batches, payload, strict=True)
            ],
        )
        return Framed(header, payload)

    def _give_back(self, error: BaseException) -> None:
        """The stream broke: what was under way may or may not have been stored."""
        assert isinstance(error, SuiroError)
        batches = [batch for request in self._in_flight for batch in request]
        self._in_flight.clear()
        if batches:
            self._source.try_again(batches, error)
        self._wake.set()


def encode_rows(batch: Batch, settings: ProducerSettings) -> bytes | bytearray:
    """The rows of a batch as bytes."""
    headers = [h or () for h in batch.headers] if any(batch.headers) else None
    return encode_lists(
        batch.keys,
        batch.values,
        timestamps_ms=batch.timestamps_ms,
        headers=headers,
        options=BatchOptions(compression=settings.compression),
    )
