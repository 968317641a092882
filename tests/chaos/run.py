"""Chaos: real processes, everything that fails, and every promise checked at the end.

    make chaos MINUTES=10
    make chaos MINUTES=10 BACKEND=docker
    python -m tests.chaos.run --minutes 1 --html chaos.html --seed 3

Three controllers, three brokers, two coordinators of each kind, each in a network namespace of its
own, brokers on disks of their own; or each a container. The workloads append, group, bank, copy and
table run all the time. Faults come one after the other, in an order that the seed draws. Fails if a
promise was broken, or if there were fewer faults, records or transactions than a run of that length
has to have, or if somebody waited longer for a killed leader, controller or coordinator than is
promised.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin
from suiro.loop_thread import new_loop
from suiro.verify.append import Append, Size
from suiro.verify.banking import Bank
from suiro.verify.history import Outcome
from suiro.verify.live import LiveClients
from suiro.verify.table_work import TableWork

from tests.chaos import containers
from tests.chaos.faults import Faults
from tests.chaos.probes import Probes
from tests.chaos.report import ChaosReport
from tests.chaos.site import site
from tests.cluster import netns
from tests.workloads.copying import Copy
from tests.workloads.grouping import Group

if TYPE_CHECKING:
    from suiro.verify.clients import Workload

    from tests.chaos.site import Site

SIZE = Size(partitions=4, writers=2, batch_records=50, pause_s=0.16, filler_bytes=40)
WARM_UP_S = 2.0
FINISH_S_MAX = 180.0
MEASURED = ("kill leader", "kill controller", "kill txn coordinator", "kill group coordinator")
"""Kinds that come more often than the others: a p99 wants numbers."""
BACKENDS = {
    "processes": (site, netns.reason_against),
    "docker": (containers.containers, containers.reason_against),
}


class Chaos:
    """One run on one site."""

    def __init__(self, where: Site, seed: int) -> None:
        self.site = where
        self.rng = random.Random(seed)
        self.clients = LiveClients(where.cluster.bootstrap, random.Random(seed))
        self.append = Append(self.clients, SIZE)
        self.bank = Bank(self.clients, partitions=6, writers=12, readers=1, pause_s=0.02)
        self.group = Group(self.clients, partitions=6, members=3, members_max=6, pause_s=0.2)
        self.copy = Copy(self.clients, copiers=2, pause_s=0.2, life_s=20)
        self.table = TableWork(self.clients, pause_s=0.2)
        self.works: list[Workload] = [self.append, self.bank, self.group, self.copy, self.table]
        self.probes = Probes(where.cluster.bootstrap, self.append, self.bank, self.group)

    async def run(self, seconds: float, kinds: list[str] | None = None) -> ChaosReport:
        """For so long; only these kinds of faults, if some are named."""
        for work in self.works:
            await work.prepare()
        async with Admin(self.clients.bootstrap) as admin:
            await admin.create_topic("flood", partitions=3, replication_factor=3)
        stop = asyncio.Event()
        probing = asyncio.create_task(self.probes.run(), name="probes")
        working = [asyncio.create_task(work.run(stop), name=work.name) for work in self.works]
        faults = Faults(self.site, self.probes, self.group, self.rng)
        began_s = time.monotonic()
        try:
            await asyncio.sleep(WARM_UP_S)
            await self._rage(faults, began_s + seconds, kinds)
            ended_s = time.monotonic()
            stop.set()
            await faults.revive()
            await asyncio.wait_for(asyncio.gather(*working), FINISH_S_MAX)
        finally:
            for task in (probing, *working):
                task.cancel()
            await asyncio.gather(probing, *working, return_exceptions=True)
        violations = await self._judge()
        return self._report(faults, began_s, ended_s - began_s, violations)

    async def _rage(self, faults: Faults, until_s: float, kinds: list[str] | None) -> None:
        """Every kind in turn, shuffled; the measured ones twice in every round."""
        while True:
            order = [
                *(kinds or faults.kinds),
                *(k for k in MEASURED if kinds is None or k in kinds),
            ]
            self.rng.shuffle(order)
            for kind in order:
                if time.monotonic() >= until_s:
                    return
                await faults.do(kind)
                last = faults.done[-1]
                took_s = last.ended_s - last.began_s
                print(
                    f"  {kind:30} {last.victim:40} {took_s:5.1f} s {last.error[:100]}",
                    file=sys.stderr,
                    flush=True,
                )

    async def _judge(self) -> list[str]:
        found = []
        for work in self.works:
            try:
                wrong = await asyncio.wait_for(work.finish(), FINISH_S_MAX)
            except TimeoutError:
                wrong = [f"L1 not drained in {FINISH_S_MAX:.0f} s"]
            found += [f"{work.name}: {line}" for line in wrong]
        return found

    def _report(
        self, faults: Faults, began_s: float, seconds: float, violations: list[str]
    ) -> ChaosReport:
        sends = self.append.history.sends
        return ChaosReport(
            seconds=seconds,
            began_s=began_s,
            faults=faults.done,
            acks=self.append.acks,
            batch_records=SIZE.batch_records,
            acknowledged=self.append.done,
            unknown=sum(send.outcome is Outcome.INFO for send in sends),
            transactions=len(self.bank.book.committed),
            aborted=len(self.bank.book.aborted),
            rebalances=self.group.rebalances,
            copied=self.copy.copied,
            table=self.table.done,
            violations=violations,
            on_containers=isinstance(self.site.network, containers.Plugs),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--html", type=Path, default=Path("chaos.html"))
    parser.add_argument("--kinds", help="only these, by their names, with commas between")
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="processes")
    parser.add_argument("--keep", type=Path, help="leave the nodes' folders there")
    options = parser.parse_args()
    make_site, reason = BACKENDS[options.backend]
    if (against := reason()) is not None:
        print(f"chaos cannot run here: {against}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        root = options.keep or Path(scratch)
        root.mkdir(parents=True, exist_ok=True)
        kinds = options.kinds.split(",") if options.kinds else None
        if options.backend == "docker":
            kinds = containers.kinds_of(kinds)
        with make_site(root) as where, asyncio.Runner(loop_factory=new_loop) as runner:
            chaos = Chaos(where, options.seed)
            report = runner.run(chaos.run(options.minutes * 60, kinds))
    print(report.text())
    options.html.write_text(report.page())
    print(f"timelines: {options.html}")
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
