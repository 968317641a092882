"""The SDK against three brokers on this machine: acks=all, replication 3, 100-byte values.

Beside it, in the same run, what others reach: confluent-kafka against its built-in mock cluster
(which stores nothing) and kafka-python's codec alone. And the ceilings: `send` without a network,
down to encoded batches; the same bytes through a bare pipeline of three processes that nobody looks
at; the same bytes over one bare gRPC stream.

A machine that is lent its memory page by page makes the first write to a page dear, four times so
on the one where this was written, and that was more than half of what a broker did. A broker that
has run for a while writes to pages that others have left. So before each timed part as many bytes
as it will store are written to a file that is removed.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa
import suiro
from suiro.accumulator import Accumulator
from suiro.loop_thread import new_loop
from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.ids import TopicPartition
from suiro.partitioner import make_partitioner
from suiro.placing import place
from suiro.settings import ProducerSettings
from suiro.stager import Stager
from suiro.wall_clock import wall_clock_ms

from bench import bare_pipeline, plain_stream
from bench.harness import Row, row
from bench.node import plain_server
from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

VALUE = b"v" * 100
RECORDS = 500_000
ARROW_RECORDS = 1_000_000
ARROW_READS = 3
"""`poll_arrow` reads the topic so many times over: once is too short to measure."""
PARTITIONS = 3
REPLICAS = 3
STORED_BYTES = len(VALUE) + 4
"""Of a record in its batch."""
BATCH_RECORDS = 9_000
KAFKA_BATCH = 10_000
POLL_RECORDS = 10_000


class Ports(NamedTuple):
    """Where the ceilings are measured."""

    pipeline: int
    plain: int


def run(repeat: int = 5) -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        plain_server() as port,
        bare_pipeline.running() as bare_port,
        LocalCluster(Path(folder), Layout(controllers=1, brokers=3)) as cluster,
    ):
        rows = _sdk(cluster, Ports(bare_port, port), repeat)
    return [*rows, *_confluent(repeat), *_kafka_python(repeat)]


# -- Suiro ----------------------------------------------------------------------------------------


def _sdk(cluster: LocalCluster, ports: Ports, repeat: int) -> list[Row]:
    table = pa.table({"value": pa.array([VALUE] * ARROW_RECORDS, pa.binary())})
    values = [VALUE] * RECORDS
    batch = bytes(encode_lists(None, values[:BATCH_RECORDS], timestamps_ms=0))
    figures: dict[str, list[float]] = {}
    # All take turns, so that a noisy moment of the machine hits them all alike.
    for number in range(repeat + 1):
        measured = _ceilings(ports, batch)
        send = partial(_send_loop, RECORDS)
        measured["send"], _ = _written(cluster, f"send-{number}", RECORDS, send)
        many = partial(_bulk, "send_many", values)
        measured["send_many"], _ = _written(cluster, f"many-{number}", RECORDS, many)
        arrow = partial(_bulk, "send_arrow", table)
        name = f"arrow-{number}"
        measured["send_arrow"], read = _written(cluster, name, ARROW_RECORDS, arrow, _read)
        measured |= read
        if number:  # the first round warms up
            for name, figure in measured.items():
                figures.setdefault(name, []).append(figure)
    return _rows(figures)


def _rows(figures: dict[str, list[float]]) -> list[Row]:
    made = {name: row(name, "records/s", figures[name]) for name in CEILINGS.values()}
    for name, ceiling in CEILINGS.items():
        made[name] = row(f"suiro {name}", "records/s", figures[name], made[ceiling])
    return list(made.values())


STAGED = "send without a network, to encoded batches"
PIPELINE = "bare pipeline of three processes, 1 MB messages"
PLAIN_DOWN = "plain gRPC stream down, 2 MB messages"
CEILINGS = {
    "send": STAGED,
    "send_many": PIPELINE,
    "send_arrow": PIPELINE,
    "poll": PLAIN_DOWN,
    "poll_arrow": PLAIN_DOWN,
}


def _ceilings(ports: Ports, batch: bytes) -> dict[str, float]:
    batches = ARROW_RECORDS // BATCH_RECORDS
    records = batches * BATCH_RECORDS
    up = partial(_in_loop, lambda: plain_stream.send(ports.pipeline, batch, batches))
    size, count = 2 * len(batch), batches // 2
    down = partial(_in_loop, lambda: plain_stream.receive(ports.plain, size, count))
    return {
        STAGED: _timed(RECORDS, _send_without_network),
        PIPELINE: _timed(records, up),
        PLAIN_DOWN: _timed(records, down),
    }


_runner = asyncio.Runner(loop_factory=new_loop)
"""One for all rounds, and never closed: gRPC's poller stumbles over loops that were."""


def _in_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    _runner.run(work())


class _NoLoop:
    """The stager wakes nobody: this thread takes what it has staged."""

    def call_soon_threadsafe(self, *_: object) -> None:
        return


