"""What an operator sees of transactions and may do about them, on real nodes and virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro.aio import Admin, SharedBatch, SharedWriter
from suiro.model.errors import (
    InvalidRequest,
    InvalidTransaction,
    TransactionAborted,
    UnknownTopicOrPartition,
)
from suiro.model.ids import TopicPartition

from tests.sim.client_scene import client_scene
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

    from tests.sim.client_scene import ClientScene

TOPIC = "orders"
FIRST = TopicPartition(TOPIC, 0)


def metric(scene: ClientScene, *nodes: int, name: str) -> float:
    """The sum over the pages of these nodes."""
    pages = [scene.cluster.nodes[number].metrics.render().decode() for number in nodes]
    return sum(
        float(line.split()[1])
        for page in pages
        for line in page.splitlines()
        if line.startswith(f"{name} ")
    )


async def operating(rng: Random) -> None:
    async with (
        client_scene(rng) as scene,
        Admin(scene.bootstrap, env=scene.env("operator")) as admin,
        scene.producer("copier", transactional_id="copier") as producer,
    ):
        await scene.create_topic(TOPIC, 2)
        async with producer.transaction():
            producer.send(TOPIC, b"kept", partition=0)
        await producer.begin_transaction()
        await producer.send(TOPIC, b"dropped", partition=0)
        await asyncio.sleep(20)
        txns = admin.transactions

        (listed,) = await txns.list_transactions(["ongoing"])
        assert listed.transactional_id == "copier"
        assert await txns.list_transactions(["ongoing"], older_than_ms=60_000) == []
        told = await txns.describe("copier")
        assert told.partitions == (FIRST,)
        assert told.last_outcome.startswith("committed at ")
        seen = await txns.producers(FIRST)
        assert [p.open_from for p in seen.producers] == [2]
        assert (seen.last_stable_offset, seen.high_watermark) == (2, 3)
        (held,) = await txns.open_in_partitions()
        assert (held.partition, held.transactional_id, held.held_back) == (FIRST, "copier", 1)
        assert await txns.open_in_partitions([TOPIC], older_than_ms=60_000) == []

        assert metric(scene, 1, 2, 3, name="suiro_partitions_held_back") == 1
        assert metric(scene, 1, 2, 3, name="suiro_stable_lag_records_max") == 1
        assert metric(scene, 11, 12, name="suiro_transactions_open") == 1
        assert 19 < metric(scene, 11, 12, name="suiro_transaction_oldest_seconds") < 22

        await txns.abort("copier")
        with pytest.raises(TransactionAborted, match=r"aborted at .* UTC by an operator at"):
            await producer.commit_transaction()
        await producer.abort_transaction()
        await txns.abort("copier")  # nothing is open: nothing happens
        async with producer.transaction():
            producer.send(TOPIC, b"kept too", partition=0)
        (log, _) = await scene.read_all(TOPIC, 2)
        assert [record.value for record in log] == [b"kept", b"kept too"]
        assert metric(scene, 1, 2, 3, name="suiro_partitions_held_back") == 0
        assert metric(scene, 11, 12, name="suiro_transactions_open") == 0


def test_an_open_transaction_is_seen_and_aborted() -> None:
    run(operating, seed=1)


async def asking(rng: Random) -> None:
    async with (
        client_scene(rng) as scene,
        Admin(scene.bootstrap, env=scene.env("operator")) as admin,
    ):
        await scene.create_topic(TOPIC, 1)
        batch = SharedBatch("query", 1, "first")
        async with SharedWriter(batch, "t0", scene.bootstrap, env=scene.env("t0")) as writer:
            await writer.send(TOPIC, b"of many", partition=0)
            (held,) = await admin.transactions.open_in_partitions()
            assert held.transactional_id == "__shared/query"
        for ask in (admin.transactions.describe, admin.transactions.abort):
            with pytest.raises(InvalidTransaction, match="nobody has taken"):
                await ask("nobody")
        with pytest.raises(InvalidRequest, match="'open' is not a valid"):
            await admin.transactions.list_transactions(["open"])
        with pytest.raises(UnknownTopicOrPartition, match="no orders-7"):
            await admin.transactions.producers(TopicPartition(TOPIC, 7))


def test_shared_ones_are_known_by_their_writers_and_nonsense_is_refused() -> None:
    run(asking, seed=1)
