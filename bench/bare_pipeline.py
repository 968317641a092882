"""The ceiling for replication: producer -> leader -> two followers -> ack, with opaque batches.

Nothing but bare gRPC streams between three processes that write what they get to a file and forget
it: no log, no offsets, no epochs. `python -m bench.bare_pipeline FOLDER [PORT PORT]` is a follower
or, with the ports of two followers, the leader.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suiro.loop_thread import new_loop
from suiro.transport.grpc_transport import CHANNEL_OPTIONS

import grpc  # isort: skip - grpc_transport has tuned the process before this import
from grpc import aio  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_BYTES_MAX = 256 << 20
"""Then the file is begun anew: the page cache must not grow."""


def _same(message: bytes) -> bytes:
    return message


class _File:
    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder / "bytes", os.O_CREAT | os.O_RDWR)
        self._at = 0

    def write(self, data: bytes) -> None:
        if self._at > FILE_BYTES_MAX:
            self._at = 0
        self._at += os.pwrite(self._fd, data, self._at)


class _Node(grpc.GenericRpcHandler):  # type: ignore[misc]
    """A follower writes and answers; the leader hands on first, and answers once both have."""

    def __init__(self, folder: Path, followers: list[Any]) -> None:
        self._file = _File(folder)
        self._followers = followers

    def service(self, _details: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(self._serve, _same, _same)

    async def _serve(self, _requests: Any, context: Any) -> None:
        calls = [channel.stream_stream("/bare/Push", _same, _same)() for channel in self._followers]
        written: asyncio.Queue[bool] = asyncio.Queue()
        async with asyncio.TaskGroup() as tasks:
            answering = tasks.create_task(self._answer(calls, written, context))
            while (data := await context.read()) is not aio.EOF:
                for call in calls:
                    await call.write(data)
                self._file.write(data)
                await written.put(True)
            await written.put(False)
            await answering
        for call in calls:
            await call.done_writing()

    async def _answer(self, calls: list[Any], written: asyncio.Queue[bool], context: Any) -> None:
        while await written.get():
            for call in calls:
                await call.read()
            await context.write(b"ok")


async def serve(folder: Path, ports: list[int]) -> None:
    channels = [aio.insecure_channel(f"127.0.0.1:{p}", options=CHANNEL_OPTIONS) for p in ports]
    server = aio.server(options=CHANNEL_OPTIONS)
    server.add_generic_rpc_handlers((_Node(folder, channels),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(0)


@contextmanager
def running() -> Iterator[int]:
    """A leader and two followers, each a process; the leader's port."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        followers = [_start(stack, Path(folder) / name) for name in ("one", "two")]
        yield _start(stack, Path(folder) / "leader", *followers)


def _start(stack: ExitStack, folder: Path, *ports: int) -> int:
    folder.mkdir()
    command = [sys.executable, "-m", "bench.bare_pipeline", str(folder), *map(str, ports)]
    process = stack.enter_context(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    )
    assert process.stdout is not None
    assert process.stdin is not None
    stack.callback(process.stdin.close)
    return int(process.stdout.readline())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(Path(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
