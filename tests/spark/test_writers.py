"""The writers against a real cluster, driven as Spark drives them, without Spark."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import suiro
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)
from pyspark_suiro.checkpoint import has_written, query_of
from pyspark_suiro.errors import BadRow, SchemaMismatch
from pyspark_suiro.sink_check import check_target
from pyspark_suiro.sink_options import PRODUCER_SETTINGS, parse_sink
from pyspark_suiro.writer import BatchWriter, StreamWriter, TaskDone
from suiro.cli.app import app
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    InvalidSetting,
    InvalidTransaction,
    StaleBatch,
    TransactionAborted,
    Unavailable,
)
from suiro.model.ids import shared_id
from typer.testing import CliRunner

from tests.spark.kit import SCHEMA_WITH_HEADERS, batch, committed, new_topic, options, values

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql.datasource import WriterCommitMessage

    from cluster.local_cluster import LocalCluster

VALUES = StructType().add("value", BinaryType())


def rows(*written: bytes) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(written, pa.binary())})


def stream_writer(cluster: LocalCluster, topic: str, **more: str) -> StreamWriter:
    """As Spark makes one for each try of a batch."""
    return StreamWriter(VALUES, {"bootstrap": cluster.bootstrap, "topic": topic, **more})


def task(
    writer: StreamWriter, query: str, number: int, *written: bytes
) -> WriterCommitMessage | None:
    shared = suiro.SharedBatch(query, number, writer.attempt)
    copy = pickle.loads(pickle.dumps(writer))
    message: WriterCommitMessage = copy.write_shared(shared, iter([rows(*written)]))
    return message


def seen(cluster: LocalCluster, topic: str) -> list[bytes]:
    return sorted(committed(cluster, topic))


@pytest.mark.cluster
def test_all_columns_are_written(cluster: LocalCluster) -> None:
    for name in ("out-a", "out-b"):
        new_topic(cluster, name, partitions=2)
    schema = (
        StructType()
        .add("key", StringType())
        .add("value", StringType())
        .add("topic", StringType())
        .add("partition", IntegerType())
        .add("timestamp", TimestampType())
        .add(SCHEMA_WITH_HEADERS["headers"])
    )
    columns = {
        "key": ["k1", None, "k3"],
        "value": ["v1", "v2", None],
        "topic": ["out-a", "out-b", "out-a"],
        "partition": pa.array([1, 0, 1], pa.int32()),
        "timestamp": pa.array([1_000, 2_000, 3_000], pa.timestamp("us", tz="UTC")),
        "headers": pa.array(
            [[{"key": "h", "value": b"1"}], [], None],
            pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
        ),
    }
    writer = BatchWriter(schema, {"bootstrap": cluster.bootstrap}, overwrite=False)
    message = writer.write(iter([pa.record_batch(columns)]))
    assert values(batch(options(cluster, "out-a"))) == []  # nothing before the commit
    writer.commit([message])
    given = options(cluster, "out-a", includeHeaders="true")
    first, second = batch(given, SCHEMA_WITH_HEADERS).to_pylist()
    assert (first["key"], first["value"], first["partition"]) == (b"k1", b"v1", 1)
    assert first["timestamp"].timestamp() == 0.001
    assert first["headers"] == [{"key": "h", "value": b"1"}]
    assert (second["key"], second["value"], second["headers"]) == (b"k3", None, [])
    assert seen(cluster, "out-b") == [b"v2"]


@pytest.mark.cluster
def test_only_tasks_that_count_are_committed(cluster: LocalCluster) -> None:
    """One task is run twice, as a speculative one is; one fails and never says that it is done."""
    topic = new_topic(cluster, "losers")
    writer = stream_writer(cluster, topic)
    task(writer, "losers", 0, b"a")
    counted = task(writer, "losers", 0, b"a")
    other = task(writer, "losers", 0, b"b")

    def failing() -> object:
        yield rows(b"lost")
        raise RuntimeError("the task fails")

    shared = suiro.SharedBatch("losers", 0, writer.attempt)
    with pytest.raises(RuntimeError, match="the task fails"):
        writer.write_shared(shared, failing())  # type: ignore[arg-type]
    writer.commit([counted, other], 0)
    assert seen(cluster, topic) == [b"a", b"b"]


@pytest.mark.cluster
def test_a_batch_is_committed_once(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "once")
    writer = stream_writer(cluster, topic)
    messages = [task(writer, "once", 0, b"a"), task(writer, "once", 0, b"b")]
    writer.commit(messages, 0)
    writer.commit(messages, 0)  # the driver did not hear of it
    writer.abort(messages, 0)  # Spark aborts what raised, also after the decision
    again = stream_writer(cluster, topic)  # the batch is run again from the checkpoint
    message = task(again, "once", 0, b"a", b"b")
    assert message == TaskDone(None)
    again.commit([message], 0)
    last = stream_writer(cluster, topic)
    last.commit([task(last, "once", 1, b"c")], 1)
    assert seen(cluster, topic) == [b"a", b"b", b"c"]
    with pytest.raises(StaleBatch):
        task(stream_writer(cluster, topic), "once", 0, b"a")


@pytest.mark.cluster
def test_a_task_without_rows_takes_no_part(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "idle")
    writer = stream_writer(cluster, topic)
    messages = [task(writer, "idle", 0), task(writer, "idle", 0, b"a")]
    assert messages[0] == TaskDone(None)
    writer.commit(messages, 0)
    assert seen(cluster, topic) == [b"a"]
    writer.commit([task(writer, "idle", 1)], 1)  # no task has any
    with suiro.SharedTransactions(cluster.bootstrap) as shared:
        assert shared.last_committed("idle") == 0


@pytest.mark.cluster
def test_a_newer_try_ends_an_older_one(cluster: LocalCluster) -> None:
    """A driver that was cut off comes back and commits what another has taken over."""
    topic = new_topic(cluster, "zombie")
    old, new = stream_writer(cluster, topic), stream_writer(cluster, topic)
    stale = task(old, "zombie", 0, b"old")
    fresh = task(new, "zombie", 0, b"new")
    with pytest.raises((TransactionAborted, InvalidTransaction)):
        old.commit([stale], 0)
    new.commit([fresh], 0)
    assert seen(cluster, topic) == [b"new"]


@pytest.mark.cluster
def test_an_aborted_batch_leaves_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    topic = new_topic(cluster, "aborted")
    plain = BatchWriter(VALUES, {"bootstrap": cluster.bootstrap, "topic": topic}, overwrite=False)
    plain.write(iter([rows(b"x")]))
    plain.abort([None])
    writer = stream_writer(cluster, topic)
    writer.abort([task(writer, "aborted", 0, b"y"), None], 0)
    (tmp_path / "metadata").write_text('{"id":"aborted"}')
    writer = stream_writer(cluster, topic, checkpointLocation=f"file://{tmp_path}")
    task(writer, "aborted", 0, b"z")
    writer.abort([None], 0)  # no task tells: the checkpoint does
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send(topic, b"after").result(10)
    assert seen(cluster, topic) == [b"after"]  # nothing is open any more


@pytest.mark.cluster
def test_at_least_once_is_seen_at_once(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "cheap")
    writer = stream_writer(cluster, topic, delivery="at_least_once")
    message = writer.write(iter([rows(b"a"), rows(), rows(b"b"), rows(b"c")]))
    assert seen(cluster, topic) == [b"a", b"b", b"c"]
    writer.commit([message], 0)
    writer.abort([message, None], 0)
    assert seen(cluster, topic) == [b"a", b"b", b"c"]


@pytest.mark.cluster
def test_a_transaction_names_its_query(cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "named")
    writer = stream_writer(cluster, topic, queryName="clicks", **{"suiro.compression.type": "lz4"})
    writer.commit([task(writer, "some-id", 4, b"a")], 4)
    assert seen(cluster, topic) == [b"a"]
    shown = CliRunner().invoke(
        app, ["txn", "describe", shared_id("some-id"), "--bootstrap", cluster.bootstrap]
    )
    assert "held by spark-clicks at " in shown.output
    assert "last committed sequence: 4" in shown.output


@pytest.mark.cluster
def test_what_cannot_be_written_to_is_told_by_the_driver(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    """Within seconds, and without a task."""
    nowhere = {"bootstrap": "127.0.0.1:1", "topic": "t", "suiro.request.timeout.ms": "1000"}
    with pytest.raises(Unavailable, match=r"127.0.0.1:1 \(option 'bootstrap'\) does not answer"):
        check_target(parse_sink(nowhere))
    with pytest.raises(SuiroError, match="no/name"):
        check_target(parse_sink({"bootstrap": cluster.bootstrap, "topic": "no/name"}))
    check_target(parse_sink({"bootstrap": cluster.bootstrap, "topic": "made-by-its-writer"}))
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    check_target(parse_sink({**nowhere, "checkpointLocation": str(tmp_path)}))  # not asked again


@pytest.mark.cluster
def test_a_row_without_a_topic_is_refused(cluster: LocalCluster) -> None:
    schema = StructType().add("value", StringType()).add("topic", StringType())
    writer = BatchWriter(schema, {"bootstrap": cluster.bootstrap}, overwrite=False)
    with pytest.raises(BadRow, match="null in its column 'topic'"):
        writer.write(iter([pa.record_batch({"value": ["x"], "topic": pa.nulls(1, pa.string())})]))
    writer.abort([None])


# -- options and schemas --------------------------------------------------------------------------


def test_options_of_the_sink() -> None:
    parsed = parse_sink({"topic": "t", "checkpointlocation": "/c", "suiro.linger.ms": "7"})
    assert (parsed.topic, parsed.is_exactly_once, parsed.checkpoint) == ("t", True, "/c")
    assert parsed.client == (("client.id", "spark"), ("linger.ms", 7.0))
    assert dict(parse_sink({"queryName": "q"}).client) == {"client.id": "spark-q"}
    assert not parse_sink({"delivery": "at_least_once"}).is_exactly_once


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topc": "t"}, "did you mean 'topic'"),
        ({"subscribe": "t"}, "for reading"),
        ({"delivery": "twice"}, "'exactly_once' or 'at_least_once'"),
        ({"suiro.linger": "1"}, "did you mean 'suiro.linger.ms'"),
        ({"suiro.partitioner": "mine"}, "murmur2"),
        ({"kafka.bootstrap.servers": "x"}, "called 'bootstrap'"),
    ],
)
def test_a_wrong_option_of_the_sink_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        parse_sink(given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "given", "said"),
    [
        (StructType().add("key", BinaryType()), {"topic": "t"}, "no column 'value'"),
        (StructType().add("value", LongType()), {"topic": "t"}, "'value' is bigint"),
        (StructType().add("other", LongType()), {"topic": "t"}, "'other' cannot be written"),
    ],
)
def test_a_schema_that_cannot_be_written_is_refused(
    schema: StructType, given: dict[str, str], said: str
) -> None:
    with pytest.raises(SchemaMismatch, match=said):
        StreamWriter(schema, given)


def test_where_to_write_must_be_said() -> None:
    schema = StructType().add("value", BinaryType())
    with pytest.raises(InvalidSetting, match="option 'topic'"):
        StreamWriter(schema, {})
    with pytest.raises(InvalidSetting, match="mode"):
        BatchWriter(schema, {"topic": "t"}, overwrite=True)


@pytest.mark.parametrize(("name", "kind"), PRODUCER_SETTINGS.items())
def test_settings_of_the_producer_are_understood(name: str, kind: type) -> None:
    given = {"compression_type": "lz4", "partitioner": "round_robin"}.get(name, "7000000")
    dotted = name.replace("_", ".")
    assert dict(parse_sink({f"suiro.{dotted}": given}).client)[dotted] == kind(given)


def test_the_query_of_a_checkpoint(tmp_path: Path) -> None:
    assert query_of(str(tmp_path)) is None
    assert query_of("") is None
    assert query_of("s3://bucket/checkpoint") is None
    assert not has_written(str(tmp_path))
    (tmp_path / "metadata").write_text('{"id":"q"}')
    assert query_of(f"file:{tmp_path}") == "q"
    (tmp_path / "metadata").write_text("torn")
    assert query_of(str(tmp_path)) is None
