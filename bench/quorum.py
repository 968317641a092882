"""The metadata quorum: synced changes per second over three processes, beside the rate of synced
RocksDB writes of one process and the rate of calls that change nothing, all taken in turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from suiro._proto.admin_pb2 import TransferControllerRequest
from suiro.loop_thread import new_loop
from suiro.model.error_base import SuiroError
from suiro.model.records import ConfigResource
from suiro.transport.methods import AdminMethods

from bench.harness import Row, row
from cluster.config import NodeConfig
from cluster.controller_quorum.controller import Controller
from cluster.host.offload import Threads
from cluster.host.server import Server
from cluster.host.store import RocksStore
from cluster.launch import real_env
from cluster.storage import load_identity
from tests.cluster.quorum_harness import SETTING, MetadataClient, RealQuorum, paper_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENTS = (1, 16, 64)
SECONDS = 3.0
WRITE = b"x" * 80
"""About what one change of a setting takes in the log."""


def run(repeat: int = 5) -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=new_loop) as runner,
    ):
        return runner.run(_measure(Path(folder), repeat))


async def _measure(root: Path, repeat: int) -> list[Row]:
    quorum = RealQuorum(root, 3)
    store = RocksStore(root / "ceiling")
    keys = (number.to_bytes(8, "big") for number in itertools.count())
    synced: list[float] = []
    asked: list[float] = []
    rates: dict[int, list[float]] = {count: [] for count in CLIENTS}
    waits_ms: dict[int, list[float]] = {count: [] for count in CLIENTS}
    try:
        await quorum.leader()
        async with paper_broker(quorum):
            clients = [
                MetadataClient(quorum, f"client-{n}", topic_every=0) for n in range(max(CLIENTS))
            ]
            for client in clients:
                await client.begin()
            for _ in range(repeat):
                synced.append(await asyncio.to_thread(_write, store, keys))
                asked.append(await _ask(quorum))
                for count in CLIENTS:
                    acks = await _load(clients[:count])
                    rates[count].append(len(acks) / SECONDS)
                    waits_ms[count].append(statistics.median(acks))
            inside = [await _propose(quorum) for _ in range(repeat)]
    finally:
        store.close()
        await quorum.close()
    ceiling = row("synced RocksDB writes, one process", "1/s", synced)
    rows = [ceiling, row("calls that change nothing, 16 callers, 1 process", "1/s", asked)]
    rows.append(row("proposals, 16 callers in the leader, 3 processes", "1/s", inside, ceiling))
    for count in CLIENTS:
        rows += [
            row(f"changes, {count} clients, 3 processes", "1/s", rates[count], ceiling),
            row(f"one change, {count} clients, median", "ms", waits_ms[count]),
        ]
    return rows


def _write(store: RocksStore, keys: Iterator[bytes]) -> float:
    """Synced writes per second, one after the other."""
    started_s = time.perf_counter()
    writes = 0
    while time.perf_counter() - started_s < SECONDS / 2:
        store.write(puts=[(next(keys), WRITE)], sync=True)
        writes += 1
    return writes / (time.perf_counter() - started_s)


async def _ask(quorum: RealQuorum) -> float:
    """Calls per second that one controller answers at once, without disk or peers."""
    node = await quorum.leader()
    answers = 0

    async def ask_forever() -> None:
        nonlocal answers
        while True:
            await quorum.describe(node)
            answers += 1

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(ask_forever()) for _ in range(16)]
        await asyncio.sleep(SECONDS / 2)
        for task in running:
            task.cancel()
    return answers / (SECONDS / 2)


async def _propose(quorum: RealQuorum) -> float:
    """Changes per second without the clients' calls: one of the three controllers runs in this
    process for a while and leads, and 16 callers have its machine decide.
    """
    node = quorum.nodes[1]
    node.kill()
    threads = Threads("bench", 4)
    config = NodeConfig.from_toml(node.config_path)
    env = real_env(threads)
    controller = Controller(config, load_identity(env.fs, config.data_dir), env)
    server = Server(controller.services())
    await server.start(config.listen)
    running = asyncio.create_task(controller.run())
    try:
        while not controller.is_serving:
            with contextlib.suppress(SuiroError, TimeoutError):
                async with asyncio.timeout(2):
                    await MetadataClient(quorum, "operator").call(
                        AdminMethods.TRANSFER_CONTROLLER, TransferControllerRequest(to=1)
                    )
            await asyncio.sleep(0.1)
        return await _decide_for(controller)
    finally:
        running.cancel()
        await asyncio.wait([running])
        await server.stop(0)
        await env.transport.close()
        threads.close()
        node.start()
        await quorum.caught_up()


async def _decide_for(controller: Controller) -> float:
    decided = 0

    async def decide_forever(caller: int) -> None:
        nonlocal decided
        changes: dict[str, str | None] = {}
        for number in itertools.count(1):
            changes[SETTING] = str(number)
            await controller.decide(
                lambda machine: machine.decide_alter_config(
                    ConfigResource.TOPIC, f"client-{caller}", changes
                )
            )
            decided += 1

    async with asyncio.TaskGroup() as tasks:
        callers = [tasks.create_task(decide_forever(caller)) for caller in range(16)]
        await asyncio.sleep(SECONDS)
        for task in callers:
            task.cancel()
    return decided / SECONDS


async def _load(clients: list[MetadataClient]) -> list[float]:
    """Let the clients change as fast as they are answered; how long each answer took, in ms."""
    for client in clients:
        client.told.acks_s.clear()
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(_change_forever(client)) for client in clients]
        await asyncio.sleep(SECONDS)
        for task in running:
            task.cancel()
    return [
        (heard_s - asked_s) * 1000 for client in clients for asked_s, heard_s in client.told.acks_s
    ]


async def _change_forever(client: MetadataClient) -> None:
    while True:
        await client.change()
