"""kill -9 the leader of a partition again and again under acks=all load; print a table.

    python -m tests.cluster.replication_kill [--kills 100] [--partitions 3] [--victim leader]

With `--victim controller` the active controller is killed instead, with `both` the two together.
Fails if anything acknowledged is lost, duplicated or out of order, if replicas differ below the
high watermark at the end, or if a partition is not writable again within 1 s (median), 3 s (worst).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suiro._proto import admin_pb2
from suiro.aio import Admin
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.methods import AdminMethods

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.replication_load import (
    Load,
    Verdict,
    in_sync_again,
    judge,
    leader_of,
    make_topic,
)

if TYPE_CHECKING:
    from cluster.local_cluster import LocalNode

SETTLE_S = 0.3
MEDIAN_S_MAX = 1.0
WORST_S_MAX = 3.0


@dataclass(frozen=True)
class KillReport:
    verdict: Verdict
    writable_s: list[float]
    in_sync_s: list[float]
    seconds: float

    def table(self) -> str:
        return "\n".join(
            [
                f"leaders killed                 {len(self.writable_s)}",
                *self.verdict.lines(),
                f"writable again, median         {statistics.median(self.writable_s):.3f} s",
                f"writable again, worst          {max(self.writable_s):.3f} s",
                f"in sync again, median          {statistics.median(self.in_sync_s):.3f} s",
                f"in sync again, worst           {max(self.in_sync_s):.3f} s",
                f"took                           {self.seconds:.0f} s",
            ]
        )

    @property
    def is_fast(self) -> bool:
        return (
            statistics.median(self.writable_s) <= MEDIAN_S_MAX
            and max(self.writable_s) <= WORST_S_MAX
        )

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and self.is_fast


async def kill_leaders(
    root: Path, kills: int, partitions: int, victim: str = "leader"
) -> KillReport:
    started_s = time.monotonic()
    with LocalCluster(root, Layout(controllers=3, brokers=3)) as cluster:
        await make_topic(cluster.bootstrap, partitions)
        load = Load(cluster.bootstrap, partitions)
        writable_s, in_sync_s = [], []
        async with load.running(), Admin(cluster.bootstrap) as admin:
            for number in range(kills):
                if number and number % 10 == 0:
                    print(f"  {number} kills, {_since(started_s):.0f} s", file=sys.stderr)
                await load.writable_after(number % partitions, time.monotonic())
                await asyncio.sleep(SETTLE_S)
                victims = []
                if victim != "controller":
                    victims.append(await leader_of(admin, cluster, number % partitions))
                if victim != "leader":
                    victims.append(await _active_controller(cluster))
                writable_s.append(await _fail_over(load, victims, number % partitions))
                in_sync_s.append(await _come_back(admin, victims))
        ends = await load.read_all()
    return KillReport(judge(load, cluster.brokers, ends), writable_s, in_sync_s, _since(started_s))


async def _active_controller(cluster: LocalCluster) -> LocalNode:
    transport = GrpcTransport()
    request = admin_pb2.DescribeQuorumRequest()
    try:
        for node in cluster.controllers:
            seen = await transport.call(
                node.address, AdminMethods.DESCRIBE_QUORUM, request, timeout_s=5
            )
            if seen.leader == node.node_id:
                return node
    finally:
        await transport.close()
    raise AssertionError("no controller is active")


async def _fail_over(load: Load, victims: list[LocalNode], partition: int) -> float:
    """Kill them; how long until a record that is sent from now on is acknowledged."""
    killed_s = time.monotonic()
    for node in victims:
        node.kill()
    return await load.writable_after(partition, killed_s) - killed_s


async def _come_back(admin: Admin, victims: list[LocalNode]) -> float:
    """Start them; how long until everyone is in sync everywhere."""
    started_s = time.monotonic()
    for node in victims:
        node.start()
    for node in victims:
        await asyncio.to_thread(node.wait_ready)
    await in_sync_again(admin)
    return _since(started_s)


def _since(started_s: float) -> float:
    return time.monotonic() - started_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--victim", choices=("leader", "controller", "both"), default="leader")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(
            kill_leaders(Path(root), options.kills, options.partitions, options.victim)
        )
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
