"""One real node: what is produced is what is consumed, by the SDK and by the command line."""

from __future__ import annotations

import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro import aio
from suiro._proto import broker_pb2 as pb
from suiro.model.batch import Compression
from suiro.model.encode import encode_lists
from suiro.model.errors import (
    InvalidRequest,
    NoPosition,
    OffsetOutOfRange,
    TopicExists,
    Unavailable,
    UnknownTopicOrPartition,
)
from suiro.transport.framing import Framed
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from pathlib import Path

    from suiro.model.record import Record

    from tests.cluster.harness import SingleNode

pytestmark = pytest.mark.cluster


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


def read_all(node: SingleNode, topic: str, count: int) -> list[Record]:
    records: list[Record] = []
    with suiro.Consumer(node.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of(topic))
        while len(records) < count:
            polled = consumer.poll(10, max_records=count)
            assert polled, f"only {len(records)} of {count} records came"
            records += polled
    return records


def run_cli(node: SingleNode, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "suiro.cli", *words, "--bootstrap", node.bootstrap]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=30, check=False
    )


def test_records_come_back_as_they_were_sent(node: SingleNode, topic: str) -> None:
    with suiro.Producer(node.bootstrap) as producer:
        handles = [
            producer.send(topic, b"plain"),
            producer.send(topic, b"v", key=b"k", timestamp_ms=1_000),
            producer.send(topic, None, key=b"gone"),
            producer.send(topic, b"h", headers=[("trace", b"1"), ("empty", None)]),
        ]
        offsets = [handle.result(10).offset for handle in handles]
    assert offsets == [0, 1, 2, 3]
    records = read_all(node, topic, 4)
    assert [record.offset for record in records] == offsets
    assert [record.value for record in records] == [b"plain", b"v", None, b"h"]
    assert [record.key for record in records] == [None, b"k", b"gone", None]
    assert records[1].timestamp_ms == 1_000
    assert records[3].headers == (("trace", b"1"), ("empty", None))


@pytest.mark.parametrize("compression", list(Compression), ids=lambda c: c.name.lower())
def test_every_compression(node: SingleNode, topic: str, compression: Compression) -> None:
    values = [b"value %d " % i * 20 for i in range(2_000)]
    with suiro.Producer(node.bootstrap, compression=compression) as producer:
        for value in values:
            producer.send(topic, value)
    assert [record.value for record in read_all(node, topic, len(values))] == values


def test_keys_choose_partitions_and_keep_their_order(node: SingleNode, topic: str) -> None:
    with suiro.Admin(node.bootstrap) as admin:
        admin.create_topic(topic, partitions=4)
    with suiro.Producer(node.bootstrap) as producer:
        for i in range(1_000):
            producer.send(topic, b"%d" % i, key=b"key-%d" % (i % 17))
    by_key: dict[bytes | None, list[Record]] = {}
    for record in read_all(node, topic, 1_000):
        by_key.setdefault(record.key, []).append(record)
    assert len({record.partition for records in by_key.values() for record in records}) == 4
    for records in by_key.values():
        assert len({record.partition for record in records}) == 1
        numbers = [int(record.value or b"") for record in records]
        assert numbers == sorted(numbers)


