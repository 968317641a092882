"""Drivers killed at random moments while a stream is copied: `python -m tests.spark.driver_kills`.

Rows arrive all the time; what has been committed in the end must be what was sent, each row once.
That judges the source and its checkpoint as much as the sink: a row that the source had skipped or
read twice after a restart would be missing or there twice.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import suiro

from cluster.local_cluster import Layout, LocalCluster
from tests.spark.faults import FAULTS
from tests.spark.kit import batch, new_topic, options, values, worker_environment

SOURCE, TARGET = "sent", "copied"
ROWS_PER_ROUND = 4_000
PARTITIONS = 3
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
    for number in FAULTS:
        (folder / f"struck-{number}").touch()  # nothing is planted here
    sent: list[bytes] = []
    for number in range(kills):
        sent += _send(cluster, len(sent))
        after_s = dice.uniform(1.0, 25.0)
        print(f"kill {number + 1}: {_kill_after(cluster, folder, after_s)}", flush=True)
    sent += _send(cluster, len(sent))
    job = _start(cluster, folder)
    assert job.wait(END_S) == 0, (folder / "driver.log").read_text()[-2000:]
    counts = Counter(values(batch(options(cluster, TARGET))))
    missing = len(set(sent) - set(counts))
    twice = sum(counts.values()) - len(counts)
    print(f"{kills} drivers killed; of {len(sent)} rows {missing} missing, {twice} duplicates")
    return 0 if missing == twice == 0 and len(counts) == len(sent) else 1


def _send(cluster: LocalCluster, start: int) -> list[bytes]:
    rows = [b"%d" % number for number in range(start, start + ROWS_PER_ROUND)]
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send_many(SOURCE, rows, keys=rows).wait(60)
    return rows


def _start(cluster: LocalCluster, folder: Path) -> subprocess.Popen[bytes]:
    (folder / "pids").unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.spark.kill_job", "--bootstrap", cluster.bootstrap]
    command += ["--source", SOURCE, "--target", TARGET, "--folder", str(folder)]
    command += ["--delivery", "exactly_once", "--tasks", "3"]
    with (folder / "driver.log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **worker_environment()},
        )


def _kill_after(cluster: LocalCluster, folder: Path, after_s: float) -> str:
    """So long after its session is there, kill the driver and its Java process."""
    job = _start(cluster, folder)
    pids = folder / "pids"
    until_s = time.monotonic() + START_S
    while not pids.exists() or not pids.read_text():
        assert job.poll() is None, (folder / "driver.log").read_text()[-2000:]
        assert time.monotonic() < until_s, "the driver does not start"
        time.sleep(0.05)
    try:
        code = job.wait(after_s)
    except subprocess.TimeoutExpired:
        for pid in pids.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        job.wait()
        commits = folder / "checkpoint" / "commits"
        done = len(list(commits.glob("[0-9]*"))) if commits.exists() else 0
        return f"after {after_s:.1f} s, {done} batches in the checkpoint"
    return f"was through before, with {code}"


if __name__ == "__main__":
    main()
