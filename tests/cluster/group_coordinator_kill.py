"""kill -9 the coordinator of a group again and again during commits and rebalances; print a table.

    python -m tests.cluster.group_coordinator_kill [--kills 30] [--hangs 3]

Afterwards it is stopped (SIGSTOP), while nobody comes or goes. Fails if a committed offset went
back, a partition had two owners, a record was skipped, or any consumer got an error, by the history
of all members and of somebody who looks at the offsets; or if a member lost a partition because
its coordinator hung.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin
from suiro.verify.groups import Event, Kind, check

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.group_kit import GROUP, TOPIC, Crowd, is_unseen, make_topic, until
from tests.cluster.group_load import load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.local_cluster import LocalNode

PARTITIONS = 6
MEMBERS = ("m1", "m2", "m3", "m4")
EVERY_S = 0.02
LOOK_S = 0.1
CALM_S = 0.5
SETTLED_S = 3.0
ON_ITS_WAY_S = 0.2
"""What the victim had answered may still be on its way to a member; nobody takes over so fast."""


@dataclass
class Report:
    wrong: list[str] = field(default_factory=list)
    commit_s: list[float] = field(default_factory=list)
    hung_s: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    records: int = 0
    seconds: float = 0.0

    def table(self) -> str:
        return "\n".join(
            [
                *_rows("killed", self.commit_s),
                *_rows("hung", self.hung_s),
                f"records                        {self.records}",
                *(f"{kind:31}{self.counts[kind]}" for kind in sorted(self.counts)),
                f"took                           {self.seconds:.0f} s",
                *(self.wrong or ["nothing wrong in the history"]),
            ]
        )


def _rows(what: str, took_s: list[float]) -> list[str]:
    if not took_s:
        return []
    return [
        f"coordinators {what:18}{len(took_s)}",
        f"commits again, median          {statistics.median(took_s):.3f} s",
        f"commits again, worst           {max(took_s):.3f} s",
    ]


@contextlib.asynccontextmanager
async def looking(admin: Admin, crowd: Crowd) -> AsyncIterator[None]:
    """Somebody outside the group reads its offsets all the time."""
    stop = asyncio.Event()

    async def look() -> None:
        while not stop.is_set():
            began_s = time.monotonic()
            for partition, at in (await admin.groups.group_offsets(GROUP)).items():
                now_s = time.monotonic()
                looked = Event(now_s, "admin", Kind.LOOKED, str(partition), at.offset)
                crowd.add(looked._replace(began_s=began_s))
            await asyncio.sleep(LOOK_S)

    task = asyncio.create_task(look(), name="look")
    try:
        yield
    finally:
        stop.set()
        await task


async def owner(admin: Admin, cluster: LocalCluster) -> LocalNode:
    found = (await admin.groups.describe_group(GROUP)).coordinator
    return next(node for node in cluster.coordinators if node.address == found)


def flap(crowd: Crowd, dice: random.Random) -> None:
    """Somebody leaves, or comes back."""
    away = [member for member in MEMBERS if member not in crowd.running]
    if away and dice.random() < 0.5:
        crowd.order("join", dice.choice(away))
    elif len(crowd.running) > 1:
        crowd.order("leave", dice.choice(sorted(crowd.running)))


async def kill_once(
    admin: Admin, cluster: LocalCluster, crowd: Crowd, dice: random.Random
) -> float:
    """While a member comes or goes; how long until somebody's commit is answered again."""
    victim = await owner(admin, cluster)
    flap(crowd, dice)
    await asyncio.sleep(dice.uniform(0, 0.3))
    killed_s = time.monotonic()
    victim.kill()
    dead_s = time.monotonic()
    if dice.random() < 0.5:
        flap(crowd, dice)

    acked_s = await _first_commit(crowd, dead_s)
    victim.start()
    await asyncio.to_thread(victim.wait_ready)
    await asyncio.sleep(CALM_S)
    return acked_s - killed_s


async def hang_once(admin: Admin, cluster: LocalCluster, crowd: Crowd) -> float:
    """It stops with its connections open; how long until somebody's commit is answered again."""
    victim = await owner(admin, cluster)
    assert victim.process is not None
    victim.process.send_signal(signal.SIGSTOP)
    hung_s = time.monotonic()
    try:
        return await _first_commit(crowd, hung_s) - hung_s
    finally:
        await asyncio.sleep(SETTLED_S)  # everybody has found the other one by then, or lost it
        victim.process.send_signal(signal.SIGCONT)
        await asyncio.sleep(SETTLED_S)


async def _first_commit(crowd: Crowd, gone_s: float) -> float:
    """When another coordinator first answered a commit."""

    def acked_s() -> list[float]:
        events = crowd.events_after(gone_s + ON_ITS_WAY_S)
        return [event.at_s for event in events if event.kind is Kind.ACKED]

    await until(lambda: bool(acked_s()), "a commit by another coordinator")
    return min(acked_s())


async def run(root: Path, kills: int, hangs: int) -> Report:
    report, began_s, dice = Report(), time.monotonic(), random.Random(kills)
    with LocalCluster(root / "cluster", Layout(brokers=1, groups=2)) as cluster:
        await make_topic(cluster.bootstrap, PARTITIONS)
        crowd = Crowd(cluster.bootstrap, root, heartbeat_interval_ms=500)
        try:
            with load(cluster.bootstrap, TOPIC, PARTITIONS, EVERY_S) as ends:
                for member in MEMBERS:
                    crowd.start(member)
                await until(lambda: _has_acked(crowd), "the first commit")
                async with Admin(cluster.bootstrap) as admin, looking(admin, crowd):
                    for number in range(kills):
                        report.commit_s.append(await kill_once(admin, cluster, crowd, dice))
                        if number % 10 == 9:
                            print(f"  {number + 1} kills", file=sys.stderr)
                    await asyncio.sleep(SETTLED_S)
                    calm_s = time.monotonic()
                    for _ in range(hangs):
                        report.hung_s.append(await hang_once(admin, cluster, crowd))
            await until(lambda: not is_unseen(crowd, ends), "everything is read")
        finally:
            crowd.close()
    events = crowd.events()
    report.wrong = [*check(events, ends), *_lost(events, calm_s)]
    report.counts = Counter(event.kind.value for event in events)
    report.records, report.seconds = sum(ends.values()), time.monotonic() - began_s
    return report


def _lost(events: list[Event], since_s: float) -> list[str]:
    return [
        f"{e.member} lost {e.partition} at {e.at_s:.3f}, while only coordinators hung"
        for e in events
        if e.kind is Kind.LOST and e.at_s > since_s
    ]


def _has_acked(crowd: Crowd) -> bool:
    return any(event.kind is Kind.ACKED for event in crowd.events())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--hangs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(run(Path(root), options.kills, options.hangs))
    print(report.table())
    sys.exit(1 if report.wrong else 0)


if __name__ == "__main__":
    main()
