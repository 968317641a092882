"""A node's page for Prometheus and for load balancers: `GET /metrics` and `GET /health`, over HTTP.

One request per connection; what is asked otherwise, too slowly or by too many is refused, and no
input can do more than be refused.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro.model.errors import Unavailable

from cluster.host.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.ids import Address

log = logging.getLogger("suiro.node")

REQUEST_BYTES_MAX: Final = 8_192
"""Request line and headers; what Prometheus sends is a few hundred."""

REQUEST_WORDS: Final = 3
REQUEST_TIMEOUT_S: Final = 5.0
CONNECTIONS_MAX: Final = 32
"""At once: scrapers and probes are few, so more is a mistake or mischief."""

PLAIN: Final = "text/plain; charset=utf-8"
REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    content_type: str = PLAIN

    def encode(self) -> bytes:
        head = (
            f"HTTP/1.1 {self.status} {REASONS[self.status]}\r\n"
            f"Content-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + self.body


class MetricsServer:
    """`render` makes the page of the moment; `is_ready` is what the health check answers."""

    def __init__(self, render: Callable[[], bytes], is_ready: Callable[[], bool]) -> None:
        self._render = render
        self._is_ready = is_ready
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listen: Address) -> int:
        """Listen; the port, which is a free one if port 0 was asked for."""
        try:
            self._server = await asyncio.start_server(
                self._accept, listen.host, listen.port, limit=REQUEST_BYTES_MAX
            )
        except OSError as error:
            raise Unavailable(f"metrics cannot be served at {listen}: {error}") from None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Fine if it was never started."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= CONNECTIONS_MAX:
            writer.close()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="metrics")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                writer.write((await self._answer_to(reader)).encode())
                await writer.drain()
        except (TimeoutError, OSError) as error:
            log.debug("a request for metrics broke: %r", error)
        finally:
            writer.close()

    async def _answer_to(self, reader: asyncio.StreamReader) -> _Answer:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return _Answer(400, b"this is no request\n")
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != REQUEST_WORDS or not words[2].startswith(b"HTTP/1."):
            return _Answer(400, b"this is no request\n")
        if words[0] != b"GET":
            return _Answer(405, b"only GET\n")
        match words[1].partition(b"?")[0]:
            case b"/metrics":
                return _Answer(200, self._render(), CONTENT_TYPE)
            case b"/health":
                return _Answer(200, b"ready\n") if self._is_ready() else _Answer(503, b"starting\n")
            case _:
                return _Answer(404, b"there is /metrics and /health\n")
