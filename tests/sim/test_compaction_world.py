"""Compacted topics on whole nodes, on virtual time: brokers die, the table stays what it was."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

from suiro import aio
from suiro.model.ids import TopicPartition
from suiro.model.topics import INTERNAL_TOPIC_CONFIGS, is_internal

from cluster.broker import cleaning
from cluster.log.cleaner import Cleaning
from cluster.log.partition_log import PartitionLog
from tests.sim.client_scene import ClientScene, client_scene
from tests.sim.loop import run
from tests.sim.txn_bank_sim import banking

if TYPE_CHECKING:
    from random import Random

    import pytest


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


def test_several_workers_share_one_bounded_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two logs are compacted at the same time, and together at no more than the rate."""
    rate = 1 << 16
    broker_of: dict[int, list[tuple[float, int, int]]] = {}
    step = Cleaning.step

    def note(cleaning: Cleaning) -> int:
        size = step(cleaning)
        directory = id(cleaning._segments.home.store)  # one of a broker, as its disk is
        now_s = asyncio.get_running_loop().time()
        broker_of.setdefault(directory, []).append((now_s, size, id(cleaning)))
        return size

    monkeypatch.setattr(Cleaning, "step", note)

    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene:
            async with aio.Admin(scene.bootstrap, env=scene.env("admin")) as admin:
                await admin.alter_configs({"compaction.bytes.per.s.max": str(rate)})
                await admin.create_topic(
                    "table", partitions=2, replication_factor=3, configs=CONFIGS
                )
            async with scene.producer("writer") as producer:
                for number in range(400):
                    value = b"%01000d" % number
                    key = b"k%d" % (number % 20)
                    await producer.send("table", value, key=key, partition=number % 2)
            await asyncio.sleep(90)

    run(main, seed=8)
    assert len(broker_of) == 3
    for steps in broker_of.values():
        passes = [number for _, size, number in steps if size]
        changes = sum(one != other for one, other in itertools.pairwise(passes))
        assert changes > len({*passes}) - 1, "they take turns"
        largest = max(size for _, size, _ in steps)
        for (begun_s, _, _), (ended_s, _, _) in itertools.combinations(steps, 2):
            done = sum(size for at_s, size, _ in steps if begun_s <= at_s < ended_s)
            assert done <= rate * (ended_s - begun_s) + 2 * largest
