"""Check a live cluster: workloads on topics of their own, then all that was promised."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suiro.aio import Admin, Consumer, Producer
from suiro.verify.append import Append, Size
from suiro.verify.banking import Bank
from suiro.verify.table_work import TableWork

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from random import Random

    from suiro.verify.clients import Workload

SIZE = Size(partitions=3, writers=2, batch_records=20, pause_s=0.05, filler_bytes=40)


class LiveClients:
    """Implements `Clients` with real connections, on real time."""

    def __init__(self, bootstrap: str | None, rng: Random) -> None:
        self.bootstrap = bootstrap
        self.rng = rng
        self.replication_factor = 3
        self.topic_configs: Mapping[str, str] = {}

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def producer(self, name: str, **settings: Any) -> Producer:
        return Producer(self.bootstrap, client_id=name, **settings)

    def consumer(self, name: str, **settings: Any) -> Consumer:
        settings = {"auto_offset_reset": "earliest"} | settings
        return Consumer(self.bootstrap, client_id=name, **settings)

    def admin(self) -> Admin:
        return Admin(self.bootstrap)

    def spawn(self, name: str, life: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(life, name=name)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was done, and what was wrong with it."""

    done: Mapping[str, int]
    """By workload, how much was acknowledged and checked."""
    violations: list[str]
    errors: Mapping[str, int]
    """What senders were told, by kind: faults that clients saw, not broken promises."""


async def verify(bootstrap: str | None, seconds: float, rng: Random) -> Verdict:
    """Write, read and move money for so long; the topics are deleted afterwards."""
    clients = LiveClients(bootstrap, rng)
    brokers = await _brokers(clients)
    clients.replication_factor = min(3, brokers)
    prefix = f"suiro-verify-{rng.getrandbits(32):08x}"
    append = Append(clients, SIZE, f"{prefix}-log")
    works: list[Workload] = [
        append,
        Bank(clients, pause_s=0.02, topic=f"{prefix}-bank"),
        TableWork(clients, pause_s=0.02, topic=f"{prefix}-table"),
    ]
    try:
        return await _run(works, append, seconds)
    finally:
        async with clients.admin() as admin:
            for name in await admin.topics():
                if name.startswith(prefix):
                    await admin.delete_topic(name)


async def _run(works: list[Workload], append: Append, seconds: float) -> Verdict:
    for work in works:
        await work.prepare()
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for work in works:
            tasks.create_task(work.run(stop), name=work.name)
        await asyncio.sleep(seconds)
        stop.set()
    violations = [f"{work.name}: {line}" for work in works for line in await work.finish()]
    return Verdict({w.name: w.done for w in works}, violations, Counter(append.failures))


async def _brokers(clients: LiveClients) -> int:
    async with clients.admin() as admin:
        return len(await admin.holders())
