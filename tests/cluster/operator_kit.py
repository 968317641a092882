"""What the tests of an operator's work share: load, waiting, and reading a partition whole."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import suiro

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.local_cluster import LocalCluster, LocalNode


def node_of(cluster: LocalCluster, node_id: int | None) -> LocalNode:
    return next(node for node in cluster.brokers if node.node_id == node_id)


def read_values(cluster: LocalCluster, topic: str) -> list[bytes | None]:
    """Everything of partition 0, up to the end that the leader tells."""
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


def wait_until(is_so: Callable[[], bool], what: str, timeout_s: float = 60) -> float:
    """The seconds it took."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < timeout_s, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)
    return time.monotonic() - began


def fill(cluster: LocalCluster, topic: str, size: int) -> None:
    """So many bytes, in batches small enough for a throttle to cut."""
    with suiro.Producer(cluster.bootstrap, batch_size=20_000) as producer:
        for _ in range(size // 1_000):
            producer.send(topic, bytes(900))
        producer.flush()


class Load:
    """Sends numbered records with acks=all until it is stopped, and knows what was acknowledged."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acked: dict[int, bytes] = {}

    def _run(self) -> None:
        number = 0
        with suiro.Producer(self._cluster.bootstrap, linger_ms=1) as producer:
            while not self._stop.is_set():
                values = [b"%d" % n for n in range(number, number + 20)]
                handles = [(v, producer.send(self._topic, v, partition=0)) for v in values]
                number += len(values)
                for value, handle in handles:
                    self.acked[handle.result(60).offset] = value

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(90)
        assert not self._thread.is_alive()
