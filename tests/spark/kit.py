"""What the tests of the connector share: a cluster, and readers driven as Spark drives them."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import suiro
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)
from pyspark_suiro.log_view import LogView
from pyspark_suiro.options import Topics, parse_source
from pyspark_suiro.reader import BatchReader, StreamReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql.datasource import InputPartition

    from cluster.local_cluster import LocalCluster

HEADER = StructType().add("key", StringType()).add("value", BinaryType())
SCHEMA = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("timestampType", IntegerType())
)
SCHEMA_WITH_HEADERS = StructType(list(SCHEMA.fields)).add("headers", ArrayType(HEADER))

WHY_NOT_JAVA = "" if shutil.which("java") else "Spark needs Java 17, and there is no `java` here"

SETTLED_S = 30.0

SMALL_SPARK: dict[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}
"""For short queries: what Spark compiles for long ones costs more than it saves."""


def new_topic(cluster: LocalCluster, name: str, partitions: int = 1) -> str:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic(name, partitions=partitions)
    return name


def send(cluster: LocalCluster, topic: str, values: Iterable[bytes], partition: int = 0) -> None:
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send_many(topic, list(values), partition=partition).result(30)


def options(cluster: LocalCluster, topic: str, **more: str) -> dict[str, str]:
    return {"bootstrap": cluster.bootstrap, "subscribe": topic, **more}


def read(reader: BatchReader | StreamReader, tasks: Sequence[InputPartition]) -> pa.Table:
    """What the tasks yield together."""
    batches = [batch for task in tasks for batch in reader.read(task)]
    return pa.Table.from_batches(batches) if batches else pa.table({"value": [], "offset": []})


def batch(given: dict[str, str], schema: StructType = SCHEMA) -> pa.Table:
    reader = BatchReader(schema, given)
    return read(reader, reader.partitions())


def committed(cluster: LocalCluster, topic: str) -> list[bytes]:
    """All values, once nothing is open any more: a commit is answered when it is decided, a moment
    before all partitions show it.
    """
    given = options(cluster, topic)
    with (
        LogView(parse_source(given)) as decided,
        LogView(parse_source({**given, "isolation": "read_uncommitted"})) as everything,
    ):
        places = decided.places(Topics((topic,)))
        until_s = time.monotonic() + SETTLED_S
        while decided.bounds(places) != everything.bounds(places):
            assert time.monotonic() < until_s, f"a transaction of {topic} stays open"
            time.sleep(0.01)
    return values(batch(given))


def values(table: pa.Table) -> list[bytes]:
    found: list[bytes] = table.column("value").to_pylist()
    return found


class Stream:
    """A query: asks for batch after batch, and remembers where it is, as Spark does, in text."""

    def __init__(self, given: dict[str, str]) -> None:
        self.given = given
        self.reader = StreamReader(SCHEMA, given)
        self.at: str | None = None

    def next(self) -> list[bytes]:
        """The values of the next batch; none if there is nothing new."""
        start = self._told(self.reader.initialOffset()) if self.at is None else self.at
        limit = self.reader.getDefaultReadLimit()
        self.at = self._told(self.reader.latestOffset(json.loads(start), limit))
        return self.again(start, self.at)

    def again(self, start: str, end: str) -> list[bytes]:
        tasks = self.reader.partitions(json.loads(start), json.loads(end))
        return values(read(self.reader, tasks))

    def restart(self) -> None:
        self.close()
        self.reader = StreamReader(SCHEMA, self.given)

    def close(self) -> None:
        self.reader.stop()

    @staticmethod
    def _told(offset: dict[str, Any]) -> str:
        return json.dumps(offset)