def _send_without_network() -> None:
    """What a producer does with a record, but for sending its batch: in one thread."""
    settings = ProducerSettings()
    stager = Stager(settings, lambda: None, wall_clock_ms)
    stager.start(cast("asyncio.AbstractEventLoop", _NoLoop()))
    partitioner = make_partitioner(settings.partitioner, Random(1), settings.batch_size)
    accumulator = Accumulator(
        batch_bytes=settings.batch_size,
        batch_records=100_000,
        linger_ms=0,
        delivery_timeout_ms=1,
    )
    send = stager.send
    for start in range(0, RECORDS, BATCH_RECORDS):
        for _ in range(min(BATCH_RECORDS, RECORDS - start)):
            send("topic", VALUE)
        for run in stager.take("topic", -1):
            for partition, part in place(run, partitioner, PARTITIONS):
                accumulator.add(TopicPartition("topic", partition), part, 0)
        for where in accumulator.partitions():
            while (batch := accumulator.take(where)) is not None:
                batch.encode(BatchOptions())
                stager.release(batch.size)


Reading = dict[str, float]


def _written(
    cluster: LocalCluster,
    topic: str,
    records: int,
    send: Callable[[suiro.Producer, str], None],
    read: Callable[[LocalCluster, str], Reading] | None = None,
) -> tuple[float, Reading]:
    """How fast a topic is written, and read; it is gone afterwards."""
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic(topic, partitions=PARTITIONS, replication_factor=REPLICAS)
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send(topic, b"the line is open").result(30)
        _warm_pages(cluster.directory, records * REPLICAS * STORED_BYTES)
        written = _timed(records, partial(send, producer, topic))
    measured = read(cluster, topic) if read else {}
    _remove(cluster, topic)
    return written, measured


def _warm_pages(folder: Path, size: int) -> None:
    """Let the page cache have used so many bytes of memory lately."""
    path, piece = folder / "pages", bytes(1 << 20)
    with path.open("wb") as file:
        for _ in range(size >> 20):
            file.write(piece)
    path.unlink()


def _remove(cluster: LocalCluster, topic: str) -> None:
    """Delete a topic and wait until its pages have left the cache (see `bench.node`)."""
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.delete_topic(topic)
    folders = [node.folder / "data/log" for node in cluster.brokers]
    while any(path.name.startswith(topic) for folder in folders for path in folder.iterdir()):
        time.sleep(0.01)
    os.sync()


def _send_loop(records: int, producer: suiro.Producer, topic: str) -> None:
    send = producer.send
    for _ in range(records):
        send(topic, VALUE)
    producer.flush()


def _bulk(how: str, data: Any, producer: suiro.Producer, topic: str) -> None:
    getattr(producer, how)(topic, data).wait(60)


def _read(cluster: LocalCluster, topic: str) -> Reading:
    with suiro.Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of(topic))
        polled = _timed(ARROW_RECORDS, partial(_poll, consumer))
    with suiro.Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of(topic))
        tables = partial(_poll_arrow, consumer)
        return {"poll": polled, "poll_arrow": _timed(ARROW_READS * ARROW_RECORDS, tables)}


def _poll(consumer: suiro.Consumer) -> None:
    seen = 0
    while seen < ARROW_RECORDS:
        for record in consumer.poll(10, max_records=POLL_RECORDS):
            seen += record.value is not None


def _poll_arrow(consumer: suiro.Consumer) -> None:
    for _ in range(ARROW_READS):
        seen = 0
        while seen < ARROW_RECORDS:
            seen += consumer.poll_arrow(10).num_rows
        for partition in consumer.assignment():
            consumer.seek(partition, 0)


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
        quiet = {"log_level": 3}
        producer = Producer({**settings, **quiet, "queue.buffering.max.messages": 10_000_000})
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
            wanted = _held(consumer, topic) * 9 // 10
            into.append(_timed(wanted, partial(how, consumer, wanted)))
            consumer.close()
    return [
        row("confluent-kafka produce, mock cluster", "records/s", sent),
        row("confluent-kafka consume(10000), mock cluster", "records/s", consumed),
        row("confluent-kafka poll, mock cluster", "records/s", polled),
    ]


def _held(consumer: Any, topic: str) -> int:
    """How many records the mock cluster has kept: the last few megabytes of each partition."""
    from confluent_kafka import TopicPartition as Where

    numbers = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    marks = (consumer.get_watermark_offsets(Where(topic, n), timeout=10) for n in numbers)
    return sum(high - low for low, high in marks)


def _confluent_send(producer: Any, topic: str) -> None:
    produce = producer.produce
    for _ in range(RECORDS):
        produce(topic, VALUE)
    producer.flush()


def _confluent_consume(consumer: Any, wanted: int) -> None:
    seen = 0
    while seen < wanted:
        seen += sum(1 for message in consumer.consume(10_000, 0.02) if message.value())


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
