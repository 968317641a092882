"""Thousands of partitions: how long a start, a restart and a failover take, and what idling costs.

    python -m tests.cluster.replication_scale [--partitions 4000] [--brokers 1] [--idle-s 10]

With one broker every partition has one replica, with three it has three. Fails if an idle broker
takes more than 10 % of a core, or if partitions stay without a leader.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin, Producer

from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from cluster.local_cluster import LocalNode

TOPIC = "wide"
IDLE_SHARE_MAX = 0.10
SAMPLES = 50
PATIENCE_S = 180.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass
class ScaleReport:
    figures: list[tuple[str, str]] = field(default_factory=list)
    is_good: bool = True

    def note(self, name: str, value: str) -> None:
        self.figures.append((name, value))
        print(f"{name:44} {value}", flush=True)

    def note_idle(self, node: LocalNode, share: float) -> None:
        self.is_good = self.is_good and share <= IDLE_SHARE_MAX
        self.note(f"idle {node.name}: share of a core, memory", f"{share:.1%}, {_memory(node)}")


async def measure(root: Path, partitions: int, brokers: int, idle_s: float) -> ScaleReport:
    report = ScaleReport()
    with LocalCluster(root, Layout(controllers=brokers, brokers=brokers)) as cluster:
        async with Admin(cluster.bootstrap, timeout_s=PATIENCE_S) as admin:
            began_s = time.monotonic()
            await admin.create_topic(TOPIC, partitions=partitions, replication_factor=brokers)
            await _all_led(admin, partitions, set())
            report.note(f"{partitions} partitions made and led", _took(began_s))
            report.note(f"{SAMPLES} of them written to", await _write_some(cluster, partitions))
            await _idle(cluster, report, idle_s)
            await _restart(cluster, report, admin, partitions)
            if brokers > 1:
                await _idle(cluster, report, idle_s)
    return report


async def _restart(
    cluster: LocalCluster, report: ScaleReport, admin: Admin, partitions: int
) -> None:
    """kill -9 of the first broker, and its return; with others, also how they take over."""
    node = cluster.brokers[0]
    began_s = time.monotonic()
    node.kill()
    if len(cluster.brokers) > 1:
        await _all_led(admin, partitions, {node.node_id})
        report.note("failover: all led by others", _took(began_s))
        report.note(f"{SAMPLES} of them written to", await _write_some(cluster, partitions))
    began_s = time.monotonic()
    node.start()
    await asyncio.to_thread(node.wait_ready, PATIENCE_S)
    report.note("start after kill -9: ready", _took(began_s))
    await _all_led(admin, partitions, set(), in_sync=True)
    report.note("start after kill -9: all led and in sync", _took(began_s))


async def _idle(cluster: LocalCluster, report: ScaleReport, idle_s: float) -> None:
    await asyncio.sleep(2)  # what a change has set off is not idling
    before = {node.name: _cpu_s(node) for node in cluster.nodes.values()}
    await asyncio.sleep(idle_s)
    for node in cluster.brokers:
        report.note_idle(node, (_cpu_s(node) - before[node.name]) / idle_s)
    quorum_s = max(_cpu_s(node) - before[node.name] for node in cluster.controllers)
    report.note("idle controllers: highest share of a core", f"{quorum_s / idle_s:.1%}")


async def _all_led(
    admin: Admin, partitions: int, without: set[int], *, in_sync: bool = False
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = (await admin.describe_topic(TOPIC)).partitions
            if len(found) == partitions and all(
                p.leader is not None
                and p.leader not in without
                and (not in_sync or set(p.isr) == set(p.replicas))
                for p in found
            ):
                return
            await asyncio.sleep(0.1)


async def _write_some(cluster: LocalCluster, partitions: int) -> str:
    """One record to each of some partitions, with acks=all."""
    began_s = time.monotonic()
    async with Producer(cluster.bootstrap, delivery_timeout_ms=60_000) as producer:
        numbers = range(0, partitions, max(1, partitions // SAMPLES))
        for sent in [producer.send(TOPIC, b"x", partition=number) for number in numbers]:
            await sent
    return _took(began_s)


def _cpu_s(node: LocalNode) -> float:
    """Processor seconds that a process has used so far."""
    assert node.process is not None
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def _memory(node: LocalNode) -> str:
    assert node.process is not None
    pages = int(Path(f"/proc/{node.process.pid}/statm").read_text().split()[1])
    return f"{pages * PAGE_BYTES / (1 << 20):.0f} MiB"


def _took(began_s: float) -> str:
    return f"{time.monotonic() - began_s:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=4_000)
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--idle-s", type=float, default=10.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(
            measure(Path(root), options.partitions, options.brokers, options.idle_s)
        )
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
