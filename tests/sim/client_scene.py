"""Clients of the SDK on a simulated cluster: what the tests of transactions have in common."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suiro.aio import Admin, Consumer, Producer
from suiro.client_env import ClientEnv
from suiro.model.ids import TopicPartition

from tests.sim.loop import LoopClock
from tests.sim.world import World, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from suiro.model.record import Record

    from tests.sim.world import SimNode

COORDINATORS = (11, 12)


@dataclass
class ClientScene:
    """A cluster with coordinators, and clients that are known to the network by their names."""

    cluster: World
    rng: Random

    @property
    def bootstrap(self) -> str:
        return ",".join(map(str, self.cluster.bootstrap))

    @property
    def victims(self) -> list[SimNode]:
        """Whoever may be killed: brokers and coordinators."""
        return [*self.cluster.brokers, *(self.cluster.nodes[number] for number in COORDINATORS)]

    def env(self, name: str) -> ClientEnv:
        clock = LoopClock(asyncio.get_running_loop())
        return ClientEnv(self.cluster.network.transport(name), self.rng, clock.now_ms)

    def producer(self, name: str, **settings: Any) -> Producer:
        return Producer(self.bootstrap, env=self.env(name), client_id=name, **settings)

    def consumer(self, name: str, **settings: Any) -> Consumer:
        settings = {"auto_offset_reset": "earliest"} | settings
        return Consumer(self.bootstrap, env=self.env(name), client_id=name, **settings)

    async def create_topic(self, name: str, partitions: int) -> None:
        async with Admin(self.bootstrap, env=self.env("admin")) as admin:
            await admin.create_topic(
                name,
                partitions=partitions,
                replication_factor=3,
                configs={"min.insync.replicas": "2"},
            )

    async def fail_over(self, victim: SimNode) -> None:
        """kill -9, and back after a while."""
        victim.kill()
        await asyncio.sleep(self.rng.uniform(0.1, 3.0))
        victim.start()
        await victim.ready()

    async def read_all(self, topic: str, partitions: int) -> list[list[Record]]:
        """What a reader of committed records finds until nothing comes any more, by partition."""
        wheres = [TopicPartition(topic, number) for number in range(partitions)]
        found: list[list[Record]] = [[] for _ in wheres]
        async with self.consumer("reader of all") as consumer:
            await consumer.assign(wheres)
            quiet = 0
            while quiet < 3:
                polled = await consumer.poll(1.0)
                quiet = 0 if polled else quiet + 1
                for record in polled:
                    found[record.partition].append(record)
        return found


@asynccontextmanager
async def client_scene(rng: Random, **settings: Any) -> AsyncIterator[ClientScene]:
    async with world(rng, coordinators=len(COORDINATORS), **settings) as cluster:
        yield ClientScene(cluster, rng)
