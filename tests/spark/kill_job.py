"""The query of the kill matrix, as a driver of its own: copies a topic, until it is through.

When the query fails it is started again from its checkpoint with another number of tasks.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark.faults import PLANT, FaultySource
from tests.spark.kit import SMALL_SPARK

PER_BATCH = 1_000
ARROW_ROWS = 100
TRIES_MAX = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "source", "target", "folder", "delivery"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--tasks", type=int, default=2)
    given = parser.parse_args()
    folder = Path(given.folder)
    spark = _session()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    (folder / "pids").write_text(f"{gateway.proc.pid} {os.getpid()}")
    spark.dataSource.register(FaultySource)
    for tasks in itertools.islice(itertools.cycle((given.tasks, 1, 3)), TRIES_MAX):
        try:
            _run(spark, given, tasks)
        except StreamingQueryException as error:
            print(f"failed: {str(error).splitlines()[0][:200]}", flush=True)
        else:
            print("through", flush=True)
            return
    sys.exit(f"not through after {TRIES_MAX} tries")


def _session() -> SparkSession:
    return (
        SparkSession.builder.master("local[2,4]")  # a task may fail three times
        .config(map=SMALL_SPARK)
        .config("spark.log.level", "OFF")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))
        .getOrCreate()
    )


def _run(spark: SparkSession, given: argparse.Namespace, tasks: int) -> None:
    frame = (
        spark.readStream.format("suiro")
        .option("bootstrap", given.bootstrap)
        .option("subscribe", given.source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(PER_BATCH))
        .option("minPartitions", str(tasks))
        .load()
    )
    query = (
        frame.select("key", "value")
        .writeStream.format("suiro_faulty")
        .option("bootstrap", given.bootstrap)
        .option("topic", given.target)
        .option("delivery", given.delivery)
        .option("checkpointLocation", f"{given.folder}/checkpoint")
        .option(PLANT, given.folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
