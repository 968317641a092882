"""A drawn cluster on virtual time, its clients, and who keeps its processes alive."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from suiro.aio import Admin, Consumer, Producer
from suiro.client_env import ClientEnv
from suiro.model.topics import INTERNAL_TOPIC_CONFIGS
from suiro.verify.append import Append, Size
from suiro.verify.banking import Bank
from suiro.verify.table_work import TableWork

from tests.sim.loop import LoopClock, on_machine
from tests.sim.world import CONTROLLER_FROM, World, world
from tests.workloads.copying import Copy
from tests.workloads.grouping import Group

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from random import Random

    from suiro.verify.clients import Workload

    from tests.sim.swarm_plan import SwarmPlan
    from tests.sim.world import SimNode

WORKS: dict[str, Callable[[SimClients, int], Workload]] = {
    "append": lambda clients, pace: Append(clients, Size(pause_s=0.1 * pace)),
    "group": lambda clients, pace: Group(clients, pause_s=0.1 * pace),
    "bank": lambda clients, pace: Bank(clients, pause_s=0.25 * pace),
    "copy": lambda clients, pace: Copy(clients, pause_s=0.15 * pace),
    "table": lambda clients, pace: TableWork(clients, pause_s=0.1 * pace),
}
REVIVE_S = 0.5


class SimClients:
    """Implements `Clients`: each name is a machine of its own."""

    def __init__(self, cluster: World, rng: Random, flush_policy: str) -> None:
        self.cluster = cluster
        self.rng = rng
        self.replication_factor = 3
        self.topic_configs = {"flush.policy": flush_policy}
        self.names: dict[str, None] = {}
        """Of those that have been started, in order."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def bootstrap(self) -> str:
        return ",".join(map(str, self.cluster.bootstrap))

    def now_s(self) -> float:
        return self.cluster.loop.time()

    def env(self, name: str) -> ClientEnv:
        return ClientEnv(
            self.cluster.network.transport(name), self.rng, LoopClock(self.cluster.loop).now_ms
        )

    def producer(self, name: str, **settings: Any) -> Producer:
        return Producer(self.bootstrap, env=self.env(name), client_id=name, **settings)

    def consumer(self, name: str, **settings: Any) -> Consumer:
        settings = {"auto_offset_reset": "earliest"} | settings
        return Consumer(self.bootstrap, env=self.env(name), client_id=name, **settings)

    def admin(self) -> Admin:
        return Admin(self.bootstrap, env=self.env("admin"))

    def spawn(self, name: str, life: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.names[name] = None
        task = self.cluster.loop.create_task(life, name=name, context=on_machine(name))
        self._tasks.append(task)
        return task

    async def end(self) -> None:
        """Nobody is left behind, also when a run is given up."""
        left = [task for task in self._tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)


class SwarmWorld:
    """What the nemesis and the phases of a run have in their hands."""

    def __init__(self, cluster: World, plan: SwarmPlan, rng: Random) -> None:
        self.cluster = cluster
        self.plan = plan
        self.rng = rng
        self.clients = SimClients(cluster, rng, plan.flush_policy)
        self.works: list[Workload] = [
            WORKS[name](self.clients, plan.pace) for name in plan.workloads
        ]
        self.deaths: list[str] = []
        """Processes that ended by themselves, and why."""
        self.excused: set[str] = set()
        """Those whose disk was broken: they may end."""

    @property
    def coordinators(self) -> list[SimNode]:
        return [node for node in self.cluster.nodes.values() if "txn" in node.roles]

    @property
    def controllers(self) -> list[SimNode]:
        return [node for node in self.cluster.nodes.values() if "controller" in node.roles]

    def note(self, event: str, *facts: str | int | float) -> None:
        self.cluster.trace.add(f"** {event}", *facts)

    async def supervise(self) -> None:
        """What ends by itself is started again, as a StatefulSet would."""
        while True:
            await asyncio.sleep(REVIVE_S)
            for node in list(self.cluster.nodes.values()):
                if node.failure is not None:
                    self._on_death(node, node.failure)
                    node.kill()
                    node.start()

    def _on_death(self, node: SimNode, failure: BaseException) -> None:
        self.note("died", node.name, repr(failure)[:200])
        if node.name not in self.excused:
            self.deaths.append(f"{node.name} ended by itself: {failure!r}")


@contextlib.asynccontextmanager
async def swarm_world(rng: Random, plan: SwarmPlan) -> AsyncIterator[SwarmWorld]:
    """The cluster of a plan, with its topics made; leaves nothing behind."""
    internal = {"flush.policy": plan.flush_policy}
    with patch.dict(INTERNAL_TOPIC_CONFIGS, internal):
        async with world(
            rng,
            controllers=plan.controllers,
            brokers=plan.brokers,
            coordinators=plan.coordinators,
            pace=plan.pace,
            offsets_partitions=2,
            transactions_partitions=2,
        ) as cluster:
            made = SwarmWorld(cluster, plan, rng)
            supervisor = asyncio.create_task(made.supervise(), name="supervisor")
            try:
                for work in made.works:
                    await work.prepare()
                yield made
            finally:
                supervisor.cancel()
                await asyncio.gather(supervisor, return_exceptions=True)
                await made.clients.end()


def next_controller(cluster: World) -> int:
    return 1 + max(n for n in cluster.nodes if n > CONTROLLER_FROM)
