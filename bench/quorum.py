"""The metadata quorum: synced changes per second over three processes, beside the rate of synced
RocksDB writes of one process and the rate of rpcs that change nothing, all taken in turns.

The clients are one process more, as a broker with so many things to ask would be: each waits for
the answer to its change before it makes the next, and all share one stream to the controller.
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

from suiro._proto.admin_pb2 import TOPIC, AlterConfigsRequest, TransferControllerRequest
from suiro.loop_thread import new_loop
from suiro.model.error_base import SuiroError
from suiro.model.records import ConfigResource
from suiro.transport.methods import AdminMethods

from bench.harness import Row, row
from cluster.config import NodeConfig
from cluster.controller_quorum.controller import Controller
from cluster.host.offload import Threads
from cluster.host.quorum_client import QuorumClient
from cluster.host.server import Server
from cluster.host.store import RocksStore
from cluster.launch import real_env
from cluster.storage import load_identity
from tests.cluster.quorum_harness import SETTING, MetadataClient, RealQuorum, paper_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    Change = Callable[[AlterConfigsRequest], Awaitable[None]]

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
    try:
        await quorum.leader()
        async with paper_broker(quorum), _stream_client(quorum) as client:
            for n in range(max(CLIENTS)):
                await MetadataClient(quorum, f"client-{n}").begin()
            return await _take_turns(quorum, client, store, repeat)
    finally:
        store.close()
        await quorum.close()


async def _take_turns(
    quorum: RealQuorum, client: QuorumClient, store: RocksStore, repeat: int
) -> list[Row]:
    keys = (number.to_bytes(8, "big") for number in itertools.count())
    synced, asked, single = [], [], []
    rates: dict[int, list[float]] = {count: [] for count in CLIENTS}
    waits_ms: dict[int, list[float]] = {count: [] for count in CLIENTS}
    for _ in range(repeat):
        synced.append(await asyncio.to_thread(_write, store, keys))
        asked.append(await _ask(quorum))
        single.append(len(await _load(_by_rpcs(quorum), 16)) / SECONDS)
        for count in CLIENTS:
            acks = await _load(_by_stream(client), count)
            rates[count].append(len(acks) / SECONDS)
            waits_ms[count].append(statistics.median(acks))
    inside = [await _propose(quorum) for _ in range(repeat)]
    ceiling = row("synced RocksDB writes, one process", "1/s", synced)
    rows = [
        ceiling,
        row("rpcs that change nothing, 16 callers, 1 process", "1/s", asked),
        row("changes, 16 callers in the leader, 3 processes", "1/s", inside, ceiling),
        row("changes, 16 clients, an rpc each, 3 processes", "1/s", single, ceiling),
    ]
    for count in CLIENTS:
        rows += [
            row(f"changes, {count} clients, one stream, 3 processes", "1/s", rates[count], ceiling),
            row(f"one change, {count} clients, one stream, median", "ms", waits_ms[count]),
        ]
    return rows


@contextlib.asynccontextmanager
async def _stream_client(quorum: RealQuorum) -> AsyncIterator[QuorumClient]:
    """What a broker calls the controllers with, in this process, which is none of theirs."""
    threads = Threads("bench client", 1)
    env = real_env(threads)
    client = QuorumClient(env, [node.address for node in quorum.nodes.values()])
    holding = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        holding.cancel()
        await asyncio.wait([holding])
        await env.transport.close()
        threads.close()


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
    server = Server(controller.services(), env.metrics)
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


def _by_stream(client: QuorumClient) -> Change:
    async def change(request: AlterConfigsRequest) -> None:
        await client.call(AdminMethods.ALTER_CONFIGS, request, timeout_s=10)

    return change


def _by_rpcs(quorum: RealQuorum) -> Change:
    operator = MetadataClient(quorum, "operator")

    async def change(request: AlterConfigsRequest) -> None:
        await operator.call(AdminMethods.ALTER_CONFIGS, request)

    return change


async def _load(change: Change, clients: int) -> list[float]:
    """So many clients, each of which makes its next change when the one before is acknowledged; how
    long each took, in ms.
    """
    waits_ms: list[float] = []

    async def change_forever(client: int) -> None:
        for number in itertools.count(1):
            request = AlterConfigsRequest(
                resource=TOPIC, name=f"client-{client}", set={SETTING: str(number)}
            )
            asked_s = time.perf_counter()
            await change(request)
            waits_ms.append((time.perf_counter() - asked_s) * 1000)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(change_forever(client)) for client in range(clients)]
        await asyncio.sleep(SECONDS)
        for task in running:
            task.cancel()
    return waits_ms
