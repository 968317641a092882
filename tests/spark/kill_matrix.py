"""The kill matrix: a streaming copy through every fault, on real Spark and a real cluster.

`python -m tests.spark.kill_matrix` runs each plan of faults twice: with the exactly-once sink,
whose committed output must equal its input, and with the naive one (at_least_once), in which the
same faults must show duplicates, or the matrix would prove nothing. `kills` runs in local mode;
`speculation` on a standalone cluster of two workers, where a stuck task has a twin that counts.
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
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import suiro

from cluster.local_cluster import Layout, LocalCluster
from examples.pipeline.standalone import StandaloneSpark, worker_environment
from tests.spark.faults import AFTER, PLANS, kill_driver, strike
from tests.spark.kill_job import LOCAL, PER_BATCH, REPOSITORY, Job
from tests.spark.kit import committed, new_topic

BATCHES = {"kills": 12, "speculation": 4}
DRIVERS_MAX = 8
JOB_S = 400.0
NODES = ("broker-1", "group-1", "txn-1")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the faults did to the output."""

    plan: str
    delivery: str
    struck: frozenset[int]
    twins: int
    drivers: int
    failed_queries: int
    rows: int
    missing: int
    duplicates: dict[int, int]
    """By the batch whose rows they are."""

    @property
    def is_as_promised(self) -> bool:
        """All faults struck; nothing is missing; duplicates only where they are not excluded."""
        is_exact = not sum(self.duplicates.values())
        has_twins = self.twins == (len(self.struck) if self.plan == "speculation" else 0)
        all_struck = self.struck == frozenset(PLANS[self.plan]) and has_twins
        return all_struck and not self.missing and is_exact == (self.delivery == "exactly_once")


def run(cluster: LocalCluster, folder: Path, plan: str, delivery: str, master: str) -> Verdict:
    """One pass through all faults of a plan."""
    source, target = f"in-{plan}-{delivery}", f"out-{plan}-{delivery}"
    new_topic(cluster, source)
    new_topic(cluster, target, partitions=3)
    sent = [b"%d" % number for number in range(BATCHES[plan] * PER_BATCH)]
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send_many(source, sent, keys=sent, partition=0).wait(60)
    job = Job(cluster.bootstrap, source, target, folder, delivery, plan, master=master)
    drivers = failed = 0
    while True:
        drivers += 1
        assert drivers <= DRIVERS_MAX, "the job does not come through"
        code, output = _drive(cluster, replace(job, tasks=2 + drivers % 3))
        failed += output.count("failed:")
        if code == 0:
            break
        assert code < 0, f"the driver was to be killed, but ended with {code}:\n{output[-2000:]}"
    return _judge(cluster, job, sent, drivers, failed)


def _judge(
    cluster: LocalCluster, job: Job, sent: list[bytes], drivers: int, failed: int
) -> Verdict:
    counts = Counter(committed(cluster, job.target))
    duplicates = Counter[int]()
    for value, count in counts.items():
        if count > 1:
            duplicates[int(value) // PER_BATCH] += count - 1
    return Verdict(
        plan=job.plan,
        delivery=job.delivery,
        struck=frozenset(n for n in PLANS[job.plan] if (job.folder / f"struck-{n}").exists()),
        twins=len(list(job.folder.glob("twin-*"))),
        drivers=drivers,
        failed_queries=failed,
        rows=len(sent),
        missing=len(set(sent) - set(counts)),
        duplicates=dict(duplicates),
    )


def start_driver(job: Job) -> subprocess.Popen[bytes]:
    (job.folder / "pids").unlink(missing_ok=True)
    with job.log_path.open("wb") as log:
        return subprocess.Popen(
            job.command(),
            stdout=log,
            stderr=log,
            cwd=REPOSITORY,
            env={**os.environ, **worker_environment()},
        )


def _drive(cluster: LocalCluster, job: Job) -> tuple[int, str]:
    """One driver until it ends, with what has to be done to it and to the cluster from outside."""
    driver = start_driver(job)
    until_s = time.monotonic() + JOB_S
    try:
        while driver.poll() is None:
            assert time.monotonic() < until_s, f"stuck:\n{job.log_path.read_text()[-2000:]}"
            if (job.folder / "kill-nodes").exists():
                _kill_nodes(cluster, job.folder)
            for number, fault in PLANS[job.plan].items():
                is_due = fault == AFTER and (job.checkpoint / "commits" / str(number)).exists()
                if is_due and strike(job.folder, number):
                    kill_driver(job.folder)
            time.sleep(0.02)
    finally:
        driver.kill()
        code = driver.wait()
    return code, job.log_path.read_text()


def _kill_nodes(cluster: LocalCluster, folder: Path) -> None:
    """Broker, group and transaction coordinator at the same time; the commit goes on meanwhile."""
    (folder / "kill-nodes").unlink()
    nodes = [cluster.nodes[name] for name in NODES]
    for node in nodes:
        node.kill()
    (folder / "nodes-killed").touch()
    for node in nodes:
        node.start()
    for node in nodes:
        node.wait_ready()


def show(verdict: Verdict) -> None:
    faults = PLANS[verdict.plan]
    print(
        f"{verdict.plan}, {verdict.delivery}: {verdict.drivers} drivers, "
        f"{verdict.failed_queries} failed queries, {len(verdict.struck)} of {len(faults)} faults, "
        f"{verdict.twins} speculative twins counted; of {verdict.rows} rows {verdict.missing} are "
        f"missing, {sum(verdict.duplicates.values())} are duplicates: "
        f"{'as promised' if verdict.is_as_promised else 'NOT AS PROMISED'}"
    )
    for number, fault in faults.items():
        state = "struck" if number in verdict.struck else "NOT STRUCK"
        duplicates = verdict.duplicates.get(number, 0)
        print(f"  batch {number:2}: {fault:45} {state}, {duplicates} duplicates", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", nargs="*", choices=BATCHES, default=list(BATCHES))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no node is left behind
    verdicts = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        layout = Layout(groups=1, txns=1)
        cluster = running.enter_context(LocalCluster(folder / "cluster", layout))
        for plan in given.plans:
            master = LOCAL
            if plan == "speculation":
                spark = StandaloneSpark(folder / "spark", cores=2)
                master = running.enter_context(spark).master
            for delivery in ("exactly_once", "at_least_once"):
                plant = folder / f"{plan}-{delivery}"
                plant.mkdir()
                verdicts.append(run(cluster, plant, plan, delivery, master))
                show(verdicts[-1])
    sys.exit(0 if all(verdict.is_as_promised for verdict in verdicts) else 1)


if __name__ == "__main__":
    main()
