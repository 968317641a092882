"""Shared transactions of the SDK on real nodes and virtual time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from suiro.aio import Outcome, SharedBatch, SharedTransactions, SharedWriter
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    AlreadyCommitted,
    InvalidTransaction,
    StaleBatch,
    TransactionAborted,
)

from tests.sim.client_scene import client_scene
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

    from tests.sim.client_scene import ClientScene

TOPIC = "orders"
PARTITIONS = 3
TASKS = 3
BATCHES = 6


def writer(scene: ClientScene, batch: SharedBatch, name: str) -> SharedWriter:
    return SharedWriter(batch, name, scene.bootstrap, env=scene.env(name))


def leader(scene: ClientScene) -> SharedTransactions:
    return SharedTransactions(scene.bootstrap, env=scene.env("leader"))


async def values(scene: ClientScene) -> list[str]:
    logs = await scene.read_all(TOPIC, PARTITIONS)
    return sorted(record.value.decode() for log in logs for record in log if record.value)


async def write(scene: ClientScene, batch: SharedBatch, name: str) -> int:
    """One task: a record for every partition."""
    async with writer(scene, batch, name) as part:
        for partition in range(PARTITIONS):
            value = f"{batch.sequence} {name.partition('#')[0]} {partition}".encode()
            part.send(TOPIC, value, partition=partition)
        return await part.prepare()


async def only_those_that_count(rng: Random) -> list[str]:
    async with client_scene(rng) as scene, leader(scene) as shared:
        await scene.create_topic(TOPIC, PARTITIONS)
        assert await shared.last_committed("q") is None
        batch = SharedBatch("q", 0, "try one")
        counts = await write(scene, batch, "a")
        speculative = await write(scene, batch, "a#2")
        assert counts != speculative
        async with writer(scene, batch, "unprepared") as part:
            await part.send(TOPIC, b"lost")
            with pytest.raises(InvalidTransaction, match="have not said"):
                await shared.commit(batch, [counts, part.producer_id])
        assert await shared.commit(batch, [counts]) is Outcome.COMMITTED
        assert await shared.commit(batch, [counts]) is Outcome.ALREADY_COMMITTED
        assert await shared.abort(batch) is Outcome.ALREADY_COMMITTED
        assert await shared.last_committed("q") == 0
        return await values(scene)


def test_writers_that_count_commit_and_all_others_abort() -> None:
    assert run(only_those_that_count, seed=1) == ["0 a 0", "0 a 1", "0 a 2"]


async def trying_again(rng: Random) -> list[str]:
    async with client_scene(rng) as scene, leader(scene) as shared:
        await scene.create_topic(TOPIC, PARTITIONS)
        old, new = SharedBatch("q", 5, "old"), SharedBatch("q", 5, "new")
        async with writer(scene, old, "slow") as slow:
            await slow.send(TOPIC, b"of the old try")
            number = await write(scene, new, "a")  # which ends the old try
            with pytest.raises(SuiroError):
                await slow.prepare()
        with pytest.raises(TransactionAborted, match="'old'"):
            await shared.commit(old, [slow.producer_id])
        with pytest.raises(TransactionAborted, match="'old'"):
            await write(scene, old, "late")
        assert await shared.commit(new, [number]) is Outcome.COMMITTED
        with pytest.raises(AlreadyCommitted):
            await write(scene, SharedBatch("q", 5, "third"), "a")
        with pytest.raises(StaleBatch):
            await write(scene, SharedBatch("q", 4, "fourth"), "a")
        with pytest.raises(InvalidTransaction, match="said that it is done"):
            await send_after_prepare(scene, SharedBatch("q", 6, "fifth"))
        assert await shared.abort(SharedBatch("q", 6, "")) is Outcome.ABORTED
        return await values(scene)


async def send_after_prepare(scene: ClientScene, batch: SharedBatch) -> None:
    async with writer(scene, batch, "eager") as part:
        part.send(TOPIC, b"never committed")
        await part.prepare()
        part.send(TOPIC, b"too late")


def test_a_new_try_ends_the_old_and_a_committed_batch_is_not_written_again() -> None:
    assert run(trying_again, seed=2) == ["5 a 0", "5 a 1", "5 a 2"]


async def through_kills(rng: Random) -> list[str]:
    """A leader and its tasks, as Spark runs them: a batch is tried until it is committed."""
    async with client_scene(rng) as scene:
        await scene.create_topic(TOPIC, PARTITIONS)
        done = asyncio.Event()

        async def query() -> None:
            for sequence in range(BATCHES):
                tries = 0
                while not await one_try(scene, sequence, tries):
                    tries += 1
                    await asyncio.sleep(rng.uniform(0.1, 1.0))
            done.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(query(), name="query")
            while not done.is_set():
                await scene.fail_over(rng.choice(scene.victims))
        return await values(scene)


async def one_try(scene: ClientScene, sequence: int, tries: int) -> bool:
    """Whether the batch is committed, now or before; tasks and the leader die now and then."""
    rng, batch = scene.rng, SharedBatch("q", sequence, f"{sequence}.{tries}")
    names = [f"t{task}#{sequence}.{tries}" for task in range(TASKS)]
    try:
        numbers = await asyncio.gather(*(write(scene, batch, name) for name in names))
        if rng.random() < 0.3:
            return False  # the leader dies before it decides
        async with leader(scene) as shared:
            await shared.commit(batch, numbers)
        return rng.random() < 0.7  # or it dies before it has noted that it did
    except AlreadyCommitted:
        return True
    except SuiroError:
        with suppress(SuiroError):
            async with leader(scene) as shared:
                await shared.abort(batch)
        return False


@pytest.mark.parametrize("seed", range(2))
def test_every_batch_is_there_once_while_everything_dies(seed: int) -> None:
    expected = sorted(
        f"{sequence} t{task} {partition}"
        for sequence in range(BATCHES)
        for task in range(TASKS)
        for partition in range(PARTITIONS)
    )
    assert run(through_kills, seed=seed) == expected
