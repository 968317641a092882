"""The calling side over gRPC: channels, deadlines, and errors as SuiroErrors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from suiro._proto.common_pb2 import Error
from suiro.model.errors import TimedOut, Unavailable
from suiro.model.limits import MESSAGE_BYTES_MAX
from suiro.transport.api import Kind, Method, Stream
from suiro.transport.trace import forwarded
from suiro.transport.tuning import tune_process
from suiro.transport.wire_errors import error_from_proto

tune_process()  # before grpc is imported: it reads the environment then

import grpc  # noqa: E402
from grpc import aio  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import Address
    from suiro.transport.trace import Metadata

Q = TypeVar("Q")
R = TypeVar("R")

ERROR_KEY: Final = "suiro-error-bin"

CHANNEL_OPTIONS: Final = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # A dead peer whose host is gone answers nothing: find out within seconds, not minutes.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # A broker that comes back is found at once: the default back-off grows to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class GrpcTransport:
    """Implements `Transport`. One channel per address, opened when first used.

    `credentials` is the one place where TLS is switched on for everything this process calls.
    """

    def __init__(
        self,
        credentials: grpc.ChannelCredentials | None = None,
        request_metadata: Callable[[], Metadata | None] = forwarded,
    ) -> None:
        self._credentials = credentials
        self._metadata = request_metadata
        self._channels: dict[Address, aio.Channel] = {}
        self._calls: dict[tuple[Address, str], Any] = {}
        self._open: set[Any] = set()

    async def call(
        self, address: Address, method: Method[Q, R], request: Q, *, timeout_s: float
    ) -> R:
        try:
            start = self._callable(address, method)
            call = self._opened(start(request, timeout=timeout_s, metadata=self._metadata()))
            reply: R = await call
        except aio.AioRpcError as error:
            raise error_from_rpc(error, address, method.name) from None
        return reply

    async def open(self, address: Address, method: Method[Q, R]) -> Stream[Q, R]:
        call, carried = self._callable(address, method), self._metadata()
        if method.kind is Kind.SERVER_STREAM:
            return _GrpcServerStream(
                lambda request: self._opened(call(request, metadata=carried)), address, method
            )
        return _GrpcStream(self._opened(call(metadata=carried)), address, method)

    async def refuses(self, address: Address, *, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                _, writer = await asyncio.open_connection(address.host, address.port)
        except ConnectionRefusedError:
            return True
        except (OSError, TimeoutError):
            return False
        writer.close()
        return False

    async def close(self) -> None:
        # gRPC's poller outlives this loop, and complains of what still arrives for it later.
        for call in list(self._open):
            call.cancel()
            await call.code()
        channels, self._channels = self._channels, {}
        self._calls.clear()
        await asyncio.gather(*(channel.close() for channel in channels.values()))

    def _opened(self, call: Any) -> Any:
        self._open.add(call)
        call.add_done_callback(self._open.discard)
        return call

    def _callable(self, address: Address, method: Method[Q, R]) -> Any:
        call = self._calls.get((address, method.name))
        if call is None:
            channel = self._channel(address)
            factory = {
                Kind.UNARY: channel.unary_unary,
                Kind.SERVER_STREAM: channel.unary_stream,
                Kind.BIDIRECTIONAL: channel.stream_stream,
            }[method.kind]
            call = factory(
                method.name,
                request_serializer=method.request.encode,
                response_deserializer=method.reply.decode,
            )
            self._calls[address, method.name] = call
        return call

    def _channel(self, address: Address) -> aio.Channel:
        channel = self._channels.get(address)
        if channel is None:
            if self._credentials is None:
                channel = aio.insecure_channel(str(address), options=CHANNEL_OPTIONS)
            else:
                channel = aio.secure_channel(
                    str(address), self._credentials, options=CHANNEL_OPTIONS
                )
            self._channels[address] = channel
        return channel


class _GrpcStream(Generic[Q, R]):
    """A bidirectional call as a `Stream`."""

    def __init__(self, call: Any, address: Address, method: Method[Q, R]) -> None:
        self._call = call
        self._address = address
        self._method = method
        self._is_cancelled = False

    async def send(self, message: Q) -> None:
        try:
            await self._call.write(message)
        except asyncio.CancelledError:
            raise self._cancelled() from None
        except (aio.AioRpcError, asyncio.InvalidStateError, aio.UsageError) as error:
            raise await self._why_it_broke(error) from None

    async def receive(self) -> R | None:
        try:
            message = await self._call.read()
        except asyncio.CancelledError:
            raise self._cancelled() from None
        except aio.AioRpcError as error:
            raise error_from_rpc(error, self._address, self._method.name) from None
        if message is aio.EOF:
            if await self._call.code() is not grpc.StatusCode.OK:
                raise await self._why_it_broke(None)
            return None
        return message  # type: ignore[no-any-return]

    async def finish(self) -> None:
        try:
            await self._call.done_writing()
        except (aio.AioRpcError, asyncio.InvalidStateError, aio.UsageError) as error:
            raise await self._why_it_broke(error) from None

    def cancel(self) -> None:
        self._is_cancelled = True
        self._call.cancel()

    def _cancelled(self) -> BaseException:
        """gRPC tells a task that its call was cancelled as if the task itself had been."""
        task = asyncio.current_task()
        if self._is_cancelled and (task is None or not task.cancelling()):
            return Unavailable(f"the stream to {self._address} was dropped")
        return asyncio.CancelledError()

    async def _why_it_broke(self, error: Exception | None) -> SuiroError:
        if isinstance(error, aio.AioRpcError):
            return error_from_rpc(error, self._address, self._method.name)
        failure = aio.AioRpcError(
            await self._call.code(),
            await self._call.initial_metadata(),
            await self._call.trailing_metadata(),
            details=await self._call.details(),
        )
        return error_from_rpc(failure, self._address, self._method.name)


class _GrpcServerStream(Generic[Q, R]):
    """A call with one request and many replies as a `Stream`: the call begins with `send`."""

    def __init__(self, start: Any, address: Address, method: Method[Q, R]) -> None:
        self._start = start
        self._stream: _GrpcStream[Q, R] | None = None
        self._address = address
        self._method = method

    async def send(self, message: Q) -> None:
        assert self._stream is None, "a server stream takes one request"
        self._stream = _GrpcStream(self._start(message), self._address, self._method)

    async def receive(self) -> R | None:
        assert self._stream is not None, "send the request first"
        return await self._stream.receive()

    async def finish(self) -> None:
        """The one request has been sent; there is nothing to say."""

    def cancel(self) -> None:
        if self._stream is not None:
            self._stream.cancel()


def error_from_rpc(error: aio.AioRpcError, address: Address, method: str) -> SuiroError:
    """What a failed rpc means: the other side's own error, or what became of the connection."""
    for key, value in error.trailing_metadata() or ():
        if key == ERROR_KEY and isinstance(value, bytes):
            return error_from_proto(Error.FromString(value))
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return TimedOut(f"{method} at {address} was not answered in time")
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return Unavailable(f"the node at {address} does not serve {method}")
    return Unavailable(f"{address}: {error.details() or error.code()}", address=str(address))
