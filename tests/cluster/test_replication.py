"""Three real brokers: leaders are spread, and too few in-sync replicas refuse acks=all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.model.errors import NotEnoughReplicas

from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.local_cluster import LocalNode

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(controllers=3, brokers=3)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        yield running


def node_of(cluster: LocalCluster, node_id: int | None) -> LocalNode:
    return next(node for node in cluster.brokers if node.node_id == node_id)


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
