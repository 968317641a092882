"""Real brokers in three racks: a consumer reads from its own, and is never stuck with it."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro import aio
from suiro.model.ids import TopicPartition

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.operator_kit import node_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suiro.connection import PartitionInfo

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

RACKS = ("a", "b", "c")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(controllers=1, brokers=3, racks=RACKS)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        yield running


def make(cluster: LocalCluster, topic: str) -> PartitionInfo:
    with suiro.Admin(cluster.bootstrap) as admin:
        return admin.create_topic(topic, partitions=1, replication_factor=3).partitions[0]


def produce(cluster: LocalCluster, topic: str, start: int, end: int) -> None:
    with suiro.Producer(cluster.bootstrap) as producer:
        for number in range(start, end):
            producer.send(topic, b"%d" % number)
        producer.flush()


async def read(consumer: aio.Consumer, until: int) -> list[int]:
    """Offsets up to `until`; they must be whole and in order (P8)."""
    offsets: list[int] = []
    async with asyncio.timeout(60):
        while not offsets or offsets[-1] < until - 1:
            for record in await consumer.poll(1.0):
                assert record.value == b"%d" % record.offset
                offsets.append(record.offset)
    assert offsets == list(range(offsets[0], until))
    return offsets


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_a_follower_of_the_same_rack_is_read_from(
    cluster: LocalCluster, isolation: str
) -> None:
    info = make(cluster, isolation)
    follower = next(n for n in info.replicas if n != info.leader)
    await asyncio.to_thread(produce, cluster, isolation, 0, 5_000)
    where = TopicPartition(isolation, 0)
    async with aio.Consumer(
        cluster.bootstrap,
        client_rack=RACKS[follower - 1],
        isolation=isolation,
        auto_offset_reset="earliest",
    ) as consumer:
        await consumer.assign([where])
        assert await read(consumer, 5_000) == list(range(5_000))
        assert consumer.fetcher.reads_from(where) == node_of(cluster, follower).address
        await asyncio.to_thread(produce, cluster, isolation, 5_000, 5_100)
        await read(consumer, 5_100)
        assert consumer.fetcher.reads_from(where) == node_of(cluster, follower).address


async def test_what_is_out_of_range_the_leader_says(cluster: LocalCluster) -> None:
    """Row 27: no consumer spins on a follower that does not have its offset."""
    info = make(cluster, "short")
    follower = next(n for n in info.replicas if n != info.leader)
    await asyncio.to_thread(produce, cluster, "short", 0, 100)
    where = TopicPartition("short", 0)
    async with aio.Consumer(
        cluster.bootstrap, client_rack=RACKS[follower - 1], auto_offset_reset="earliest"
    ) as consumer:
        await consumer.assign({where: 1_000_000})
        assert consumer.fetcher.reads_from(where) == node_of(cluster, follower).address
        assert (await read(consumer, 100))[0] == 0, "the leader said so, and it was reset"


async def test_a_follower_that_is_gone_is_left(cluster: LocalCluster) -> None:
    """It hangs first: no connection breaks, it only leaves the ISR. Then it is killed."""
    info = make(cluster, "gone")
    follower = node_of(cluster, next(n for n in info.replicas if n != info.leader))
    where = TopicPartition("gone", 0)
    await asyncio.to_thread(produce, cluster, "gone", 0, 100)
    async with aio.Consumer(
        cluster.bootstrap,
        client_rack=RACKS[follower.node_id - 1],
        auto_offset_reset="earliest",
    ) as consumer:
        await consumer.assign([where])
        await read(consumer, 100)
        assert consumer.fetcher.reads_from(where) == follower.address
        follower.signal(signal.SIGSTOP)
        try:
            await asyncio.to_thread(produce, cluster, "gone", 100, 200)
            await read(consumer, 200)
        finally:
            follower.signal(signal.SIGCONT)
            follower.kill()
        await asyncio.to_thread(produce, cluster, "gone", 200, 300)
        await read(consumer, 300)
        assert consumer.fetcher.reads_from(where) != follower.address
