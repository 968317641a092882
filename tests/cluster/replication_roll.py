"""Restart every broker in turn under load, each once the one before is in sync again.

    python -m tests.cluster.replication_roll [--partitions 6] [--rounds 1]

Fails if a send fails (retries inside the client are its own business), if a partition is seen
without a leader, or if anything acknowledged is lost, duplicated or out of order.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.replication_load import TOPIC, Load, Verdict, in_sync_again, judge, make_topic

if TYPE_CHECKING:
    from cluster.local_cluster import LocalNode

WATCH_S = 0.01


@dataclass
class Watcher:
    """Looks at the topic all the time, and counts partitions without a leader."""

    admin: Admin
    looks: int = 0
    offline: list[str] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            topic = await self.admin.describe_topic(TOPIC)
            self.looks += 1
            self.offline += [
                f"{TOPIC}-{number} with {partition.replicas}, in sync {partition.isr}"
                for number, partition in enumerate(topic.partitions)
                if partition.leader is None
            ]
            await asyncio.sleep(WATCH_S)


@dataclass(frozen=True)
class Restart:
    node: str
    stop_s: float
    ready_s: float
    in_sync_s: float
    slowest_send_s: float

    def line(self) -> str:
        return (
            f"{self.node:10} {self.stop_s:9.2f} {self.ready_s:9.2f} {self.in_sync_s:9.2f}"
            f" {self.slowest_send_s:12.3f}"
        )


@dataclass(frozen=True)
class RollReport:
    restarts: list[Restart]
    failed: dict[str, int]
    looks: int
    offline: list[str]
    verdict: Verdict
    seconds: float

    def table(self) -> str:
        head = "restarted     stop s   ready s  in sync s  slowest send"
        return "\n".join(
            [
                head,
                *(restart.line() for restart in self.restarts),
                f"failed sends                   {self.failed or 'none'}",
                f"looks, offline partitions      {self.looks}, {self.offline[:3] or 'none'}",
                *self.verdict.lines(),
                f"took                           {self.seconds:.0f} s",
            ]
        )

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.failed and not self.offline


async def restart_all(root: Path, partitions: int, rounds: int) -> RollReport:
    started_s = time.monotonic()
    with LocalCluster(root, Layout(controllers=3, brokers=3)) as cluster:
        await make_topic(cluster.bootstrap, partitions)
        load = Load(cluster.bootstrap, partitions)
        restarts = []
        async with load.running(), Admin(cluster.bootstrap) as admin:
            watcher = Watcher(admin)
            watching = asyncio.create_task(watcher.run(), name="watcher")
            try:
                for node in cluster.brokers * rounds:
                    await load.writable_after(0, time.monotonic())
                    restarts.append(await _restart(node, load, admin))
            finally:
                watching.cancel()
        ends = await load.read_all()
    return RollReport(
        restarts,
        dict(load.failures),
        watcher.looks,
        watcher.offline,
        judge(load, cluster.brokers, ends),
        time.monotonic() - started_s,
    )


async def _restart(node: LocalNode, load: Load, admin: Admin) -> Restart:
    began_s = time.monotonic()
    node.signal(signal.SIGTERM)
    code = await asyncio.to_thread(node.wait)
    assert code == 0, f"{node.name} ended with {code}"
    stopped_s = time.monotonic()
    node.start()
    await asyncio.to_thread(node.wait_ready)
    ready_s = time.monotonic()
    await in_sync_again(admin)
    ended_s = time.monotonic()
    slowest_s = max(
        heard_s - sent_s for acks in load.acks for sent_s, heard_s in acks if heard_s > began_s
    )
    return Restart(
        node.name, stopped_s - began_s, ready_s - stopped_s, ended_s - ready_s, slowest_s
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(restart_all(Path(root), options.partitions, options.rounds))
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
