"""Spark over the connector: rows of 100-byte values, local[2], cluster and Spark on this machine.

Beside each figure stands a source that costs next to nothing: the same columns, one Arrow batch
yielded again and again. What it reaches is the ceiling for any Python source.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import suiro
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from bench.harness import Row, row
from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

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
            return _measure(spark, cluster, min(repeat, 3), Path(folder))
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


def _measure(spark: SparkSession, cluster: LocalCluster, repeat: int, folder: Path) -> list[Row]:
    given = {"bootstrap": cluster.bootstrap, "subscribe": TOPIC}
    small = {**given, "subscribe": "small", "maxOffsetsPerTrigger": "1"}

    def batch(kind: str, options: dict[str, str]) -> Callable[[], float]:
        return lambda: _batch_rate(spark.read.format(kind).options(**options).load())

    def stream(kind: str, options: dict[str, str]) -> list[dict[str, Any]]:
        options = {**options, "startingOffsets": "earliest"} if kind == "suiro" else options
        frame = spark.readStream.format(kind).options(**options).load()
        checkpoint = tempfile.mkdtemp(dir=folder)
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        return list(query.recentProgress)

    def stream_rate(kind: str, options: dict[str, str]) -> Callable[[], float]:
        return lambda: float(stream(kind, options)[0]["processedRowsPerSecond"])

    def overhead(kind: str, options: dict[str, str]) -> list[float]:
        steps = stream(kind, options)[2:]
        return [float(step["durationMs"]["triggerExecution"]) for step in steps]

    free_batch = row("free source, batch", "rows/s", _figures(batch("free", {}), repeat))
    free_stream = row("free source, stream", "rows/s", _figures(stream_rate("free", {}), repeat))
    steps = {"steps": str(SMALL_BATCHES)}
    free_step = row("free source, micro-batch of one row", "ms", overhead("free", steps))
    return [
        free_batch,
        row("suiro, batch", "rows/s", _figures(batch("suiro", given), repeat), free_batch),
        free_stream,
        row("suiro, stream", "rows/s", _figures(stream_rate("suiro", given), repeat), free_stream),
        free_step,
        row("suiro, micro-batch of one row", "ms", overhead("suiro", small), free_step),
    ]


def _figures(work: Callable[[], float], repeat: int) -> list[float]:
    work()  # starts the Python workers
    return [work() for _ in range(repeat)]


def _batch_rate(frame: DataFrame) -> float:
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return ROWS / (time.perf_counter() - start)


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
