"""Drivers killed at random moments while a stream is copied: `python -m tests.spark.driver_kills`.

Rows arrive all the time; what has been committed in the end must be what was sent, each row once.
That judges the source and its checkpoint as much as the sink: a row that the source had skipped or
read twice after a restart would be missing or there twice.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import suiro

from cluster.local_cluster import Layout, LocalCluster
from tests.spark.faults import kill_driver
from tests.spark.kill_job import Job
from tests.spark.kill_matrix import start_driver
from tests.spark.kit import committed, new_topic

SOURCE, TARGET = "sent", "copied"
ROWS_PER_ROUND = 4_000
PARTITIONS = 3
AFTER_MIN_S, AFTER_MAX_S = 1.0, 25.0
START_S = 180.0
END_S = 300.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalCluster(folder / "cluster", Layout(txns=1)) as cluster:
            sys.exit(run(cluster, folder, given.kills, random.Random(given.seed)))


def run(cluster: LocalCluster, folder: Path, kills: int, dice: random.Random) -> int:
    """0 if nothing is missing and nothing is there twice."""
    new_topic(cluster, SOURCE, PARTITIONS)
    new_topic(cluster, TARGET, PARTITIONS)
    job = Job(cluster.bootstrap, SOURCE, TARGET, folder, tasks=3)
    sent: list[bytes] = []
    killed = 0
    while killed < kills:
        sent += _send(cluster, len(sent))
        after_s = dice.uniform(AFTER_MIN_S, AFTER_MAX_S)
        if _kill_after(job, after_s):
            killed += 1
            done = len(list((job.checkpoint / "commits").glob("[0-9]*")))
            print(f"kill {killed}: {after_s:.1f} s, {done} batches in the checkpoint", flush=True)
    sent += _send(cluster, len(sent))
    driver = start_driver(job)
    assert driver.wait(END_S) == 0, job.log_path.read_text()[-2000:]
    counts = Counter(committed(cluster, TARGET))
    missing = len(set(sent) - set(counts))
    twice = sum(counts.values()) - len(counts)
    print(f"{kills} drivers killed; of {len(sent)} rows {missing} missing, {twice} duplicates")
    return 0 if missing == twice == 0 and len(counts) == len(sent) else 1


def _send(cluster: LocalCluster, start: int) -> list[bytes]:
    rows = [b"%d" % number for number in range(start, start + ROWS_PER_ROUND)]
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send_many(SOURCE, rows, keys=rows).wait(60)
    return rows


def _kill_after(job: Job, after_s: float) -> bool:
    """So long after its session is there, kill the driver; false if it was through before."""
    driver = start_driver(job)
    pids = job.folder / "pids"
    until_s = time.monotonic() + START_S
    while not pids.exists() or not pids.read_text():
        assert driver.poll() is None, job.log_path.read_text()[-2000:]
        assert time.monotonic() < until_s, "the driver does not start"
        time.sleep(0.05)
    try:
        assert driver.wait(after_s) == 0, job.log_path.read_text()[-2000:]
    except subprocess.TimeoutExpired:
        kill_driver(job.folder)
        driver.wait()
        return True
    return False


if __name__ == "__main__":
    main()
