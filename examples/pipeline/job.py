"""The Spark job: two queries over Suiro's topics, each written back exactly once.

    spark-submit --master 'local[2]' examples/pipeline/job.py \
        --bootstrap suiro://127.0.0.1:9750 --checkpoints /tmp/checkpoints

It runs until it is stopped. Killed at any moment and started again with the same checkpoints, it
goes on as if nothing had happened.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLICKS: Final = "clicks"
USERS: Final = "users"
CLICKS_PER_WINDOW: Final = "clicks-per-window"
LINES: Final = "lines"
WORD_COUNTS: Final = "word-counts"

CLICK: Final = "id STRING, user STRING, page STRING, at_ms LONG, dwell_ms LONG"
WINDOW: Final = "5 seconds"
WATERMARK: Final = "5 seconds"
TRIGGER: Final = "1 second"


def clicks_per_window(clicks: DataFrame, users: DataFrame) -> DataFrame:
    """Cleaned, each click once, joined with who clicked, counted in windows of event time."""
    clean = (
        clicks.select(F.from_json(F.col("value").cast("string"), CLICK).alias("click"))
        .select("click.*")
        .where("id IS NOT NULL AND dwell_ms >= 0")
        .withColumn("at", F.timestamp_millis("at_ms"))
        .withWatermark("at", WATERMARK)
        .dropDuplicatesWithinWatermark(["id"])
    )
    known = users.selectExpr("CAST(key AS STRING) AS user", "CAST(value AS STRING) AS country")
    totals = (
        clean.join(known, "user")
        .groupBy(F.window("at", WINDOW), "country")
        .agg(F.count("*").alias("clicks"), F.sum("dwell_ms").alias("dwell_ms"))
        .withColumn("start_ms", F.unix_millis("window.start"))
    )
    return totals.select(
        F.col("country").alias("key"),
        F.to_json(F.struct("start_ms", "country", "clicks", "dwell_ms")).alias("value"),
    )


def word_counts(lines: DataFrame) -> DataFrame:
    """The newest value of a word's key is its count."""
    line = F.lower(F.col("value").cast("string"))
    words = lines.select(F.explode(F.split(line, r"\W+")).alias("word")).where("word != ''")
    return words.groupBy("word").count().selectExpr("word AS key", "CAST(count AS STRING) AS value")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    given = parser.parse_args()
    spark = SparkSession.builder.appName("pipeline").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "2")

    def stream(topic: str) -> DataFrame:
        reader = spark.readStream.format("suiro").option("bootstrap", given.bootstrap)
        return reader.option("subscribe", topic).option("startingOffsets", "earliest").load()

    def write(frame: DataFrame, topic: str, mode: str) -> None:
        writer = frame.writeStream.format("suiro").option("bootstrap", given.bootstrap)
        checkpoint = str(given.checkpoints / topic)
        writer = writer.option("topic", topic).option("checkpointLocation", checkpoint)
        writer.outputMode(mode).queryName(topic).trigger(processingTime=TRIGGER).start()

    table = spark.read.format("suiro").option("bootstrap", given.bootstrap)
    users = table.option("subscribe", USERS).load()
    write(clicks_per_window(stream(CLICKS), users), CLICKS_PER_WINDOW, "append")
    write(word_counts(stream(LINES)), WORD_COUNTS, "complete")
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main()
