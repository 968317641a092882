"""Compacted topics on whole nodes, on virtual time: brokers die, the table stays what it was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro import aio
from suiro.model.ids import TopicPartition
from suiro.model.topics import INTERNAL_TOPIC_CONFIGS, is_internal

from cluster.broker import cleaning
from cluster.log.partition_log import PartitionLog
from tests.sim.client_scene import ClientScene, client_scene
from tests.sim.loop import run
from tests.sim.txn_bank_sim import banking

if TYPE_CHECKING:
    from random import Random

    import pytest

    from cluster.log.cleaner import Cleaning

WHERE = TopicPartition("table", 0)
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "segment.ms": "20000",
    "min.insync.replicas": "2",
}


def logs(scene: ClientScene) -> list[PartitionLog]:
    found = []
    for broker in scene.cluster.brokers:
        assert broker.node is not None
        assert broker.node._broker is not None
        partition = broker.node._broker.replicas.find(WHERE)
        assert partition is not None
        found.append(partition.log)
    return found


async def read_table(scene: ClientScene) -> dict[bytes | None, bytes]:
    table: dict[bytes | None, bytes] = {}
    for record in (await scene.read_all("table", 1))[0]:
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table


def test_a_table_is_compacted_on_every_replica_and_stays_the_same() -> None:
    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene:
            async with aio.Admin(scene.bootstrap, env=scene.env("admin")) as admin:
                await admin.create_topic(
                    "table", partitions=1, replication_factor=3, configs=CONFIGS
                )
            expected: dict[bytes | None, bytes] = {}
            async with scene.producer("writer") as producer:
                for round_number in range(3):
                    for number in range(120):
                        key = b"k%d" % rng.randrange(25)
                        value = (
                            None if rng.random() < 0.1 else b"%d.%0300d" % (round_number, number)
                        )
                        producer.send("table", value, key=key)
                        expected.pop(key, None)
                        if value is not None:
                            expected[key] = value
                        if number % 10 == 0:
                            await producer.flush()
                    await producer.flush()
                    victim = scene.cluster.brokers[round_number]
                    await scene.fail_over(victim)
                    await asyncio.sleep(25)
            await asyncio.sleep(60)
            ends = {log.log_end for log in logs(scene)}
            assert ends == {360}
            for log in logs(scene):
                assert log.size_bytes < 360 * 310 / 4, "it was compacted"
                assert log.log_start == 0
            assert await read_table(scene) == expected
            leaders = {b.node_id: b for b in scene.cluster.brokers}
            for victim in leaders.values():  # whoever leads next has the same
                await scene.fail_over(victim)
                assert await read_table(scene) == expected

    run(main, seed=6)


def test_coordinators_live_on_compacted_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups and transactions while their topics are compacted all the time, and nodes die."""
    monkeypatch.setitem(INTERNAL_TOPIC_CONFIGS, "segment.ms", "1000")
    monkeypatch.setitem(INTERNAL_TOPIC_CONFIGS, "min.cleanable.dirty.ratio", "0")
    monkeypatch.setitem(INTERNAL_TOPIC_CONFIGS, "delete.retention.ms", "30000")
    monkeypatch.setattr(cleaning, "CHECK_S", 1.0)
    compacted: list[str] = []
    finish = PartitionLog.finish_cleaning

    def note(log: PartitionLog, done: Cleaning, now_ms: int) -> bool:
        compacted.append(log.home.partition.topic)
        return finish(log, done, now_ms)

    monkeypatch.setattr(PartitionLog, "finish_cleaning", note)
    told = run(lambda rng: banking(rng, "kills"), seed=5)
    assert told.book.check(told.ledgers) == []
    assert sum(map(is_internal, compacted)) > 20
