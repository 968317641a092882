"""The kill matrix: a streaming copy through every fault, on real Spark and a real cluster.

`python -m tests.spark.kill_matrix` runs it twice: with the exactly-once sink, whose committed
output must equal its input, and with the naive one (at_least_once), in which the same faults must
show duplicates, or the matrix would prove nothing.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import suiro

from cluster.local_cluster import Layout, LocalCluster
from tests.spark.faults import FAULTS
from tests.spark.kill_job import PER_BATCH
from tests.spark.kit import batch, new_topic, options, values, worker_environment

BATCHES = 12
DRIVERS_MAX = 6
JOB_S = 400.0
NODES = ("broker-1", "txn-1")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the faults did to the output."""

    delivery: str
    struck: list[str]
    drivers: int
    failed_queries: int
    missing: int
    duplicates: dict[int, int]
    """By the batch whose rows they are."""

    @property
    def duplicated(self) -> int:
        return sum(self.duplicates.values())


def run(cluster: LocalCluster, folder: Path, delivery: str) -> Verdict:
    """One pass through all faults."""
    source, target = f"in-{delivery}", f"out-{delivery}"
    new_topic(cluster, source)
    new_topic(cluster, target, partitions=3)
    sent = [b"%d" % number for number in range(BATCHES * PER_BATCH)]
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send_many(source, sent, keys=sent, partition=0).wait(60)
    drivers = failed = 0
    while True:
        drivers += 1
        assert drivers <= DRIVERS_MAX, "the job does not come through"
        code, output = _drive(cluster, folder, source, target, delivery, 1 + drivers % 3)
        failed += output.count("failed:")
        if code == 0:
            break
        assert code < 0, f"the driver was to be killed, but ended with {code}:\n{output[-2000:]}"
    counts = Counter(values(batch(options(cluster, target))))
    duplicates = Counter[int]()
    for value, count in counts.items():
        if count > 1:
            duplicates[int(value) // PER_BATCH] += count - 1
    return Verdict(
        delivery,
        [fault for number, fault in FAULTS.items() if (folder / f"struck-{number}").exists()],
        drivers,
        failed,
        len(set(sent) - set(counts)),
        dict(sorted(duplicates.items())),
    )


def _drive(
    cluster: LocalCluster, folder: Path, source: str, target: str, delivery: str, tasks: int
) -> tuple[int, str]:
    """One driver until it ends; kills the cluster's nodes when the fault asks for it."""
    command = [sys.executable, "-m", "tests.spark.kill_job", "--bootstrap", cluster.bootstrap]
    command += ["--source", source, "--target", target, "--folder", str(folder)]
    command += ["--delivery", delivery, "--tasks", str(tasks)]
    log_path = folder / "driver.log"
    with log_path.open("wb") as log:
        job = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[2],
            env={**os.environ, **worker_environment()},
        )
        until_s = time.monotonic() + JOB_S
        try:
            while job.poll() is None:
                assert time.monotonic() < until_s, f"stuck:\n{log_path.read_text()[-2000:]}"
                if (folder / "kill-nodes").exists() and not (folder / "nodes-killed").exists():
                    _kill_nodes(cluster, folder)
                time.sleep(0.05)
        finally:
            job.kill()
            code = job.wait()
    return code, log_path.read_text()


def _kill_nodes(cluster: LocalCluster, folder: Path) -> None:
    """The broker and the transaction coordinator at the same time; the commit goes on meanwhile."""
    nodes = [cluster.nodes[name] for name in NODES]
    for node in nodes:
        node.kill()
    (folder / "nodes-killed").touch()
    for node in nodes:
        node.start()
    for node in nodes:
        node.wait_ready()


def show(verdict: Verdict) -> None:
    print(
        f"{verdict.delivery}: {verdict.drivers} drivers, {verdict.failed_queries} failed queries, "
        f"{len(verdict.struck)} of {len(FAULTS)} faults; of {BATCHES * PER_BATCH} rows "
        f"{verdict.missing} are missing, {verdict.duplicated} are duplicates",
        flush=True,
    )
    for number, fault in FAULTS.items():
        state = "struck" if fault in verdict.struck else "NOT STRUCK"
        print(
            f"  batch {number}: {fault:45} {state}, {verdict.duplicates.get(number, 0)} duplicates"
        )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no node is left behind
    is_good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalCluster(folder / "cluster", Layout(txns=1)) as cluster:
            for delivery in ("exactly_once", "at_least_once"):
                plant = folder / delivery
                plant.mkdir()
                verdict = run(cluster, plant, delivery)
                show(verdict)
                is_exact = not verdict.missing and not verdict.duplicated
                is_good &= len(verdict.struck) == len(FAULTS) and not verdict.missing
                is_good &= is_exact == (delivery == "exactly_once")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
