"""One producer's line to one broker: a produce stream with up to five requests unanswered.

A batch leaves at once while the line is idle; while something is under way it waits until it is
full or has lingered, so batches grow with the load and an idle line never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from suiro._proto import broker_pb2 as pb
from suiro.cancellation import heed_cancellation
from suiro.model.encode import BatchOptions
from suiro.model.error_base import SuiroError
from suiro.model.errors import BatchTooLarge, InvalidRequest, TimedOut, Unavailable
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
    from suiro.sequences import Ticket
    from suiro.settings import ProducerSettings
    from suiro.transport.api import Stream

    ProduceStream = Stream[Framed[pb.ProduceRequest], pb.ProduceReply]

STRANGE_MS: Final = 1_000.0
"""A broker that has been silent for so long may hang, and another one may lead by now."""

ANSWER_GRACE_MS: Final = 5_000.0
"""A broker answers within the request's own timeout; after so much more it is taken for hung."""


class Source(Protocol):
    """Where batches come from, and who is told what became of them: the dispatcher."""

    settings: ProducerSettings
    connection: Connection

    def take_for(self, node: NodeId, *, idle: bool) -> tuple[list[Ticket[Batch]], float | None]: ...
    def sent(self, ticket: Ticket[Batch]) -> None: ...
    def cannot_send(self, ticket: Ticket[Batch], error: SuiroError) -> None: ...
    def stored(self, ticket: Ticket[Batch], base_offset: int) -> None: ...
    def failed(self, ticket: Ticket[Batch], error: SuiroError) -> None: ...


class _Request(NamedTuple):
    tickets: list[Ticket[Batch]]
    sent_ms: float


class BrokerLine:
    """Runs until it is cancelled; opens its stream anew whenever it broke."""

    def __init__(self, source: Source, node: NodeId, address: Address) -> None:
        self.address = address
        self._source = source
        self._node = node
        self._wake = asyncio.Event()
        self._in_flight: deque[_Request] = deque()
        self._stream: ProduceStream | None = None
        self._hung: TimedOut | None = None

    def wake(self) -> None:
        """There may be something to send."""
        self._wake.set()

    def check_answers(self, now_ms: float) -> list[str]:
        """Break the stream of a broker that is connected and does not answer, or that no longer
        leads what it was sent. The topics to ask about, if its silence is strange.
        """
        if not self._in_flight:
            return []
        request = self._in_flight[0]
        silent_ms = now_ms - request.sent_ms
        if silent_ms < STRANGE_MS:
            return []
        partitions = [ticket.batch.partition for ticket in request.tickets]
        leaders = [self._source.connection.leader(partition) for partition in partitions]
        if any(leader is not None and leader[0] != self._node for leader in leaders):
            self._break(f"broker {self._node} at {self.address} leads no more, and says nothing")
        elif silent_ms > self._source.settings.request_timeout_ms + ANSWER_GRACE_MS:
            self._break(f"broker {self._node} at {self.address} has not answered: {silent_ms:g} ms")
        return sorted({partition.topic for partition in partitions})

    def _break(self, why: str) -> None:
        self._hung = TimedOut(why)
        if self._stream is not None:
            self._stream.cancel()

    async def run(self) -> None:
        connection = self._source.connection
        backoff = Backoff(connection.rng)
        while True:
            await self._wake.wait()
            stream = await connection.transport.open(self.address, BrokerMethods.PRODUCE_STREAM)
            self._stream = stream
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
            tickets, wait_ms = self._source.take_for(self._node, idle=not self._in_flight)
            if tickets:
                ready = self._encoded(tickets)
                if ready:
                    self._in_flight.append(_Request(ready, self._now_ms()))
                    await stream.send(self._request(ready, hello))
                    hello = None
            else:
                await self._pause(wait_ms)

    async def _pause(self, wait_ms: float | None) -> None:
        """Until there is something to send, or a batch has lingered long enough."""
        if wait_ms is None:
            await self._wake.wait()
            return
        # A timer of the loop's costs a fraction of what asyncio.timeout does.
        timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    async def _receive(self, stream: ProduceStream, backoff: Backoff) -> None:
        while (reply := await stream.receive()) is not None:
            tickets = self._in_flight.popleft().tickets
            for ticket, result in zip(tickets, reply.results, strict=True):
                if result.error.code:
                    self._source.failed(ticket, error_from_proto(result.error))
                else:
                    self._source.stored(ticket, result.base_offset)
                    backoff.reset()
            self._wake.set()
        raise Unavailable(f"broker {self._node} at {self.address} ended the stream")

    def _encoded(self, tickets: list[Ticket[Batch]]) -> list[Ticket[Batch]]:
        """Encode what was not encoded before; a batch that cannot be is failed and left out."""
        ready = []
        for ticket in tickets:
            try:
                if ticket.batch.encoded is None:
                    settings = self._source.settings
                    transactional = bool(settings.transactional_id)
                    options = BatchOptions(settings.compression, *ticket.stamp, transactional)
                    ticket.batch.encode(options)
            except (BatchTooLarge, InvalidRequest) as error:
                self._source.cannot_send(ticket, error)
                continue
            self._source.sent(ticket)
            ready.append(ticket)
        return ready

    def _request(
        self, tickets: list[Ticket[Batch]], hello: Hello | None
    ) -> Framed[pb.ProduceRequest]:
        settings = self._source.settings
        payload = [t.batch.encoded for t in tickets if t.batch.encoded is not None]
        header = pb.ProduceRequest(
            hello=hello,
            acks=-1 if settings.acks == "all" else settings.acks,
            timeout_ms=int(settings.request_timeout_ms),
            transactional_id=settings.transactional_id,
            parts=[
                pb.ProducePart(
                    topic=ticket.batch.partition.topic,
                    partition=ticket.batch.partition.partition,
                    size=len(data),
                )
                for ticket, data in zip(tickets, payload, strict=True)
            ],
        )
        return Framed(header, payload)

    def _give_back(self, error: BaseException) -> None:
        """The stream broke: what was under way may or may not have been stored."""
        assert isinstance(error, SuiroError)
        why, self._hung, self._stream = self._hung or error, None, None
        requests = list(self._in_flight)
        self._in_flight.clear()
        for request in requests:
            for ticket in request.tickets:
                self._source.failed(ticket, why)
        self._wake.set()

    def _now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000
