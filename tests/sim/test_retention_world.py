"""Old records go on whole nodes, on virtual time: by the topic's limits, and because one asks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro import aio
from suiro._proto import broker_pb2 as pb
from suiro.model.error_base import ErrorCode
from suiro.model.errors import InvalidRequest, OffsetOutOfRange, UnknownTopicOrPartition
from suiro.model.ids import TopicPartition
from suiro.transport.methods import BrokerMethods

from tests.sim.client_scene import ClientScene, client_scene
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

    from cluster.log.partition_log import PartitionLog

WHERE = TopicPartition("t", 0)
AGE_S = 200.0


def logs(scene: ClientScene) -> list[PartitionLog]:
    """The log of every replica."""
    found = []
    for broker in scene.cluster.brokers:
        assert broker.node is not None
        assert broker.node._broker is not None
        partition = broker.node._broker.replicas.find(WHERE)
        assert partition is not None
        found.append(partition.log)
    return found


async def create(scene: ClientScene, **configs: str) -> aio.Admin:
    admin = aio.Admin(scene.bootstrap, env=scene.env("admin"))
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    await admin.create_topic("t", partitions=1, replication_factor=3, configs=settings)
    return admin


async def send(scene: ClientScene, count: int) -> None:
    async with scene.producer("writer") as producer:
        for number in range(count):
            handle = producer.send("t", b"%0900d" % number, key=b"k")
            await producer.flush()
            assert (await handle).offset >= 0


async def fetch(scene: ClientScene, admin: aio.Admin, offset: int) -> pb.FetchResult:
    await admin.describe_topic("t")
    leader = admin.connection.leader(WHERE)
    assert leader is not None
    part = pb.FetchPart(topic="t", partition=0, offset=offset, max_bytes=1, last_epoch=-1)
    request = pb.FetchRequest(parts=[part], max_bytes=1)
    reply = await scene.env("r").transport.call(
        leader[1], BrokerMethods.FETCH, request, timeout_s=5
    )
    return reply.header.results[0]


def test_retention_by_time_takes_what_is_old_and_nothing_younger() -> None:
    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene:
            limits = {"retention_ms": str(int(AGE_S * 1000)), "segment_bytes": "16384"}
            admin = await create(scene, **limits)
            await send(scene, 60)
            await asyncio.sleep(AGE_S / 2)
            young = logs(scene)[0].log_end
            await send(scene, 60)
            await asyncio.sleep(AGE_S / 2 + 70)  # a check comes every minute
            starts = [log.log_start for log in logs(scene)]
            assert len(set(starts)) == 1, "followers follow"
            assert 0 < starts[0] <= young, "old segments are gone, nothing that is young"
            result = await fetch(scene, admin, 0)
            assert int(result.error.code) == ErrorCode.OFFSET_OUT_OF_RANGE
            assert dict(result.error.hints)["start"] == str(starts[0])
            assert not (await fetch(scene, admin, starts[0])).error.code
            found = await scene.read_all("t", 1)
            assert [record.offset for record in found[0]] == list(range(starts[0], 120))
            await asyncio.sleep(AGE_S)
            assert {(log.log_start, log.log_end) for log in logs(scene)} == {(120, 120)}
            await admin.close()

    run(main, seed=3)


def test_retention_by_bytes_keeps_at_least_the_limit() -> None:
    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene:
            admin = await create(scene, retention_bytes="40000", segment_bytes="16384")
            await send(scene, 120)
            await asyncio.sleep(90)
            for log in logs(scene):
                assert log.log_start > 0
                assert 40_000 <= log.size_bytes <= 40_000 + 16_384
            await admin.close()

    run(main, seed=4)


def test_an_operator_trims() -> None:
    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene:
            admin = await create(scene, segment_bytes="16384")
            await send(scene, 40)
            assert await admin.delete_records(WHERE, 25) == 25
            assert await admin.delete_records(WHERE, 10) == 25, "it never goes back"
            with pytest.raises(OffsetOutOfRange):
                await admin.delete_records(WHERE, 41)
            with pytest.raises(UnknownTopicOrPartition):
                await admin.delete_records(TopicPartition("t", 7), 1)
            with pytest.raises(InvalidRequest):
                await admin.delete_records(TopicPartition("__consumer_offsets", 0), 1)
            await asyncio.sleep(2)
            assert [log.log_start for log in logs(scene)] == [25, 25, 25]
            found = await scene.read_all("t", 1)
            assert [record.offset for record in found[0]] == list(range(25, 40))
            stamp_ms = found[0][5].timestamp_ms
            first = next(r.offset for r in found[0] if r.timestamp_ms >= stamp_ms)
            assert await admin.delete_records_before_time(WHERE, stamp_ms) == first
            assert await admin.delete_records(WHERE, -1) == 40
            await admin.close()

    run(main, seed=5)
