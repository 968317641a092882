"""A leader that is cut off, one way too, or stopped: it serves nobody once its lease is over.

    python -m tests.cluster.replication_partition [--faults stopped,cut,deaf,mute] [--rounds 1]

Every node is in a network namespace of its own. A fault takes the leader of a partition away from
every other node for longer than its session, while clients reach all of them: `cut` both ways,
`deaf` what is sent to it, `mute` what it sends, `stopped` with SIGSTOP. All the while it is asked
directly. Fails if it answers as a leader after its lease, or after the next leader did; if anything
acknowledged with acks=all is lost, duplicated or out of order; or if replicas differ at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.netns import Namespaces, reason_against
from tests.cluster.replication_load import (
    PATIENCE_S,
    TOPIC,
    Load,
    Verdict,
    in_sync_again,
    judge,
    leader_of,
    make_topic,
)
from tests.cluster.replication_probe import FIRST_PRODUCER, Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.local_cluster import LocalNode
    from tests.cluster.replication_probe import Served

CONTROLLERS = 3
BROKERS = 3
SESSION_S = 3.0
"""The session timeout; the lease is a little less, and counts from the last heartbeat before."""
FAULTS = ("stopped", "cut", "deaf", "mute")
AFTER_S = 1.5
"""How long the fault outlasts the election of another leader."""


@dataclass(frozen=True)
class Taken:
    """One fault, and what became of it."""

    fault: str
    elected_s: float
    """Until another broker answered as the leader."""
    writable_s: float
    """Until a writer with the usual settings had a record acknowledged that it sent after it."""
    lease_s: float
    """Until the old leader answered as one for the last time."""
    too_late: list[Served]
    asked: int
    back_s: float

    def line(self) -> str:
        return (
            f"{self.fault:8} {self.lease_s:10.2f} {self.elected_s:10.2f} {self.writable_s:10.2f}"
            f" {self.back_s:10.2f} {self.asked:7} {len(self.too_late):9}"
        )


@dataclass(frozen=True)
class PartitionReport:
    taken: list[Taken]
    verdict: Verdict
    seconds: float

    def table(self) -> str:
        head = "fault     lease over    elected   writable    in sync   asked  too late"
        lines = [head, *(taken.line() for taken in self.taken)]
        late = [f"  {taken.fault}: {s}" for taken in self.taken for s in taken.too_late[:3]]
        took = f"took                           {self.seconds:.0f} s"
        return "\n".join([*lines, *late, *self.verdict.lines(), took])

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not any(taken.too_late for taken in self.taken)


async def take_leaders_away(root: Path, faults: Sequence[str]) -> PartitionReport:
    started_s = time.monotonic()
    names = [f"controller-{n + 1}" for n in range(CONTROLLERS)]
    names += [f"broker-{n + 1}" for n in range(BROKERS)]
    with Namespaces(names) as network:
        hosts = tuple(map(network.host, names))
        cluster = LocalCluster(root, Layout(CONTROLLERS, BROKERS, hosts=hosts))
        for node in cluster.nodes.values():
            node.within = network.within(node.name)
        with cluster:
            await make_topic(cluster.bootstrap, 1)
            load = Load(cluster.bootstrap, 1)
            taken = []
            async with load.running(), Admin(cluster.bootstrap) as admin:
                for number, fault in enumerate(faults):
                    await in_sync_again(admin)
                    round_ = _Round(cluster, network, load, admin)
                    taken.append(await round_.take(fault, FIRST_PRODUCER * (2 * number + 1)))
            ends = await load.read_all()
    return PartitionReport(taken, judge(load, cluster.brokers, ends), time.monotonic() - started_s)


@dataclass(frozen=True)
class _Round:
    cluster: LocalCluster
    network: Namespaces
    load: Load
    admin: Admin

    async def take(self, fault: str, first_producer: int) -> Taken:
        old = await leader_of(self.admin, self.cluster, 0)
        others = [node for node in self.cluster.brokers if node is not old]
        probe = Probe(old.address, self.load, first_producer)
        rivals = [
            Probe(n.address, self.load, first_producer + 500 * i) for i, n in enumerate(others, 2)
        ]
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for each in (probe, *rivals):
                tasks.create_task(each.run(stop), name=f"probe of {each.address}")
            await asyncio.sleep(0.5)
            began_s = time.monotonic()
            self._begin(fault, old)
            elected_s = await _first_served(rivals, began_s)
            await asyncio.sleep(AFTER_S)
            self._end(fault, old)
            writable_s = await self.load.writable_after(0, began_s)
            ended_s = time.monotonic()
            outside_s = await self._back_in_sync(old)
            back_s = time.monotonic() - ended_s
            stop.set()
        limit_s = min(began_s + SESSION_S, elected_s)
        return Taken(
            fault,
            elected_s - began_s,
            writable_s - began_s,
            max((s.answered_s for s in probe.served), default=began_s) - began_s,
            [s for s in probe.served if limit_s < s.answered_s < outside_s],
            probe.asked,
            back_s,
        )

    async def _back_in_sync(self, old: LocalNode) -> float:
        """Wait for it; when it was last seen outside the ISR, and so could not lead again."""
        outside_s = time.monotonic()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                asked_s = time.monotonic()
                found = (await self.admin.describe_topic(TOPIC)).partitions[0]
                # It may be asked itself, and believe for a moment that it leads and is in sync.
                if old.node_id in found.isr and found.leader != old.node_id:
                    return outside_s
                outside_s = asked_s
                await asyncio.sleep(0.01)

    def _begin(self, fault: str, old: LocalNode) -> None:
        if fault == "stopped":
            old.signal(signal.SIGSTOP)
            return
        for other in self.cluster.nodes.values():
            if other is old:
                continue
            if fault in {"cut", "deaf"}:
                self.network.cut_one_way(other.name, old.name)
            if fault in {"cut", "mute"}:
                self.network.cut_one_way(old.name, other.name)

    def _end(self, fault: str, old: LocalNode) -> None:
        if fault == "stopped":
            old.signal(signal.SIGCONT)
        else:
            self.network.heal()


async def _first_served(probes: list[Probe], since_s: float) -> float:
    """When one of them first answered as the leader."""
    async with asyncio.timeout(30):
        while True:
            answered = [s.answered_s for p in probes for s in p.served if s.asked_s > since_s]
            if answered:
                return min(answered)
            await asyncio.sleep(0.005)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    reason = reason_against()
    if reason is not None:
        sys.exit(f"skipped: {reason}")
    with tempfile.TemporaryDirectory() as root:
        faults = options.faults.split(",") * options.rounds
        report = asyncio.run(take_leaders_away(Path(root), faults))
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
