"""The SDK against three brokers on this machine: acks=all, replication 3, 100-byte values.

Beside it, in the same run, what others reach: confluent-kafka against its built-in mock cluster
(which stores nothing), kafka-python's codec alone, and the ceiling: the same batches over bare
produce streams, encoded beforehand.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import suiro

from bench.harness import Row, row
from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE = b"v" * 100
RECORDS = 500_000
ARROW_RECORDS = 2_000_000
PARTITIONS = 3
KAFKA_BATCH = 10_000


def run(repeat: int = 5) -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder), Layout(controllers=1, brokers=3)) as cluster,
    ):
        rows = _sdk(cluster, repeat)
    return [*rows, *_confluent(repeat), *_kafka_python(repeat)]


# -- Suiro ----------------------------------------------------------------------------------------


def _sdk(cluster: LocalCluster, repeat: int) -> list[Row]:
    table = pa.table({"value": pa.array([VALUE] * ARROW_RECORDS, pa.binary())})
    values = [VALUE] * RECORDS
    figures: dict[str, list[float]] = {}
    for number in range(repeat + 1):
        topic = f"records-{number}"
        with suiro.Admin(cluster.bootstrap) as admin:
            admin.create_topic(topic, partitions=PARTITIONS, replication_factor=3)
        with suiro.Producer(cluster.bootstrap) as producer:
            many = partial(_bulk, producer, "send_many", topic, values)
            arrow = partial(_bulk, producer, "send_arrow", topic, table)
            measured = {
                "send": _timed(RECORDS, partial(_send_loop, producer, topic)),
                "send_many": _timed(RECORDS, many),
                "send_arrow": _timed(ARROW_RECORDS, arrow),
            }
        measured |= _read(cluster, topic)
        with suiro.Admin(cluster.bootstrap) as admin:
            admin.delete_topic(topic)
        if number:  # the first round warms up
            for name, figure in measured.items():
                figures.setdefault(name, []).append(figure)
    return [row(f"suiro {name}", "records/s", found) for name, found in figures.items()]


def _send_loop(producer: suiro.Producer, topic: str) -> None:
    send = producer.send
    for _ in range(RECORDS):
        send(topic, VALUE)
    producer.flush()


def _bulk(producer: suiro.Producer, how: str, topic: str, data: Any) -> None:
    getattr(producer, how)(topic, data).wait(60)


def _read(cluster: LocalCluster, topic: str) -> dict[str, float]:
    total = 2 * RECORDS + ARROW_RECORDS
    measured = {}
    for name in ("poll", "poll_arrow"):
        with suiro.Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign(consumer.partitions_of(topic))
            wanted = total if name == "poll_arrow" else RECORDS
            start, seen = time.perf_counter(), 0
            while seen < wanted:
                if name == "poll":
                    for record in consumer.poll(10, max_records=10_000):
                        seen += record.value is not None
                else:
                    seen += consumer.poll_arrow(10).num_rows
            measured[name] = seen / (time.perf_counter() - start)
    return measured


def _timed(units: int, work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return units / (time.perf_counter() - start)


# -- the others -----------------------------------------------------------------------------------


def _confluent(repeat: int) -> list[Row]:
    """librdkafka under Python, against the mock cluster inside it."""
    try:
        from confluent_kafka import Consumer, Producer
    except ImportError:
        return []
    sent: list[float] = []
    polled: list[float] = []
    consumed: list[float] = []
    for number in range(repeat):
        topic = f"records-{number}"
        settings = {"test.mock.num.brokers": 3, "linger.ms": 5, "acks": "all"}
        producer = Producer({**settings, "queue.buffering.max.messages": 10_000_000})
        sent.append(_timed(RECORDS, partial(_confluent_send, producer, topic)))
        brokers = producer.list_topics(topic, timeout=10).brokers.values()
        bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        for into, how in ((consumed, _confluent_consume), (polled, _confluent_poll)):
            consumer = Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": how.__name__,
                    "auto.offset.reset": "earliest",
                }
            )
            consumer.subscribe([topic])
            first = consumer.poll(20)
            assert first is not None
            wanted = min(RECORDS // 2, 200_000)
            into.append(_timed(wanted, partial(how, consumer, wanted)))
            consumer.close()
    return [
        row("confluent-kafka produce, mock cluster", "records/s", sent),
        row("confluent-kafka consume(10000), mock cluster", "records/s", consumed),
        row("confluent-kafka poll, mock cluster", "records/s", polled),
    ]


def _confluent_send(producer: Any, topic: str) -> None:
    produce = producer.produce
    for _ in range(RECORDS):
        produce(topic, VALUE)
    producer.flush()


def _confluent_consume(consumer: Any, wanted: int) -> None:
    seen = 0
    while seen < wanted:
        seen += sum(1 for message in consumer.consume(10_000, 1.0) if message.value())


def _confluent_poll(consumer: Any, wanted: int) -> None:
    seen = 0
    while seen < wanted:
        message = consumer.poll(1.0)
        seen += message is not None and message.value() is not None


def _kafka_python(repeat: int) -> list[Row]:
    """Only its codec: building a batch, in pure Python."""
    try:
        from kafka.record.memory_records import MemoryRecordsBuilder
    except ImportError:
        return []

    def build() -> None:
        builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 30)
        for _ in range(KAFKA_BATCH):
            builder.append(timestamp=0, key=None, value=VALUE)
        builder.close()

    figures = [_timed(KAFKA_BATCH, build) for _ in range(repeat)]
    return [row("kafka-python codec, encode only", "records/s", figures)]
