"""The query of the kill matrix, as a driver of its own: copies a topic, until it is through.

When the query fails it is started again from its checkpoint with another number of tasks.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from examples.pipeline.standalone import worker_environment
from tests.spark.faults import PLAN, PLANS, PLANT, FaultySource
from tests.spark.kit import SMALL_SPARK

REPOSITORY = Path(__file__).parents[2]
PER_BATCH = 1_000
ARROW_ROWS = 100
TRIES_MAX = 8
LOCAL = "local[2,4]"
"""Two at a time; a task may fail three times."""

SPECULATION: dict[str, Any] = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "2s",
}


@dataclass(frozen=True, slots=True)
class Job:
    """What one driver is to do."""

    bootstrap: str
    source: str
    target: str
    folder: Path
    """Checkpoint, marks of faults, and the driver's log."""
    delivery: str = "exactly_once"
    plan: str = "none"
    tasks: int = 2
    master: str = LOCAL

    def command(self) -> list[str]:
        said = [(f"--{name}", str(getattr(self, name))) for name in self.__slots__]
        return [sys.executable, "-m", "tests.spark.kill_job", *itertools.chain(*said)]

    @property
    def log_path(self) -> Path:
        return self.folder / "driver.log"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap", "source", "target", "delivery", "master"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--plan", choices=PLANS, required=True)
    parser.add_argument("--tasks", type=int, required=True)
    job = Job(**vars(parser.parse_args()))
    spark = _session(job)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    (job.folder / "pids").write_text(f"{gateway.proc.pid} {os.getpid()}")
    spark.dataSource.register(FaultySource)
    for tasks in itertools.islice(itertools.cycle((job.tasks, 1, 3)), TRIES_MAX):
        try:
            _run(spark, job, tasks)
        except StreamingQueryException as error:
            print(f"failed: {str(error).splitlines()[0][:200]}", flush=True)
        else:
            print("through", flush=True)
            return
    sys.exit(f"not through after {TRIES_MAX} tries")


def _session(job: Job) -> SparkSession:
    path = os.pathsep.join((str(REPOSITORY), worker_environment()["PYTHONPATH"]))
    return (
        SparkSession.builder.master(job.master)
        .config(map=SMALL_SPARK)
        .config(map=SPECULATION if job.plan == "speculation" else {})
        .config("spark.log.level", "OFF")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.executor.memory", "512m")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))
        .getOrCreate()
    )


def _run(spark: SparkSession, job: Job, tasks: int) -> None:
    frame = (
        spark.readStream.format("suiro")
        .option("bootstrap", job.bootstrap)
        .option("subscribe", job.source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(PER_BATCH))
        .option("minPartitions", str(tasks))
        .load()
    )
    query = (
        frame.select("key", "value")
        .writeStream.format("suiro_faulty")
        .option("bootstrap", job.bootstrap)
        .option("topic", job.target)
        .option("delivery", job.delivery)
        .option("checkpointLocation", str(job.checkpoint))
        .option(PLANT, str(job.folder))
        .option(PLAN, job.plan)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
