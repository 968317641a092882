"""kill -9 of leaders while an idempotent producer sends: every record once, in order per key."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import suiro

from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

KILLS = 4
PARTITIONS = 3
KEYS = 10


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(controllers=3, brokers=3)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        yield running


class Sending(threading.Thread):
    """Sends numbered records by key until told to stop, and keeps the handles."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="sending")
        self.handles: list[suiro.Sent] = []
        self.reached = threading.Condition()
        self._address = bootstrap
        self._stop_asked = threading.Event()

    def run(self) -> None:
        with suiro.Producer(self._address, linger_ms=1, batch_size=2_000) as producer:
            number = 0
            while not self._stop_asked.is_set():
                for _ in range(20):
                    key = b"key-%d" % (number % KEYS)
                    self.handles.append(producer.send("exact", b"%d" % number, key=key))
                    number += 1
                with self.reached:
                    self.reached.notify_all()
                self.handles[-20].result(60)  # a few batches are under way at any time

    def wait_for_more(self, records: int) -> None:
        wanted = len(self.handles) + records
        with self.reached:
            assert self.reached.wait_for(lambda: len(self.handles) >= wanted, 60)

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(90)
        assert not self.is_alive()


def read_all(cluster: LocalCluster) -> list[list[suiro.Record]]:
    logs = []
    for number in range(PARTITIONS):
        where = suiro.TopicPartition("exact", number)
        with suiro.Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
            end = consumer.offset_of(where, suiro.Bound.LATEST)
            consumer.assign([where])
            log: list[suiro.Record] = []
            while len(log) < end:
                polled = consumer.poll(20, max_records=10_000)
                assert polled, f"{len(log)} records came, the log ends at {end}"
                log += polled
        logs.append(log)
    return logs


def test_killed_leaders_store_every_record_once_and_in_order(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic(
            "exact",
            partitions=PARTITIONS,
            replication_factor=3,
            configs={"min.insync.replicas": "2"},
        )
        sending = Sending(cluster.bootstrap)
        sending.start()
        try:
            for number in range(KILLS):
                sending.wait_for_more(500)
                partition = admin.describe_topic("exact").partitions[number % PARTITIONS]
                leader = next(n for n in cluster.brokers if n.node_id == partition.leader)
                leader.kill()
                sending.wait_for_more(500)
                leader.start()
                leader.wait_ready()
        finally:
            sending.stop()
    logs = read_all(cluster)
    stored = sorted(int(record.value or b"") for log in logs for record in log)
    assert stored == list(range(len(sending.handles))), "each record once, none missing"
    for log in logs:
        for key in {record.key for record in log}:
            numbers = [int(record.value or b"") for record in log if record.key == key]
            assert numbers == sorted(numbers), f"{key!r} is out of order"
    for number, handle in enumerate(sending.handles):
        where = handle.result(0)
        assert logs[where.partition][where.offset].value == b"%d" % number
