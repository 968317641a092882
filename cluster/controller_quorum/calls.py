"""Many calls over one stream: the receiving end of `cluster.host.call_line`.

A call is served by the very handler of its rpc and answered when that is done, in no order; answers
that become due together, as those of one commit do, are one message.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from suiro._proto import controller_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import InternalError, InvalidRequest, Overloaded
from suiro.model.limits import CALLS_BATCH_BYTES, CALLS_IN_FLIGHT_MAX
from suiro.transport.api import Kind, Peer, Route
from suiro.transport.methods import ControllerMethods
from suiro.transport.trace import work_for
from suiro.transport.wire_errors import error_to_proto

from cluster.host.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.transport.api import Service, Stream

    from cluster.host.spans import Spans

    CallStream = Stream[pb.AnswerBatch, pb.CallBatch]

log = logging.getLogger("suiro.quorum")


class CallsService:
    """The unary rpcs of some services, on streams."""

    def __init__(self, services: Iterable[Service], spans: Spans | None = None) -> None:
        self._routes = {
            route.method.name: route if spans is None else spans.around(route)
            for service in services
            for route in service.routes()
            if route.method.kind is Kind.UNARY
        }

    def routes(self) -> list[Route]:
        return [Route(ControllerMethods.CALLS, self.handle_calls)]

    async def handle_calls(self, stream: CallStream, peer: Peer) -> None:
        """Until the caller finishes or is gone; then nobody waits for what is still under way."""
        outbox: Outbox[pb.Answer] = Outbox(CALLS_BATCH_BYTES)
        serving: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(_send(stream, outbox), name="answers")
            while (batch := await stream.receive()) is not None:
                for call in batch.calls:
                    if len(serving) >= CALLS_IN_FLIGHT_MAX:
                        full = Overloaded(f"{CALLS_IN_FLIGHT_MAX} calls are unanswered")
                        _put(outbox, _refused(call, full))
                        continue
                    task = tasks.create_task(self._serve(call, peer, outbox))
                    serving.add(task)
                    task.add_done_callback(serving.discard)
            for task in (sending, *serving):
                task.cancel()

    async def _serve(self, call: pb.Call, peer: Peer, outbox: Outbox[pb.Answer]) -> None:
        _put(outbox, await self._answer(call, peer))

    async def _answer(self, call: pb.Call, peer: Peer) -> pb.Answer:
        route = self._routes.get(call.method)
        if route is None:
            return _refused(call, InvalidRequest(f"{call.method} is no call of a controller"))
        work_for(call.traceparent)
        try:
            reply: Any = await route.handler(route.method.request.decode(call.request), peer)
        except SuiroError as error:
            log.debug("%s from %s: %s: %s", call.method, peer.address, error.code.name, error)
            return _refused(call, error)
        except Exception as error:
            log.exception("%s failed", call.method)
            return _refused(call, InternalError(f"{call.method} failed: {error!r}"))
        log.debug("%s from %s: OK", call.method, peer.address)
        return pb.Answer(id=call.id, reply=route.method.reply.encode(reply))


def _refused(call: pb.Call, error: SuiroError) -> pb.Answer:
    return pb.Answer(id=call.id, error=error_to_proto(error))


def _put(outbox: Outbox[pb.Answer], answer: pb.Answer) -> None:
    outbox.put(answer, len(answer.reply))


async def _send(stream: CallStream, outbox: Outbox[pb.Answer]) -> None:
    while True:
        await stream.send(pb.AnswerBatch(answers=await outbox.take()))
