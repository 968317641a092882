"""`suiro.testing` itself: what it says that it does to a cluster, and that it leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.testing import Cluster

from tests.cluster.operator_kit import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

SOON_S = 30.0


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with Cluster(brokers=3) as running:
        yield running


def read_all(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of(topic))
        while len(values) < count and (polled := consumer.poll(SOON_S)):
            values += [record.value for record in polled]
    return values


def test_it_starts_and_stores(capsys: pytest.CaptureFixture[str]) -> None:
    began_s = time.monotonic()
    with Cluster() as cluster, cluster.producer() as producer:
        assert producer.send(cluster.topic(), b"hello").result(30).offset == 0
        took_s = time.monotonic() - began_s
        directory = cluster.directory
        assert directory.exists()
    assert not directory.exists()
    with capsys.disabled():
        print(f"\na cluster of one node, to its first record: {took_s:.2f} s")


def test_a_killed_leader_is_replaced_and_comes_back(three: Cluster) -> None:
    topic = three.topic()
    with three.producer() as producer:
        producer.send(topic, b"before").result(30)
        leader = three.leader(topic)
        three.kill(leader)
        producer.send(topic, b"after").result(SOON_S)
    assert three.leader(topic) != leader
    with pytest.raises(suiro.SuiroError, match="does not run"):
        three.kill(leader)
    three.restart(leader)
    assert "ready" in three.log_of(leader)
    assert read_all(three, topic, 2) == [b"before", b"after"]


def test_a_paused_node_hangs_and_goes_on(suiro_cluster: Cluster) -> None:
    topic = suiro_cluster.topic()
    with suiro_cluster.producer() as producer:
        producer.send(topic, b"before").result(30)
        suiro_cluster.pause(1)
        handle = producer.send(topic, b"meanwhile")
        with pytest.raises(suiro.errors.TimedOut):
            handle.result(0.5)
        suiro_cluster.resume(1)
        assert handle.result(SOON_S).offset == 1


def test_what_is_cut_off_is_not_heard_until_it_is_healed(three: Cluster) -> None:
    topic = three.topic()
    leader = three.leader(topic)
    with three.producer() as producer:
        producer.send(topic, b"before").result(30)
        three.partition(leader)
        try:
            producer.send(topic, b"from the other side").result(SOON_S)
            assert three.leader(topic) != leader
        finally:
            three.heal()
        producer.send(topic, b"healed").result(SOON_S)

    def is_in_sync() -> bool:
        with three.admin() as admin:
            return len(admin.describe_topic(topic).partitions[0].isr) == len(three.brokers)

    wait_until(is_in_sync, "the one that was cut off is in sync again")
    assert read_all(three, topic, 3) == [b"before", b"from the other side", b"healed"]


def test_a_cut_of_one_way_leaves_the_other(suiro_cluster: Cluster) -> None:
    topic = suiro_cluster.topic()
    with suiro_cluster.producer() as producer:
        producer.send(topic, b"before").result(30)
        suiro_cluster.partition(1, "client", one_way=True)
        handle = producer.send(topic, b"arrives, and is answered in vain")
        with pytest.raises(suiro.errors.TimedOut):
            handle.result(0.5)
        suiro_cluster.heal()
        assert handle.result(SOON_S).offset == 1


def test_an_unknown_node_is_refused_by_name(three: Cluster) -> None:
    with pytest.raises(suiro.SuiroError, match=r"no node 7 .* head, broker-1, broker-2, broker-3"):
        three.kill(7)


PROGRAM = """
import os, time
from suiro.testing import Cluster
cluster = Cluster()
cluster.start()
cluster.pause(1)
print(cluster.directory, cluster._nodes["broker-1"].process.pid, flush=True)
time.sleep(300)
"""


def test_nothing_outlives_a_killed_test_process() -> None:
    test = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert test.stdout is not None
    with test.stdout:
        directory, pid = test.stdout.readline().split()
    os.kill(test.pid, signal.SIGKILL)
    test.wait()
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the node, though paused, is gone")
    wait_until(lambda: not Path(directory).exists(), "so is its directory")
