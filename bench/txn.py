"""Transactions against three brokers on this machine: acks=all, replication 3, 100-byte values.

Beside each figure, in the same run, the same records from a producer without transactions, which
waits only once, at the end. And how long a commit takes that has three partitions to mark.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import suiro

from bench.harness import Row, row
from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUE = b"v" * 100
RECORDS = 1_000_000
SIZES = (10_000, 100_000)
PARTITIONS = 3
COMMITS = 300


def run(repeat: int = 5) -> list[Row]:
    layout = Layout(controllers=1, brokers=3, groups=1, txns=1)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder), layout) as cluster,
        suiro.Admin(cluster.bootstrap) as admin,
    ):
        figures: dict[str, list[float]] = {}
        # All take turns, so that a noisy moment of the machine hits them all alike.
        for number in range(repeat + 1):
            measured = _round(cluster.bootstrap, admin, number)
            if number:  # the first round warms up
                for name, figure in measured.items():
                    figures.setdefault(name, []).append(figure)
    return _rows(figures)


def _rows(figures: dict[str, list[float]]) -> list[Row]:
    made = []
    for size in SIZES:
        plain = row(_plain(size), "records/s", figures[_plain(size)])
        made += [plain, row(_within(size), "records/s", figures[_within(size)], plain)]
    return made + [row(name, "ms", figures[name]) for name in (P50, P99)]


P50 = "commit of 3 records in 3 partitions, p50"
P99 = "commit of 3 records in 3 partitions, p99"


def _plain(size: int) -> str:
    return f"no transactions, send_many of {size:,}"


def _within(size: int) -> str:
    return f"transactions of {size:,} records"


def _round(bootstrap: str, admin: suiro.Admin, number: int) -> dict[str, float]:
    measured = {}
    topic = f"bench-{number}"
    for size in SIZES:
        values = [VALUE] * size
        with _new_topic(admin, topic), suiro.Producer(bootstrap) as producer:
            measured[_plain(size)] = _send(producer, topic, values)
        with (
            _new_topic(admin, topic),
            suiro.Producer(bootstrap, transactional_id="bench") as producer,
        ):
            producer.init_transactions()
            measured[_within(size)] = _transact(producer, topic, values)
    with (
        _new_topic(admin, topic),
        suiro.Producer(bootstrap, transactional_id="bench") as producer,
    ):
        took_ms = _commits(producer, topic)
    return measured | {P50: statistics.median(took_ms), P99: took_ms[int(COMMITS * 0.99)]}


@contextmanager
def _new_topic(admin: suiro.Admin, topic: str) -> Iterator[None]:
    admin.create_topic(topic, partitions=PARTITIONS, replication_factor=3)
    yield
    admin.delete_topic(topic)


def _send(producer: suiro.Producer, topic: str, values: list[bytes]) -> float:
    """Records per second."""
    start_s = time.perf_counter()
    for _ in range(RECORDS // len(values)):
        producer.send_many(topic, values)
    producer.flush()
    return RECORDS / (time.perf_counter() - start_s)


def _transact(producer: suiro.Producer, topic: str, values: list[bytes]) -> float:
    start_s = time.perf_counter()
    for _ in range(RECORDS // len(values)):
        with producer.transaction():
            producer.send_many(topic, values)
    return RECORDS / (time.perf_counter() - start_s)


def _commits(producer: suiro.Producer, topic: str) -> list[float]:
    """How long each commit took, sorted, once its records were stored."""
    took_ms = []
    for _ in range(COMMITS):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.send(topic, VALUE, partition=partition)
        producer.flush()
        start_s = time.perf_counter()
        producer.commit_transaction()
        took_ms.append((time.perf_counter() - start_s) * 1000)
    return sorted(took_ms)
