"""acks=all over three brokers beside the bare pipeline with the same bytes, and what one small
record takes at a thousand a second.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import suiro
from suiro import aio
from suiro.loop_thread import new_loop
from suiro.model.encode import encode_lists

from bench import bare_pipeline, plain_stream
from bench.harness import Row, row
from bench.streams import produce
from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

RECORD = b"v" * 100
BATCH_RECORDS = 9_800
BATCHES = 150
PACED_PER_S = 1_000
PACED_S = 5.0


def run(repeat: int = 5) -> list[Row]:
    batch = bytes(encode_lists(None, [RECORD] * BATCH_RECORDS, timestamps_ms=0))
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder), Layout(controllers=1, brokers=3)) as cluster,
        bare_pipeline.running() as bare_port,
        # One loop for all rounds: gRPC's poller stumbles over loops that were closed.
        asyncio.Runner(loop_factory=new_loop) as runner,
    ):
        bulk = _bulk(cluster, runner, bare_port, batch, repeat)
        return [*bulk, *_small(cluster, runner, repeat)]


def _bulk(
    cluster: LocalCluster, runner: asyncio.Runner, bare_port: int, batch: bytes, repeat: int
) -> list[Row]:
    bare: list[float] = []
    ours: list[float] = []
    records = BATCHES * BATCH_RECORDS
    # The two take turns, so that a noisy moment of the machine hits them alike.
    for number in range(repeat + 1):
        topic = f"bytes-{number}"
        with suiro.Admin(cluster.bootstrap) as admin:
            info = admin.create_topic(topic, partitions=1, replication_factor=3)
        leader = next(b for b in cluster.brokers if b.node_id == info.partitions[0].leader)
        figures = (
            records / _timed(runner, plain_stream.send(bare_port, batch, BATCHES)),
            records / _timed(runner, produce(leader.address, topic, batch, BATCHES)),
        )
        _remove(cluster, topic)
        if number:  # the first round warms up
            bare.append(figures[0])
            ours.append(figures[1])
    ceiling = row("bare pipeline, 1 MB batches, 100 B records", "records/s", bare)
    return [ceiling, row("acks=all, 3 brokers, the same", "records/s", ours, ceiling)]


def _small(cluster: LocalCluster, runner: asyncio.Runner, repeat: int) -> list[Row]:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic("small", partitions=1, replication_factor=3)
    half, late = [], []
    for number in range(repeat + 1):
        latencies_ms = sorted(runner.run(_paced(cluster.bootstrap)))
        if number:
            half.append(statistics.median(latencies_ms))
            late.append(latencies_ms[len(latencies_ms) * 99 // 100])
    what = f"one 100 B record, acks=all, {PACED_PER_S} a second"
    return [row(f"{what}: p50", "ms", half), row(f"{what}: p99", "ms", late)]


async def _paced(bootstrap: str) -> list[float]:
    """How long each record took, sent one by one at an even pace. (The loop's own clock only knows
    milliseconds.)
    """
    latencies_ms: list[float] = []

    async def send(producer: aio.Producer) -> None:
        began_s = time.perf_counter()
        await producer.send("small", RECORD)
        latencies_ms.append((time.perf_counter() - began_s) * 1000)

    async with aio.Producer(bootstrap) as producer, asyncio.TaskGroup() as tasks:
        await producer.send("small", RECORD)
        began_s = time.perf_counter()
        for number in range(int(PACED_PER_S * PACED_S)):
            await asyncio.sleep(max(began_s + number / PACED_PER_S - time.perf_counter(), 0))
            tasks.create_task(send(producer))
    return latencies_ms


def _remove(cluster: LocalCluster, topic: str) -> None:
    """Delete a topic and wait until its files are gone: see bench.node."""
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.delete_topic(topic)
    for broker in cluster.brokers:
        while any(p.name.startswith(topic) for p in (broker.folder / "data/log").iterdir()):
            time.sleep(0.01)
    os.sync()


def _timed(runner: asyncio.Runner, work: Coroutine[Any, Any, None]) -> float:
    start = time.perf_counter()
    runner.run(work)
    return time.perf_counter() - start
