"""Spark over the connector: rows of 100-byte values, local[2], cluster and Spark on this machine.

Beside each figure stands a source that costs next to nothing: the same columns, one Arrow batch
yielded again and again. What it reaches is the ceiling for any Python source.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import suiro
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType
from pyspark_suiro.reader import BatchReader

from bench.harness import Row, row
from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.streaming.datasource import ReadLimit

ROWS = 4_000_000
PARTITIONS = 4
BATCH = 10_000
SMALL_BATCHES = 12
TOPIC = "rows"
FREE_DDL = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "timestampType INT"
)


def run(repeat: int = 3) -> list[Row]:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder) / "cluster", Layout(txns=1)) as cluster,
    ):
        _fill(cluster)
        spark = _session()
        try:
            return _Suite(spark, cluster, Path(folder)).run(min(repeat, 3))
        finally:
            spark.stop()


def _fill(cluster: LocalCluster) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic(TOPIC, partitions=PARTITIONS)
        admin.create_topic("small", partitions=1)
    with suiro.Producer(cluster.bootstrap) as producer:
        numbers = np.repeat(np.arange(PARTITIONS, dtype=np.int32), ROWS // PARTITIONS)
        values = pa.array([b"v" * 100] * ROWS, pa.binary())
        producer.send_arrow(TOPIC, pa.table({"value": values, "partition": numbers})).wait(120)
        producer.send_many("small", [b"x"] * SMALL_BATCHES).wait(30)


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.dataSource.register(FreeSource)
    return spark


@dataclass
class _Suite:
    """One session, one cluster, and what is measured in them."""

    spark: SparkSession
    cluster: LocalCluster
    folder: Path
    outputs: Iterator[int] = field(default_factory=count)

    def options(self, topic: str) -> dict[str, str]:
        where = {"bootstrap": self.cluster.bootstrap, "subscribe": topic}
        return {**where, "startingOffsets": "earliest"}

    def batch(self, kind: str, options: dict[str, str]) -> float:
        frame = self.spark.read.format(kind).options(**options).load()
        start = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return ROWS / (time.perf_counter() - start)

    def stream(
        self, kind: str, options: dict[str, str], sink: str = "noop", **to: str
    ) -> list[dict[str, Any]]:
        """The progress of every micro-batch."""
        frame = self.spark.readStream.format(kind).options(**options).load()
        query = (
            frame.select("key", "value")
            .writeStream.format(sink)
            .options(**to, checkpointLocation=tempfile.mkdtemp(dir=self.folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(200)
        return [dict(progress) for progress in query.recentProgress]

    def read_rate(self, kind: str, options: dict[str, str]) -> float:
        return float(self.stream(kind, options)[0]["processedRowsPerSecond"])

    def write_rate(self, sink: str, **to: str) -> float:
        """From the free source, so that only the sink costs anything."""
        if sink == "suiro":
            topic = f"out-{next(self.outputs)}"
            with suiro.Admin(self.cluster.bootstrap) as admin:
                admin.create_topic(topic, partitions=PARTITIONS)
            to |= {"bootstrap": self.cluster.bootstrap, "topic": topic}
        return float(self.stream("free", {}, sink, **to)[0]["processedRowsPerSecond"])

    def step_ms(self, kind: str, options: dict[str, str]) -> list[float]:
        steps = self.stream(kind, options)[2:]
        return [float(step["durationMs"]["triggerExecution"]) for step in steps]

    def run(self, repeat: int) -> list[Row]:
        rows = self.options(TOPIC)
        found = _figures(
            {
                "free batch": lambda: self.batch("free", {}),
                "batch": lambda: self.batch("suiro", rows),
                "free stream": lambda: self.read_rate("free", {}),
                "stream": lambda: self.read_rate("suiro", rows),
                "tasks": lambda: _tasks_rate(rows),
                "free sink": lambda: self.write_rate("free"),
                "exactly once": lambda: self.write_rate("suiro"),
                "at least once": lambda: self.write_rate("suiro", delivery="at_least_once"),
            },
            repeat,
        )
        free_batch = row("free source, batch", "rows/s", found["free batch"])
        free_stream = row("free source, stream", "rows/s", found["free stream"])
        free_sink = row("free source and sink, stream", "rows/s", found["free sink"])
        free_ms = self.step_ms("free", {"steps": str(SMALL_BATCHES)})
        free_step = row("free source, micro-batch of one row", "ms", free_ms)
        small_ms = self.step_ms("suiro", {**self.options("small"), "maxOffsetsPerTrigger": "1"})
        return [
            free_batch,
            row("suiro, batch", "rows/s", found["batch"], free_batch),
            free_stream,
            row("suiro, stream", "rows/s", found["stream"], free_stream),
            row("suiro, one task after the other, without Spark", "rows/s", found["tasks"]),
            free_sink,
            row("suiro sink, exactly once", "rows/s", found["exactly once"], free_sink),
            row("suiro sink, at least once", "rows/s", found["at least once"], free_sink),
            free_step,
            row("suiro, micro-batch of one row", "ms", small_ms, free_step),
        ]


def _figures(work: dict[str, Callable[[], float]], repeat: int) -> dict[str, list[float]]:
    """In turns, so that what else the machine does is shared out; the first round warms up."""
    rounds = [{name: each() for name, each in work.items()} for _ in range(repeat + 1)]
    return {name: [each[name] for each in rounds[1:]] for name in work}


def _tasks_rate(given: dict[str, str]) -> float:
    schema = StructType.fromDDL(FREE_DDL)
    assert isinstance(schema, StructType)
    reader = BatchReader(schema, given)
    start = time.perf_counter()
    sizes = [batch.num_rows for task in reader.partitions() for batch in reader.read(task)]
    return float(sum(sizes)) / (time.perf_counter() - start)


# -- the source that costs nothing ----------------------------------------------------------------


def _free_rows(count: int) -> Iterator[pa.RecordBatch]:
    whole = pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(BATCH, pa.binary()),
            "value": pa.array([b"v" * 100] * BATCH, pa.binary()),
            "topic": pa.array([TOPIC] * BATCH),
            "partition": pa.array(np.zeros(BATCH, np.int32)),
            "offset": pa.array(np.arange(BATCH)),
            "timestamp": pa.array(np.arange(BATCH), pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array(np.zeros(BATCH, np.int32)),
        }
    )
    for start in range(0, count, BATCH):
        yield whole.slice(0, min(BATCH, count - start))


class FreeBatchReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(ROWS // PARTITIONS) for _ in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _free_rows(partition.value)


class FreeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """All rows in one batch, or one row in each of so many steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"step": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """The steps are fixed."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        return {"step": min(start["step"] + 1, self.steps)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        if start == end:
            return []
        sizes = [ROWS // PARTITIONS] * PARTITIONS if self.steps == 1 else [1]
        return [InputPartition(size) for size in sizes]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _free_rows(partition.value)


class FreeSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "free"

    def schema(self) -> str:
        return FREE_DDL

    def reader(self, schema: StructType) -> FreeBatchReader:
        return FreeBatchReader()

    def streamReader(self, schema: StructType) -> FreeStreamReader:  # noqa: N802
        return FreeStreamReader(int(self.options.get("steps", "1")))

    def streamWriter(self, schema: StructType, overwrite: bool) -> FreeWriter:  # noqa: N802
        return FreeWriter()


class FreeWriter(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()
