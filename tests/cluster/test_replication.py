"""Three real brokers: replicated, spread, nothing acknowledged lost when leaders are killed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.model.errors import NotEnoughReplicas

from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.local_cluster import LocalNode

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

KILLS = 3


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(controllers=3, brokers=3)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        yield running


def node_of(cluster: LocalCluster, node_id: int | None) -> LocalNode:
    return next(node for node in cluster.brokers if node.node_id == node_id)


def read_values(cluster: LocalCluster, topic: str) -> list[bytes | None]:
    where = suiro.TopicPartition(topic, 0)
    with suiro.Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        end = consumer.offset_of(where, suiro.Bound.LATEST)
        consumer.assign([where])
        values: list[bytes | None] = []
        while len(values) < end:
            polled = consumer.poll(20, max_records=10_000)
            assert polled, f"{len(values)} records came, the log ends at {end}"
            values += [record.value for record in polled]
    return values


def refused(producer: suiro.Producer) -> BaseException | None:
    """Send until the follower is out of the ISR, and return why it is then refused."""
    while True:
        try:
            producer.send("careful", b"alone").result(30)
        except suiro.SuiroError as error:
            return error.__cause__


def test_leaders_and_replicas_are_spread(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        info = admin.create_topic("orders", partitions=6, replication_factor=3)
    leaders = [partition.leader for partition in info.partitions]
    assert sorted(leaders.count(node) for node in set(leaders)) == [2, 2, 2]
    assert all(set(partition.isr) == {1, 2, 3} for partition in info.partitions)


def test_killed_leaders_lose_nothing_that_was_acknowledged(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic(
            "kept", partitions=1, replication_factor=3, configs={"min.insync.replicas": "2"}
        )
    acked: dict[int, bytes] = {}
    enough = threading.Event()
    stop = threading.Event()
    wanted = [500]

    def produce() -> None:
        with suiro.Producer(cluster.bootstrap, linger_ms=1) as producer:
            number = 0
            while not stop.is_set():
                sent = [(b"%d" % (number + i), b"") for i in range(20)]
                handles = [(value, producer.send("kept", value)) for value, _ in sent]
                number += len(handles)
                for value, handle in handles:
                    acked[handle.result(60).offset] = value
                if len(acked) >= wanted[0]:
                    enough.set()

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        with suiro.Admin(cluster.bootstrap) as admin:
            for _ in range(KILLS):
                assert enough.wait(60), "no more records are acknowledged"
                leader = node_of(cluster, admin.describe_topic("kept").partitions[0].leader)
                leader.kill()
                wanted[0] = len(acked) + 500
                enough.clear()
                assert enough.wait(60), "the partition is not writable again"
                leader.start()
                leader.wait_ready()
                wanted[0] = len(acked) + 200
                enough.clear()
    finally:
        stop.set()
        producing.join(90)
    values = read_values(cluster, "kept")
    lost = {offset: value for offset, value in acked.items() if values[offset] != value}
    assert not lost


def test_too_few_in_sync_replicas_refuse_and_recover(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        info = admin.create_topic(
            "careful", partitions=1, replication_factor=2, configs={"min.insync.replicas": "2"}
        )
        follower = next(n for n in info.partitions[0].replicas if n != info.partitions[0].leader)
    with suiro.Producer(cluster.bootstrap, delivery_timeout_ms=2_500) as producer:
        producer.send("careful", b"both hold it").result(30)
        node_of(cluster, follower).kill()
        refusal = refused(producer)
        assert isinstance(refusal, NotEnoughReplicas)
        assert "careful-0: in sync are [" in refusal.message
        assert "min.insync.replicas is 2" in refusal.message
        node_of(cluster, follower).start()
        node_of(cluster, follower).wait_ready()
    with suiro.Producer(cluster.bootstrap, delivery_timeout_ms=60_000) as producer:
        producer.send("careful", b"both again").result(60)
