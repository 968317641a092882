"""The source inside of Spark: found by its name, in batches, streams, SQL and through Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from pyspark_suiro import lag

from examples.pipeline.standalone import worker_environment
from tests.spark.avro_click import AVRO, CLICK, avro
from tests.spark.kit import WHY_NOT_JAVA, committed, new_topic, options, send

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from cluster.local_cluster import LocalCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(bool(WHY_NOT_JAVA), reason=WHY_NOT_JAVA),
]


def numbered(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def found(frame: DataFrame) -> list[bytes]:
    return [bytes(row.value) for row in frame.orderBy("partition", "offset").collect()]


def test_a_batch(spark: SparkSession, cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "spark-batch", partitions=2)
    for partition in (0, 1):
        send(cluster, topic, numbered(0, 500), partition)
    given = options(cluster, topic, minPartitions="4", includeHeaders="true")
    frame = spark.read.format("suiro").options(**given).load()
    assert [field.name for field in frame.schema] == [
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
    ]  # fmt: skip
    assert found(frame) == numbered(0, 500) * 2


def test_filters_are_pushed_down(spark: SparkSession, cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "spark-filters", partitions=2)
    for partition in (0, 1):
        send(cluster, topic, numbered(0, 20), partition)
    frame = spark.read.format("suiro").options(**options(cluster, topic)).load()
    where = "partition = 1 and offset >= 10 and offset < 13 and timestamp > timestamp'2020-01-01'"
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        filtered = frame.where(where)
        assert filtered.rdd.getNumPartitions() == 1
        assert found(filtered) == numbered(10, 13)
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_typed_values_in_sql(spark: SparkSession, cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "spark-json")
    lines = [{"id": number, "when": "2026-01-02T03:04:05Z", "tags": ["x"]} for number in range(5)]
    send(cluster, topic, [json.dumps(line).encode() for line in lines])
    schema = "id LONG, when TIMESTAMP, tags ARRAY<STRING>"
    given = options(cluster, topic, valueFormat="json", valueSchema=schema)
    said = ", ".join(f"{name} '{value}'" for name, value in given.items())
    spark.sql(f"CREATE TEMPORARY VIEW clicks USING suiro OPTIONS ({said})")
    asked = "SELECT sum(value.id) s, max(year(value.when)) y, min(value.tags[0]) t FROM clicks"
    assert spark.sql(asked).collect() == [(10, 2026, "x")]


def test_avro_values(spark: SparkSession, cluster: LocalCluster) -> None:
    topic = new_topic(cluster, "spark-avro")
    send(cluster, topic, [avro(CLICK)] * 3)
    given = options(cluster, topic, valueFormat="avro", valueSchema=json.dumps(AVRO))
    frame = spark.read.format("suiro").options(**given).load()
    asked = ("count(value.id)", "sum(value.price)", "min(value.tags[1])", "max(value.place.x)")
    assert frame.selectExpr(*asked).collect() == [(3, 3 * CLICK["price"], "b", 1)]


def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, cluster: LocalCluster, tmp_path: Path
) -> None:
    topic = new_topic(cluster, "spark-stream", partitions=2)
    given = options(cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger="300")
    for start, batches in ((0, 2), (400, 2)):
        for partition in (0, 1):
            send(cluster, topic, numbered(start // 2, start // 2 + 200), partition)
        query = (
            spark.readStream.format("suiro")
            .options(**given)
            .load()
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        assert query.exception() is None
        assert len([p for p in query.recentProgress if p["numInputRows"]]) == batches
    assert found(spark.read.parquet(str(tmp_path / "out"))) == numbered(0, 400) * 2


def test_progress_tells_the_lag(spark: SparkSession, cluster: LocalCluster, tmp_path: Path) -> None:
    topic = new_topic(cluster, "spark-lag")
    send(cluster, topic, numbered(0, 10))
    given = options(cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    query = (
        spark.readStream.format("suiro")
        .options(**given)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    lags = [lag(progress["sources"][0])["spark-lag-0"] for progress in query.recentProgress]
    assert [each.records for each in lags] == [6, 2, 0]
    assert all(each.seconds is not None and 0 < each.seconds < 300 for each in lags[:2])
    assert lags[2].seconds == 0


def test_a_copy_is_exactly_once(spark: SparkSession, cluster: LocalCluster, tmp_path: Path) -> None:
    """A batch that is run again, as its checkpoint does not know of its commit, adds nothing."""
    source = new_topic(cluster, "spark-in")
    target = new_topic(cluster, "spark-out", partitions=2)
    send(cluster, source, numbered(0, 300))
    for _ in range(2):
        query = (
            spark.readStream.format("suiro")
            .options(**options(cluster, source, startingOffsets="earliest", minPartitions="3"))
            .load()
            .selectExpr("key", "value", f"'{target}' AS topic")
            .writeStream.format("suiro")
            .option("bootstrap", cluster.bootstrap)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        assert query.exception() is None
        (tmp_path / "commits" / "0").unlink()
        (tmp_path / "commits" / ".0.crc").unlink(missing_ok=True)
    assert len(committed(cluster, target)) == 300
    written = spark.read.format("suiro").options(**options(cluster, target)).load()
    assert sorted(found(written)) == sorted(numbered(0, 300))
    spark.range(5).selectExpr("CAST(id AS STRING) AS value").write.format("suiro").options(
        bootstrap=cluster.bootstrap, topic=target
    ).mode("append").save()
    assert written.count() == 300  # a frame is planned once; whoever wants more loads again
    again = spark.read.format("suiro").options(**options(cluster, target)).load()
    assert again.count() == 305


NOWHERE = {"bootstrap": "127.0.0.1:1", "suiro.request.timeout.ms": "1000"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribe": "x", "startingOfsets": "latest"}, "did you mean 'startingOffsets'"),
        ({"subscribe": "nowhere-at-all"}, "there is no topic 'nowhere-at-all'"),
        ({"subscribe": "x", **NOWHERE}, "(option 'bootstrap') does not answer"),
    ],
)
def test_errors_reach_the_driver(
    spark: SparkSession, cluster: LocalCluster, given: dict[str, str], said: str
) -> None:
    from pyspark.errors import AnalysisException

    began_s = time.monotonic()
    with pytest.raises(AnalysisException) as caught:
        spark.read.format("suiro").options(bootstrap=cluster.bootstrap).options(
            **given
        ).load().count()
    assert said in str(caught.value)
    assert time.monotonic() - began_s < 30


def test_a_schema_that_does_not_fit_reaches_the_driver(
    spark: SparkSession, cluster: LocalCluster
) -> None:
    from pyspark.errors import AnalysisException

    reader = spark.read.format("suiro").options(**options(cluster, "x")).schema("value STRING")
    with pytest.raises(AnalysisException, match="it is binary: read it so, and cast"):
        reader.load().count()
    writer = spark.range(1).write.format("suiro").mode("append")
    with pytest.raises(AnalysisException, match="column 'id' cannot be written"):
        writer.options(bootstrap=cluster.bootstrap, topic="x").save()


def test_a_sink_that_cannot_be_reached_reaches_the_driver(spark: SparkSession) -> None:
    from pyspark.errors import AnalysisException

    began_s = time.monotonic()
    rows = spark.range(1).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(AnalysisException, match="does not answer"):
        rows.write.format("suiro").options(**NOWHERE, topic="x").mode("append").save()
    assert time.monotonic() - began_s < 30


CONNECT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").getOrCreate()
given = {"bootstrap": sys.argv[1], "subscribe": sys.argv[2]}
print("batch", spark.read.format("suiro").options(**given).load().count())
query = (
    spark.readStream.format("suiro").options(**given, startingOffsets="earliest").load()
    .writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
)
query.awaitTermination(60)
print("stream", spark.table("seen").count())
spark.stop()
"""


@pytest.mark.slow
def test_through_spark_connect(cluster: LocalCluster, tmp_path: Path) -> None:
    """In a process of its own: a session is either classic or a client."""
    topic = new_topic(cluster, "spark-connect")
    send(cluster, topic, numbered(0, 7))
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, cluster.bootstrap, topic],
        cwd=tmp_path,
        env={**os.environ, **worker_environment()},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["batch", "7", "stream", "7"]
