"""The ceiling for a node: the same bytes over a bare gRPC stream, doing nothing with them.

`python -m bench.plain_stream` is the server side, in a process of its own as a node's is. A message
that begins with `S` asks for that many messages of that size (serving), others are sunk (taking).
"""

from __future__ import annotations

import asyncio
import struct
import sys
from typing import Any

from suiro.loop_thread import new_loop
from suiro.transport.grpc_transport import CHANNEL_OPTIONS

import grpc  # isort: skip - grpc_transport has tuned the process before this import
from grpc import aio  # isort: skip

ASK = struct.Struct("<II")


def _plain(message: bytes) -> bytes:
    return message


async def _sink(_requests: Any, context: Any) -> None:
    while await context.read() is not aio.EOF:
        await context.write(b"ok")


async def _source(_requests: Any, context: Any) -> None:
    count, size = ASK.unpack(await context.read())
    blob = bytes(size)
    for _ in range(count):
        await context.write(blob)


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def service(self, details: Any) -> Any:
        handler = {"/plain/Sink": _sink, "/plain/Source": _source}[details.method]
        return grpc.stream_stream_rpc_method_handler(handler, _plain, _plain)


async def serve() -> None:
    server = aio.server(options=CHANNEL_OPTIONS)
    server.add_generic_rpc_handlers((_Handlers(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(0)


async def send(port: int, blob: bytes, count: int) -> None:
    """Send `count` messages, five at most unanswered."""
    async with aio.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS) as channel:
        call = channel.stream_stream("/plain/Sink", _plain, _plain)()
        room = asyncio.Semaphore(5)

        async def answers() -> None:
            for _ in range(count):
                await call.read()
                room.release()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(answers())
            for _ in range(count):
                await room.acquire()
                await call.write(blob)
        await call.done_writing()


async def receive(port: int, size: int, count: int) -> None:
    """Receive `count` messages of `size` bytes."""
    async with aio.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS) as channel:
        call = channel.stream_stream("/plain/Source", _plain, _plain)()
        await call.write(ASK.pack(count, size))
        for _ in range(count):
            await call.read()
        await call.done_writing()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve())