def test_seek_by_offset_and_by_time(node: SingleNode, topic: str) -> None:
    with suiro.Producer(node.bootstrap) as producer:
        for i in range(100):
            producer.send(topic, b"%d" % i, timestamp_ms=1_000 + i)
    where = suiro.TopicPartition(topic, 0)
    with suiro.Consumer(node.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        consumer.seek(where, 90)
        assert consumer.poll(10)[0].offset == 90
        assert consumer.seek_to(where, 1_042) == 42
        assert consumer.poll(10)[0].value == b"42"
        assert consumer.seek_to(where, suiro.Bound.EARLIEST) == 0
        assert consumer.seek_to(where, 99_999) == 100
        assert consumer.position(where) == 100


def test_latest_sees_only_what_comes(node: SingleNode, topic: str) -> None:
    with (
        suiro.Producer(node.bootstrap) as producer,
        suiro.Consumer(node.bootstrap) as consumer,
    ):
        producer.send(topic, b"before").result(10)
        consumer.assign(consumer.partitions_of(topic))
        producer.send(topic, b"after").result(10)
        assert [record.value for record in consumer.poll(10)] == [b"after"]


async def test_asyncio_clients(node: SingleNode, topic: str) -> None:
    async with aio.Producer(node.bootstrap) as producer:
        stored = await producer.send(topic, b"hello")
        assert (stored.partition, stored.offset) == (0, 0)
    async with aio.Consumer(node.bootstrap, auto_offset_reset="earliest") as consumer:
        await consumer.assign(await consumer.partitions_of(topic))
        async for record in consumer:
            assert record.value == b"hello"
            break


async def test_unary_produce_and_fetch(node: SingleNode, topic: str) -> None:
    """The simple rpcs, for other languages, do the same as the streams."""
    with suiro.Admin(node.bootstrap) as admin:
        admin.create_topic(topic)
    batch = encode_lists(None, [b"a", b"b"], timestamps_ms=7)
    transport = GrpcTransport()
    request = pb.ProduceRequest(acks=-1, parts=[pb.ProducePart(topic=topic, size=len(batch))])
    reply = await transport.call(
        node.address, BrokerMethods.PRODUCE, Framed(request, (batch,)), timeout_s=10
    )
    assert reply.results[0].base_offset == 0
    part = pb.FetchPart(topic=topic, offset=1, last_epoch=-1)
    fetched = await transport.call(
        node.address, BrokerMethods.FETCH, pb.FetchRequest(parts=[part]), timeout_s=10
    )
    assert fetched.header.results[0].next_offset == 2
    assert len(fetched.body) == len(batch)
    await transport.close()


async def test_bad_requests_get_typed_errors(node: SingleNode, topic: str) -> None:
    with suiro.Admin(node.bootstrap) as admin:
        admin.create_topic(topic)
        with pytest.raises(TopicExists):
            admin.create_topic(topic)
        with pytest.raises(UnknownTopicOrPartition, match="suiro topic list"):
            admin.describe_topic("no-such-topic")
    transport = GrpcTransport()

    async def produce(request: pb.ProduceRequest, batch: bytes) -> pb.ProduceReply:
        framed = Framed(request, (batch,))
        return await transport.call(node.address, BrokerMethods.PRODUCE, framed, timeout_s=10)

    good = bytes(encode_lists(None, [b"a"], timestamps_ms=7))
    corrupt = good[:-1] + b"X"
    part = pb.ProducePart(topic=topic, size=len(good))
    assert (await produce(pb.ProduceRequest(acks=-1, parts=[part]), corrupt)).results[0].error.code
    with pytest.raises(InvalidRequest, match="acks is 7"):
        await produce(pb.ProduceRequest(acks=7, parts=[part]), good)
    with pytest.raises(InvalidRequest, match="add up"):
        await produce(pb.ProduceRequest(acks=1, parts=[part]), good + b"more")
    await transport.close()
    # None of it had an effect.
    with suiro.Producer(node.bootstrap) as producer:
        assert producer.send(topic, b"x").result(10).offset == 0
        wrong, right = producer.send(topic, b"x", partition=9), producer.send(topic, b"y")
        with pytest.raises(InvalidRequest, match="no partition 9"):
            wrong.result(10)
        assert right.result(10).offset == 1
        with pytest.raises(InvalidRequest, match="value is str"):
            producer.send(topic, "text")  # type: ignore[arg-type]


def test_positions_outside_the_log(node: SingleNode, topic: str) -> None:
    where = suiro.TopicPartition(topic, 0)
    with suiro.Producer(node.bootstrap) as producer:
        producer.send(topic, b"only").result(10)
    with suiro.Consumer(node.bootstrap, auto_offset_reset="none") as consumer:
        with pytest.raises(NoPosition):
            consumer.assign([where])
        consumer.assign({where: 5})
        with pytest.raises(OffsetOutOfRange) as caught:
            consumer.poll(10)
        assert (caught.value.hint_int("start"), caught.value.hint_int("end")) == (0, 1)
    with suiro.Consumer(node.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign({where: 5})
        assert consumer.poll(10)[0].value == b"only"


def test_connecting_to_nothing_fails_soon_and_says_where() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1:.*suiro up"):
        suiro.Admin("suiro://127.0.0.1:1", timeout_s=0.5)


def test_command_line(node: SingleNode, topic: str, tmp_path: Path) -> None:
    produced = run_cli(node, "produce", topic, "--key-separator", ":", stdin="a:1\nb:2\n")
    assert (produced.returncode, produced.stderr) == (0, "")
    consumed = run_cli(node, "consume", topic, "--from-beginning", "--keys", "-n", "2")
    assert consumed.stdout == "a\t1\nb\t2\n"
    lines = tmp_path / "lines"
    lines.write_text("from a file\n")
    assert run_cli(node, "produce", topic, "--file", str(lines)).returncode == 0
    last = run_cli(node, "consume", topic, "--from-beginning", "-n", "3", "--offsets")
    assert last.stdout.splitlines()[-1] == "0:2\tfrom a file"
    assert topic in run_cli(node, "topic", "list").stdout
    assert "ReplicationFactor: 1" in run_cli(node, "topic", "describe", topic).stdout
    missing = run_cli(node, "topic", "describe", "nothing-here")
    assert missing.returncode == 1
    assert missing.stderr.startswith("suiro: there is no topic 'nothing-here'")


def test_log_dump_shows_what_is_on_disk(node: SingleNode, topic: str) -> None:
    with suiro.Producer(node.bootstrap) as producer:
        producer.send(topic, b"seen", key=b"k").result(10)
    segment = node.directory / "data" / "log" / f"{topic}-0" / f"{0:020}.log"
    command = [sys.executable, "-m", "suiro.cli", "log", "dump", str(segment), "--records"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert "offsets 0..0 records 1" in shown.stdout
    assert "key b'k' value b'seen'" in shown.stdout


def test_a_stopped_node_comes_back_with_everything(own_node: SingleNode) -> None:
    with suiro.Producer(own_node.bootstrap) as producer:
        for i in range(500):
            producer.send("kept", b"%d" % i)
    assert own_node.stop() == 0
    own_node.start()
    values = [record.value for record in read_all(own_node, "kept", 500)]
    assert values == [b"%d" % i for i in range(500)]
