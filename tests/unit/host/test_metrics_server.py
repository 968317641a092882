"""The page over a real socket, and what garbage gets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families
from suiro.model.errors import Unavailable
from suiro.model.ids import Address

from cluster.host.metrics import CONTENT_TYPE, Metrics
from cluster.host.metrics_server import CONNECTIONS_MAX, REQUEST_BYTES_MAX, MetricsServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HERE = Address("127.0.0.1", 0)


@contextlib.asynccontextmanager
async def serving(*, is_ready: bool = True) -> AsyncIterator[int]:
    metrics = Metrics()
    metrics.elections.of().add(3)
    server = MetricsServer(metrics.render, lambda: is_ready)
    try:
        yield await server.start(HERE)
    finally:
        await server.stop()


async def answer_to(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(OSError):  # it may answer before it has read everything
        writer.write(request)
        writer.write_eof()
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    return answer


async def test_the_page_is_served() -> None:
    async with serving() as port:
        answer = await answer_to(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, page = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Type: {CONTENT_TYPE}".encode() in head
    assert f"Content-Length: {len(page)}".encode() in head
    families = {f.name: f for f in text_string_to_metric_families(page.decode())}
    assert families["suiro_quorum_elections"].samples[0].value == 3


@pytest.mark.parametrize(("is_ready", "status"), [(True, b"200"), (False, b"503")])
async def test_health_is_readiness(is_ready: bool, status: bytes) -> None:
    async with serving(is_ready=is_ready) as port:
        answer = await answer_to(port, b"GET /health HTTP/1.0\r\n\r\n")
    assert answer.split(b" ")[1] == status


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics?x=1 HTTP/1.1\r\n\r\n", b"200"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"", b"400"),
        (b"GET /metrics", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"\x00\xff\xfe\r\n\r\n", b"400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nx: " + b"y" * REQUEST_BYTES_MAX, b"400"),
    ],
)
async def test_garbage_is_refused_and_the_next_one_served(
    request_bytes: bytes, status: bytes
) -> None:
    async with serving() as port:
        assert (await answer_to(port, request_bytes)).split(b" ")[1] == status
        again = await answer_to(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        assert again.startswith(b"HTTP/1.1 200")


async def test_too_many_connections_are_closed() -> None:
    async with serving() as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS_MAX)]
        assert await answer_to(port, b"GET /metrics HTTP/1.1\r\n\r\n") == b""
        for _, writer in held:
            writer.close()
            await writer.wait_closed()


async def test_a_port_that_is_taken_is_refused() -> None:
    async with serving() as port:
        second = MetricsServer(Metrics().render, lambda: True)
        with pytest.raises(Unavailable, match="metrics cannot be served"):
            await second.start(Address("127.0.0.1", port))
        await second.stop()
