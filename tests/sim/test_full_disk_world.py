"""A disk fills up on whole nodes (F9): writes are refused, nothing else happens, and it passes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro import aio
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition

from cluster.broker import log_directory
from tests.sim.client_scene import ClientScene, client_scene
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

    from tests.sim.world import SimNode

WHERE = TopicPartition("t", 0)
RESERVE_BYTES = 80_000


@pytest.fixture(autouse=True)
def _small_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_directory, "DISK_RESERVE_BYTES", RESERVE_BYTES)


def admin_of(scene: ClientScene) -> aio.Admin:
    return aio.Admin(scene.bootstrap, env=scene.env("admin"))


async def send(scene: ClientScene, count: int) -> None:
    async with scene.producer("writer", delivery_timeout_ms=4_000) as producer:
        handles = [producer.send("t", b"%02000d" % number) for number in range(count)]
        await producer.flush()
        for handle in handles:
            await handle


def fill_disk(broker: SimNode, spare_bytes: int) -> None:
    """Somebody else's files leave only so much, beside the reserve."""
    used = sum(map(len, broker.fs.contents().values()))
    broker.fs.capacity_bytes = used + RESERVE_BYTES + spare_bytes


def test_a_leader_without_room_refuses_writes_and_serves_reads() -> None:
    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene, admin_of(scene) as admin:
            await admin.create_topic("t", partitions=1, replication_factor=1)
            await send(scene, 10)
            await admin.describe_topic("t")
            leader = admin.connection.leader(WHERE)
            assert leader is not None
            broker = scene.cluster.nodes[leader[0]]
            fill_disk(broker, 30_000)
            with pytest.raises(SuiroError):
                await send(scene, 100)
            assert broker.node is not None
            assert len((await scene.read_all("t", 1))[0]) >= 10
            broker.fs.capacity_bytes = 1 << 40
            await send(scene, 10)

    run(main, seed=8)


def test_a_new_replica_without_room_is_made_when_there_is_some() -> None:
    """Seed 10372 of the whole system: it stayed offline until its broker was started again."""

    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene, admin_of(scene) as admin:
            broker = scene.cluster.brokers[0]
            fill_disk(broker, -RESERVE_BYTES)
            await admin.create_topic("t", partitions=1, replication_factor=3)
            await asyncio.sleep(1)
            assert broker.node_id not in (await admin.describe_topic("t")).partitions[0].isr
            broker.fs.capacity_bytes = 1 << 40
            await asyncio.sleep(20)
            assert len((await admin.describe_topic("t")).partitions[0].isr) == 3

    run(main, seed=10)


def test_a_follower_without_room_leaves_the_isr_and_comes_back() -> None:
    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene, admin_of(scene) as admin:
            configs = {"min.insync.replicas": "2"}
            await admin.create_topic("t", partitions=1, replication_factor=3, configs=configs)
            leader = (await admin.describe_topic("t")).partitions[0].leader
            broker = next(b for b in scene.cluster.brokers if b.node_id != leader)
            fill_disk(broker, 12_000)
            async with scene.producer("patient") as producer:
                for number in range(20):
                    await producer.send("t", b"%02000d" % number)
            isr = (await admin.describe_topic("t")).partitions[0].isr
            assert broker.node_id not in isr
            broker.fs.capacity_bytes = 1 << 40
            await asyncio.sleep(20)
            assert len((await admin.describe_topic("t")).partitions[0].isr) == 3
            assert len((await scene.read_all("t", 1))[0]) == 20

    run(main, seed=9)
