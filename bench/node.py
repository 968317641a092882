"""One node: produce and consume over its streams beside a bare gRPC stream with the same bytes,
what the SDK makes of it, and how long a start takes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import suiro
from suiro.loop_thread import new_loop
from suiro.model.encode import encode_lists

from bench import plain_stream
from bench.harness import Row, row
from bench.streams import fetch, produce
from tests.cluster.harness import SingleNode

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Any

RECORD = b"v" * 100
BATCH_RECORDS = 9_000
BATCHES = 200


def run(repeat: int = 5) -> list[Row]:
    batch = bytes(
        encode_lists([b"k" * 16] * BATCH_RECORDS, [RECORD] * BATCH_RECORDS, timestamps_ms=0)
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        SingleNode(Path(folder)) as node,
        plain_server() as port,
        # One loop for all rounds: gRPC's poller stumbles over loops that were closed.
        asyncio.Runner(loop_factory=new_loop) as runner,
    ):
        rows = [*_streams(node, runner, port, batch, repeat), *_sdk(node, repeat)]
    return [*rows, _start(repeat)]


def _streams(
    node: SingleNode, runner: asyncio.Runner, port: int, batch: bytes, repeat: int
) -> list[Row]:
    topics = (f"bytes-{number}" for number in itertools.count())
    sent: list[float] = []
    plain_sent: list[float] = []
    got: list[float] = []
    plain_got: list[float] = []
    megabytes = BATCHES * len(batch) / 1e6
    # The four take turns, so that a noisy moment of the machine hits them all alike.
    for round_number in range(repeat + 1):
        topic = next(topics)
        with suiro.Admin(node.bootstrap) as admin:
            admin.create_topic(topic)
        figures = (
            megabytes / _timed(runner, plain_stream.send(port, batch, BATCHES)),
            megabytes / _timed(runner, produce(node.address, topic, batch, BATCHES)),
            megabytes / _timed(runner, plain_stream.receive(port, 2 * len(batch), BATCHES // 2)),
            megabytes / _timed(runner, fetch(node.address, topic, BATCHES * len(batch))),
        )
        _remove(node, topic)
        if round_number:  # the first round warms up
            for figure, into in zip(figures, (plain_sent, sent, plain_got, got), strict=True):
                into.append(figure)
    plain_send = row("plain gRPC stream, 1 MB messages up", "MB/s", plain_sent)
    plain_receive = row("plain gRPC stream, 2 MB messages down", "MB/s", plain_got)
    return [
        plain_send,
        row("produce stream, 1 MB batches, one node", "MB/s", sent, plain_send),
        plain_receive,
        row("fetch stream, 1 MB batches, one node", "MB/s", got, plain_receive),
    ]


def _remove(node: SingleNode, topic: str) -> None:
    """Delete a topic and wait until its files are gone, and with them their pages in the cache.

    A virtual machine pays dearly for memory that it touches for the first time (measured: file
    writes of 2,000 MB/s fall to 150), so rounds must not make the page cache grow.
    """
    with suiro.Admin(node.bootstrap) as admin:
        admin.delete_topic(topic)
    while any(path.name.startswith(topic) for path in (node.directory / "data/log").iterdir()):
        time.sleep(0.01)
    os.sync()


def _sdk(node: SingleNode, repeat: int) -> list[Row]:
    count = 200_000
    sent, polled = [], []
    for number in range(repeat):
        topic = f"records-{number}"
        with suiro.Producer(node.bootstrap) as producer:
            start = time.perf_counter()
            for _ in range(count):
                producer.send(topic, RECORD)
            producer.flush()
            sent.append(count / (time.perf_counter() - start))
        with suiro.Consumer(node.bootstrap, auto_offset_reset="earliest") as consumer:
            start = time.perf_counter()
            consumer.assign(consumer.partitions_of(topic))
            seen = 0
            while seen < count:
                seen += len(consumer.poll(max_records=10_000))
            polled.append(count / (time.perf_counter() - start))
    return [
        row("SDK send loop, 100 B values, one node", "records/s", sent),
        row("SDK poll loop, 100 B values, one node", "records/s", polled),
    ]


def _start(repeat: int) -> Row:
    figures = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            with SingleNode(Path(folder)) as node, suiro.Producer(node.bootstrap) as producer:
                producer.send("first", b"record").result(10)
                figures.append(time.perf_counter() - start)
    return row("`suiro up` on an empty directory to first acked record", "s", figures)


def _timed(runner: asyncio.Runner, work: Coroutine[Any, Any, None]) -> float:
    start = time.perf_counter()
    runner.run(work)
    return time.perf_counter() - start


@contextmanager
def plain_server() -> Iterator[int]:
    """The other end of a bare gRPC stream, in a process of its own; its port."""
    command = [sys.executable, "-m", "bench.plain_stream"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield int(process.stdout.readline())
        process.stdin.close()
