"""The serving side over gRPC: one place where every server of every role is built.

A service knows nothing of gRPC; it hands in routes. What holds for all of them is done here: errors
become statuses that carry our own error, defects are logged and answered, health and reflection are
always there. TLS, authentication and quotas are switched on here, for every link at once.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from suiro.model.error_base import ErrorCode, SuiroError
from suiro.model.errors import InternalError, Unavailable
from suiro.model.limits import MESSAGE_BYTES_MAX
from suiro.transport.api import Kind, Peer, Route
from suiro.transport.grpc_transport import ERROR_KEY
from suiro.transport.trace import parent_in, work_for
from suiro.transport.wire_errors import error_to_proto

from cluster.host.rpc_meter import RpcMeter

import grpc  # isort: skip - grpc_transport has tuned the process before this import
from grpc import aio  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from suiro.model.ids import Address
    from suiro.transport.api import Method, Service

    from cluster.host.metrics import Metrics
    from cluster.host.spans import Spans

Q = TypeVar("Q")
R = TypeVar("R")

log = logging.getLogger("suiro.server")

SERVER_OPTIONS: Final = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),  # two nodes on one port must fail, not share it
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

LIVE: Final = "live"
READY: Final = "ready"
"""What the probes of an orchestrator ask grpc.health.v1 for."""

_STATUS: Final = {
    ErrorCode.INTERNAL: grpc.StatusCode.INTERNAL,
    ErrorCode.INVALID_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorCode.TIMED_OUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    ErrorCode.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.SHUTTING_DOWN: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.OVERLOADED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    ErrorCode.UNAUTHORIZED: grpc.StatusCode.PERMISSION_DENIED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: grpc.StatusCode.NOT_FOUND,
    ErrorCode.TOPIC_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
}
"""For tools that know only gRPC; our own clients read the error itself."""


class Server:
    """Serves the routes of some services at one address."""

    def __init__(
        self,
        services: Sequence[Service],
        metrics: Metrics,
        credentials: grpc.ServerCredentials | None = None,
        spans: Spans | None = None,
    ) -> None:
        routes = [route for service in services for route in service.routes()]
        if spans is not None:
            routes = [spans.around(route) for route in routes]
        self._routes = {route.method.name: route for route in routes}
        self._metrics = metrics
        self._credentials = credentials
        self._server = aio.server(options=SERVER_OPTIONS)
        self._health: Any = None

    async def start(self, listen: Address) -> int:
        """Listen and serve; the port, which is a free one if port 0 was asked for."""
        self._server.add_generic_rpc_handlers((_Handlers(self._routes, self._metrics),))
        self._add_health_and_reflection()
        try:
            if self._credentials is None:
                port = self._server.add_insecure_port(str(listen))
            else:
                port = self._server.add_secure_port(str(listen), self._credentials)
        except RuntimeError as error:
            raise Unavailable(f"cannot listen on {listen}: {error}") from None
        await self.set_serving(False)
        await self._set_health(LIVE, True)
        await self._server.start()
        return int(port)

    async def set_serving(self, serving: bool) -> None:
        """What grpc.health.v1 answers for the whole node, and for `ready`; `live` is served as
        long as anything is answered at all.
        """
        for service in ("", READY):
            await self._set_health(service, serving)

    async def _set_health(self, service: str, serving: bool) -> None:
        from grpc_health.v1 import health_pb2

        status = health_pb2.HealthCheckResponse
        await self._health.set(service, status.SERVING if serving else status.NOT_SERVING)

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls at once, give open ones `grace_s` to end."""
        await self._server.stop(grace_s)

    def _add_health_and_reflection(self) -> None:
        from grpc_health.v1 import health, health_pb2_grpc
        from grpc_reflection.v1alpha import reflection

        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = sorted({name.split("/")[1] for name in self._routes})
        reflection.enable_server_reflection(
            [*names, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server
        )


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Finds the route of an rpc by its name."""

    def __init__(self, routes: dict[str, Route], metrics: Metrics) -> None:
        self._handlers = {
            name: _rpc_handler(route, RpcMeter(metrics, name)) for name, route in routes.items()
        }

    def service(self, details: Any) -> Any:
        return self._handlers.get(details.method)


def _rpc_handler(route: Route, meter: RpcMeter) -> Any:
    method = route.method
    codecs = {
        "request_deserializer": _decoder(method),
        "response_serializer": method.reply.encode,
    }
    if method.kind is Kind.UNARY:
        return grpc.unary_unary_rpc_method_handler(_unary(route, meter), **codecs)
    if method.kind is Kind.SERVER_STREAM:
        return grpc.unary_stream_rpc_method_handler(_server_stream(route, meter), **codecs)
    return grpc.stream_stream_rpc_method_handler(_bidirectional(route, meter), **codecs)


def _decoder(method: Method[Any, Any]) -> Callable[[bytes], Any]:
    """gRPC would answer for what cannot be read with an error of its own; ours has to get through,
    so it is passed on in the request's place.
    """
    decode = method.request.decode

    def decode_or_say(data: bytes) -> Any:
        try:
            return decode(data)
        except SuiroError as error:
            return error

    return decode_or_say


def _readable(request: Q | SuiroError) -> Q:
    if isinstance(request, SuiroError):
        raise request
    return request


def _unary(route: Route, meter: RpcMeter) -> Callable[[Any, Any], Awaitable[Any]]:
    async def handle(request: Any, context: Any) -> Any:
        work_for(parent_in(context.invocation_metadata()))
        with meter.timed():
            try:
                reply = await route.handler(_readable(request), _peer(context))
            except Exception as error:
                meter.ended(error)
                await _abort(context, route.method, error)
            else:
                meter.ended(None)
                log.debug("%s from %s: OK", route.method.name, context.peer())
                return reply

    return handle


def _server_stream(route: Route, meter: RpcMeter) -> Callable[[Any, Any], Awaitable[None]]:
    async def handle(request: Any, context: Any) -> None:
        await _run_stream(route, _ServerStream(context, first=request), context, meter)

    return handle


def _bidirectional(route: Route, meter: RpcMeter) -> Callable[[Any, Any], Awaitable[None]]:
    async def handle(_requests: Any, context: Any) -> None:
        await _run_stream(route, _ServerStream(context), context, meter)

    return handle


async def _run_stream(
    route: Route, stream: _ServerStream[Any, Any], context: Any, meter: RpcMeter
) -> None:
    """A stream lasts as long as its caller likes, so how long says nothing."""
    work_for(parent_in(context.invocation_metadata()))
    with meter.open():
        try:
            await route.handler(stream, _peer(context))
        except Exception as error:
            meter.ended(error)
            await _abort(context, route.method, error)
        else:
            meter.ended(None)


class _ServerStream(Generic[R, Q]):
    """A server's end of a call as a `Stream`; a call with one request has it as `first`."""

    def __init__(self, context: Any, first: Q | None = None) -> None:
        self._context = context
        self._first = first
        self._only_one = first is not None
        self._handler = asyncio.current_task()

    async def send(self, message: R) -> None:
        try:
            await self._context.write(message)
        except (aio.UsageError, aio.InternalError) as error:
            raise Unavailable(f"the client is gone: {error}") from None

    async def receive(self) -> Q | None:
        if self._only_one:
            message, self._first = self._first, None
        else:
            message = await self._context.read()
        return None if message is aio.EOF else _readable(message)

    async def finish(self) -> None:
        """A server finishes by returning from its handler."""

    def cancel(self) -> None:
        if self._handler is not None:
            self._handler.cancel()


def _peer(context: Any) -> Peer:
    return Peer(address=context.peer())


async def _abort(context: Any, method: Method[Any, Any], error: Exception) -> None:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]  # the one that ended the other tasks of its handler
    if not isinstance(error, SuiroError):
        log.error("%s failed", method.name, exc_info=error)
        error = InternalError(f"{method.name} failed: {type(error).__name__}: {error}")
    else:
        log.debug("%s from %s: %s: %s", method.name, context.peer(), error.code.name, error)
    trailing = ((ERROR_KEY, error_to_proto(error).SerializeToString()),)
    status = _STATUS.get(error.code, grpc.StatusCode.FAILED_PRECONDITION)
    await context.abort(status, error.message, trailing_metadata=trailing)
