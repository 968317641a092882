"""The SDK's transactions on real nodes and virtual time: money is moved, topics are copied."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.copy_clients import COPY, GROUP, SOURCE, check_copy, copy
from tests.sim.client_scene import client_scene
from tests.sim.loop import run
from tests.sim.txn_bank_sim import STABLE_S_MAX, banking, story

if TYPE_CHECKING:
    from random import Random

    from tests.sim.client_scene import ClientScene

PARTITIONS = 2
RECORDS = 120


@pytest.mark.parametrize("faults", ["kills", "network"])
def test_money_is_moved_and_none_is_made(faults: str) -> None:
    """I1, T1, T2, T10."""
    told = story(2, faults)
    assert told.book.check(told.ledgers) == []
    assert told.stable_s <= STABLE_S_MAX
    assert len(told.book.committed) > 10
    assert told.book.aborted


def test_the_same_seed_is_the_same_story() -> None:
    assert run(lambda rng: banking(rng, "kills"), seed=2) == story(2, "kills")


# -- consume, transform, produce ------------------------------------------------------------------


class Copiers:
    """A copier that is killed now and then, and its successor under the same name."""

    def __init__(self, scene: ClientScene) -> None:
        self._scene = scene
        self._stop = asyncio.Event()
        self.born = 0

    async def keep_one(self) -> None:
        """Until everything is copied."""
        while not self._stop.is_set():
            self.born += 1
            name = f"copier {self.born}"
            life = asyncio.create_task(self._live(name))
            done, _ = await asyncio.wait([life], timeout=self._scene.rng.uniform(1, 6))
            if not done:
                self._scene.cluster.network.crash(name)
                life.cancel()
            await asyncio.gather(life, return_exceptions=True)

    async def _live(self, name: str) -> None:
        settings: dict[str, Any] = {"session_timeout_ms": 3_000, "heartbeat_interval_ms": 500}
        async with (
            self._scene.consumer(
                name, group_id=GROUP, enable_auto_commit=False, max_poll_records=7, **settings
            ) as consumer,
            self._scene.producer(name, transactional_id="copier") as producer,
        ):
            await copy(consumer, producer, self._stop)

    def stop(self) -> None:
        self._stop.set()


async def copying(rng: Random) -> None:
    async with client_scene(rng) as scene, asyncio.TaskGroup() as tasks:
        for topic in (SOURCE, COPY):
            await scene.create_topic(topic, PARTITIONS)
        copiers = Copiers(scene)
        tasks.create_task(copiers.keep_one())
        tasks.create_task(trickle(scene))
        for _ in range(3):
            await asyncio.sleep(rng.uniform(1, 3))
            await scene.fail_over(rng.choice(scene.victims))
        while True:
            copied = await records_of(scene, COPY)
            if len(copied) >= RECORDS:
                break
        copiers.stop()
        assert copiers.born > 1
        assert check_copy(await records_of(scene, SOURCE), await records_of(scene, COPY)) == []


async def trickle(scene: ClientScene) -> None:
    """Records keep coming while nodes and copiers die."""
    async with scene.producer("source") as source:
        for number in range(RECORDS):
            source.send(SOURCE, b"%d" % number, key=b"k%d" % (number % 5))
            await asyncio.sleep(0.1)


async def records_of(scene: ClientScene, topic: str) -> list[Any]:
    return [record for log in await scene.read_all(topic, PARTITIONS) for record in log]


def test_a_copy_is_exact_though_the_copier_dies_too() -> None:
    """Nothing lost, nothing twice, keys in order."""
    run(copying, seed=1)
