"""Whole nodes with two log directories each, and ways to break one: for the tests of disks."""

from __future__ import annotations

import asyncio
import errno
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from suiro import aio
from suiro.model.ids import TopicPartition

from tests.sim.client_scene import ClientScene, client_scene

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from suiro.connection import PartitionInfo

    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from tests.sim.disk import Operation
    from tests.sim.world import SimNode

A, B = Path("/data/a"), Path("/data/b")
TOPIC = "t"
PARTITIONS = 4


class DiskScene(ClientScene):
    """A cluster whose topic `t` has four partitions on three brokers with two disks each."""

    admin: aio.Admin
    sent: list[bytes]

    async def begin(
        self, *, replication_factor: int = 3, configs: dict[str, str] | None = None
    ) -> None:
        self.sent = []
        settings = dict(configs or {})
        if replication_factor > 1:
            settings.setdefault("min.insync.replicas", "2")
        await self.admin.create_topic(
            TOPIC,
            partitions=PARTITIONS,
            replication_factor=replication_factor,
            configs=settings,
        )

    async def send(self, count: int, size: int = 200) -> None:
        """To every partition in turn; all of them acknowledged, or the test fails."""
        first = len(self.sent)
        async with self.producer(f"writer {first}", delivery_timeout_ms=30_000) as producer:
            for number in range(first, first + count):
                value = b"%0*d" % (size, number)
                await producer.send(TOPIC, value, partition=number % PARTITIONS)
                self.sent.append(value)

    async def check_all_there(self) -> None:
        """P1, P2: what was acknowledged is read, each once, in order."""
        found = await self.read_all(TOPIC, PARTITIONS)
        for number, records in enumerate(found):
            assert [record.value for record in records] == self.sent[number::PARTITIONS], number

    async def partition(self, number: int) -> PartitionInfo:
        return (await self.admin.describe_topic(TOPIC)).partitions[number]

    async def all_in_sync(self, within_s: float = 60.0) -> None:
        async with asyncio.timeout(within_s):
            while True:
                details = await self.admin.describe_topic(TOPIC)
                if all(len(p.isr) == len(p.replicas) for p in details.partitions):
                    return
                await asyncio.sleep(0.5)

    async def led(self, within_s: float = 30.0) -> None:
        """Every partition has a leader."""
        async with asyncio.timeout(within_s):
            while True:
                details = await self.admin.describe_topic(TOPIC)
                if all(p.leader is not None for p in details.partitions):
                    return
                await asyncio.sleep(0.25)


@asynccontextmanager
async def disk_scene(rng: Random, **more: object) -> AsyncIterator[DiskScene]:
    async with client_scene(rng, log_dirs=(A, B), **more) as plain:
        scene = DiskScene(plain.cluster, plain.rng)
        async with aio.Admin(scene.bootstrap, env=scene.env("admin")) as scene.admin:
            yield scene


def replicas_of(broker: SimNode) -> Replicas:
    assert broker.node is not None, f"{broker.name} has ended"
    assert broker.node._broker is not None
    return broker.node._broker.replicas


def held(broker: SimNode, root: Path | None = None) -> list[Partition]:
    """The partitions of the topic that a broker has open, or those of them below a directory."""
    found = [replicas_of(broker).find(TopicPartition(TOPIC, n)) for n in range(PARTITIONS)]
    return [p for p in found if p is not None and root in {None, p.log.home.root}]


def is_alive(broker: SimNode) -> bool:
    return broker._task is not None and not broker._task.done()


def break_directory(
    broker: SimNode, root: Path, number: int = errno.EIO, kinds: frozenset[str] | None = None
) -> None:
    """From now on operations below `root` fail (all, or those of some kinds), the store's too."""

    def fault(operation: Operation) -> OSError | None:
        is_hit = root in {operation.path, *operation.path.parents}
        if is_hit and (kinds is None or operation.kind in kinds):
            return OSError(number, os.strerror(number), str(operation.path))
        return None

    broker.fs.fault = fault
    if kinds is None:
        broker.stores[root / "state"].fail_writes = True


def mend_directory(broker: SimNode, root: Path) -> None:
    broker.fs.fault = None
    broker.stores[root / "state"].fail_writes = False


def lose_directory(broker: SimNode, root: Path) -> None:
    """The disk is gone, and an empty one is there at the next start."""
    broker.fs.remove_tree(root)
    broker.fs.sync_directory(root.parent)
    del broker.stores[root / "state"]
