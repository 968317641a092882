"""A node's calls to one controller, many at a time over one stream.

A single rpc costs gRPC some 300 µs of processor time on both sides together; a stream costs 200 per
message, and what becomes due together is one message. A line lives until its stream breaks: then
everyone who waits gets the reason, and whether his call was carried out is not known.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, TypeVar

from suiro._proto import controller_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import Overloaded, TimedOut, Unavailable
from suiro.model.limits import CALLS_BATCH_BYTES, CALLS_IN_FLIGHT_MAX
from suiro.transport.methods import ControllerMethods
from suiro.transport.trace import current, work_for
from suiro.transport.wire_errors import error_from_proto

from cluster.host.outbox import Outbox

if TYPE_CHECKING:
    from suiro.model.ids import Address
    from suiro.transport.api import Method, Stream, Transport

    CallStream = Stream[pb.CallBatch, pb.AnswerBatch]

Q = TypeVar("Q")
R = TypeVar("R")


class CallLine:
    """`run` it once; it ends when the stream does."""

    def __init__(self, transport: Transport, address: Address) -> None:
        self.address = address
        self.is_broken = False
        self._transport = transport
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._outbox: Outbox[pb.Call] = Outbox(CALLS_BATCH_BYTES)

    async def call(self, method: Method[Q, R], request: Q, *, timeout_s: float) -> R:
        """One request, one reply; raises the other side's error, Unavailable or TimedOut."""
        assert not self.is_broken, "a broken line takes no calls"
        if len(self._waiting) >= CALLS_IN_FLIGHT_MAX:
            raise Overloaded(f"{CALLS_IN_FLIGHT_MAX} calls to {self.address} are unanswered")
        number = next(self._numbers)
        body = method.request.encode(request)
        waiter = self._waiting[number] = asyncio.get_running_loop().create_future()
        call = pb.Call(id=number, method=method.name, request=body, traceparent=current())
        self._outbox.put(call, len(body))
        try:
            async with asyncio.timeout(timeout_s):
                return method.reply.decode(await waiter)
        except TimeoutError:
            raise TimedOut(f"{method} at {self.address} was not answered in time") from None
        finally:
            self._waiting.pop(number, None)

    async def run(self) -> None:
        work_for("")  # the line is shared: it does not belong to the request that opened it
        failure: SuiroError = Unavailable(f"the line to {self.address} was closed")
        stream = await self._transport.open(self.address, ControllerMethods.CALLS)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(stream), name=f"calls to {self.address}")
                await self._receive(stream)
        except* SuiroError as failures:
            first = failures.exceptions[0]
            assert isinstance(first, SuiroError)
            failure = first
        finally:
            stream.cancel()
            self._break(failure)

    async def _send(self, stream: CallStream) -> None:
        while True:
            await stream.send(pb.CallBatch(calls=await self._outbox.take()))

    async def _receive(self, stream: CallStream) -> None:
        while (batch := await stream.receive()) is not None:
            for answer in batch.answers:
                waiter = self._waiting.get(answer.id)
                if waiter is None or waiter.done():
                    continue  # its caller has stopped waiting
                if answer.error.code:
                    waiter.set_exception(error_from_proto(answer.error))
                else:
                    waiter.set_result(answer.reply)
        raise Unavailable(f"the controller at {self.address} ended the stream of calls")

    def _break(self, failure: SuiroError) -> None:
        self.is_broken = True
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(failure)
