"""The network between the nodes of a test cluster: a small proxy in front of each of them.

Every node is known to all others by its proxy's address, so each byte between two nodes passes
here, and can be held back. A proxy knows who has called it by the owner of the caller's port, as
the kernel tells it (/proc): no node has to cooperate, and nothing needs root.

A direction that is cut is silent: bytes wait, as they do when packets get lost, connections stay
open, and what waited goes on when it is healed. The proxy of a node that was killed refuses
connections: that is how the others learn of its death.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

HOST: Final = "127.0.0.1"
CHUNK_BYTES: Final = 1 << 18
CLIENT: Final = "client"
"""Whoever is none of the nodes."""
SOCKET_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""gRPC's sockets are of both kinds, and reach IPv4 addresses from the second one."""


class Links:
    """The proxies, and which directions are cut. Its loop runs in a thread of its own."""

    def __init__(self, pids: Callable[[], dict[str, int]]) -> None:
        self._pids = pids
        self._cut: frozenset[tuple[str, str]] = frozenset()
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="suiro-links")
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        self._doors: dict[str, _Door] = {}

    def add(self, name: str, port: int) -> int:
        """A proxy for the node that listens on this port; the port where others find it. Nobody is
        let in before `open`.
        """
        self._doors[name] = door = _Door(name, port, _bound(0))
        return door.found_at

    def open(self, name: str) -> None:
        """The node runs, or is about to."""
        self._run(self._open(self._doors[name]))

    def shut(self, name: str) -> None:
        """The node is dead: refuse connections, as its machine would."""
        self._run(self._shut(self._doors[name]))

    def set_cut(self, cut: frozenset[tuple[str, str]]) -> None:
        """Hold back all that goes from the first to the second of these pairs, and nothing else."""
        self._run(self._set_cut(cut))

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # -- in the loop ------------------------------------------------------------------------------

    async def _open(self, door: _Door) -> None:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._connect(door, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        if door.server is None:
            door.server = await asyncio.start_server(connected, sock=door.socket, limit=CHUNK_BYTES)

    async def _shut(self, door: _Door) -> None:
        """The port stays ours: a socket that is bound and does not listen refuses."""
        if door.server is not None:
            door.server.close()
            door.server = None
            door.socket = _bound(door.found_at)

    async def _set_cut(self, cut: frozenset[tuple[str, str]]) -> None:
        self._cut = cut
        self._changed.set()
        self._changed = asyncio.Event()

    async def _close(self) -> None:
        for door in self._doors.values():
            if door.server is not None:
                door.server.close()
            door.socket.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(
        self, door: _Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.closing(writer):
            peer = writer.get_extra_info("peername")
            caller = await asyncio.to_thread(owner_of, peer[1], self._pids())
            try:
                inner_reader, inner_writer = await asyncio.open_connection(
                    HOST, door.port, limit=CHUNK_BYTES
                )
            except OSError:
                return  # the node is down: its caller sees the connection end
            with contextlib.closing(inner_writer):
                await _first_of(
                    self._pump(reader, inner_writer, (caller, door.name)),
                    self._pump(inner_reader, writer, (door.name, caller)),
                )

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: tuple[str, str]
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                while way in self._cut:
                    await self._changed.wait()
                writer.write(data)
                await writer.drain()


@dataclass(slots=True)
class _Door:
    """One node's proxy: where the node listens, and where it is found while it runs."""

    name: str
    port: int
    socket: socket.socket
    server: asyncio.Server | None = None
    found_at: int = field(init=False)

    def __post_init__(self) -> None:
        self.found_at = self.socket.getsockname()[1]


def _bound(port: int) -> socket.socket:
    """A socket that has this port, or a free one, and does not listen."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((HOST, port))
    return made


async def _first_of(*works: Coroutine[Any, Any, None]) -> None:
    """Until one of them has ended; the others are ended with it."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def owner_of(port: int, pids: dict[str, int]) -> str:
    """Which of these processes has the socket that is bound to this local port."""
    inode = _inode_of(port)
    for name, pid in pids.items() if inode else ():
        with contextlib.suppress(OSError):  # it ends while we look
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(entry.readlink()) == f"socket:[{inode}]":
                        return name
    return CLIENT


def _inode_of(port: int) -> str | None:
    """From lines like `1: 0100007F:C6A2 0100007F:2616 01 … inode …`."""
    local = f"{socket.inet_aton(HOST)[::-1].hex().upper()}:{port:04X}"
    for table in SOCKET_TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[1].endswith(local):
                return fields[9]
    return None
