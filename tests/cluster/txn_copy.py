"""A topic is copied in transactions while brokers, coordinators and copiers are killed; a table.

    python -m tests.cluster.txn_copy [--seconds 120] [--every 2] [--copiers 2]

Records keep coming while it is so. Fails unless the copy is exactly f(source): nothing lost,
nothing twice, the records of every key in order.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin, Bound, Consumer, Producer
from suiro.model.ids import TopicPartition

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.copy_clients import COPY, SOURCE, check_copy
from tests.cluster.killing import Killing

if TYPE_CHECKING:
    from suiro.model.record import Record

PARTITIONS = 4
KEYS = 50
RATE = 500
"""Records that come in a second."""
COPIER_LIFE_S = 8.0
FINISH_S_MAX = 120.0


@dataclass(frozen=True)
class CopyReport:
    records: int
    copied: int
    violations: list[str]
    killing: Killing
    copiers_killed: int
    finished_s: float

    def table(self) -> str:
        killed = ", ".join(f"{kind} {count}" for kind, count in sorted(self.killing.killed.items()))
        return "\n".join(
            [
                f"killed with kill -9            {self.killing.killed.total()} ({killed})",
                f"copiers killed                 {self.copiers_killed}",
                f"records, copied                {self.records}, {self.copied}",
                f"all copied after the last kill {self.finished_s:.1f} s",
                f"violations                     {len(self.violations)}",
                *(f"  {line}" for line in self.violations[:20]),
            ]
        )

    @property
    def is_good(self) -> bool:
        return not self.violations and self.records == self.copied > 0


class Copier:
    """One name; a new process whenever the one before was killed."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.killed = 0
        self._command = [sys.executable, "-m", "tests.cluster.copy_process", bootstrap, name]
        self._process: asyncio.subprocess.Process | None = None

    async def keep_alive(self, rng: random.Random, faults: asyncio.Event) -> None:
        """While there are to be faults it is killed now and then; afterwards it lives."""
        while True:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE
            )
            waiting = asyncio.create_task(self._process.wait())
            await asyncio.wait([waiting], timeout=COPIER_LIFE_S * rng.uniform(0.5, 1.5))
            if waiting.done():
                continue  # fenced by its successor, or the cluster was away for too long
            if not faults.is_set():
                await waiting
                return
            self._process.kill()
            await waiting
            self.killed += 1

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


async def copy_through_kills(
    root: Path, seconds: float, every_s: float, copiers: int
) -> CopyReport:
    layout = Layout(controllers=3, brokers=3, groups=2, txns=2)
    with LocalCluster(root, layout) as cluster:
        async with Admin(cluster.bootstrap) as admin:
            for topic in (SOURCE, COPY):
                await admin.create_topic(
                    topic,
                    partitions=PARTITIONS,
                    replication_factor=3,
                    configs={"min.insync.replicas": "2"},
                )
        team = [Copier(cluster.bootstrap, f"copier-{number}") for number in range(copiers)]
        faults = asyncio.Event()
        faults.set()
        lives = [
            asyncio.create_task(one.keep_alive(random.Random(number), faults))
            for number, one in enumerate(team)
        ]
        try:
            killing = Killing(cluster, random.Random(2), every_s)
            async with killing.running():
                records = await _produce(cluster.bootstrap, seconds)
            faults.clear()
            return await _judge(cluster.bootstrap, records, killing, team)
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
            for one in team:
                await one.stop()


async def _produce(bootstrap: str, seconds: float) -> int:
    until_s, number = time.monotonic() + seconds, 0
    async with Producer(bootstrap) as producer:
        while time.monotonic() < until_s:
            for _ in range(RATE // 20):
                producer.send(SOURCE, b"%d" % number, key=b"key-%d" % (number % KEYS))
                number += 1
            await asyncio.sleep(1 / 20)
        await producer.flush(timeout_s=60)
    return number


async def _judge(bootstrap: str, records: int, killing: Killing, team: list[Copier]) -> CopyReport:
    began_s = time.monotonic()
    copied = await _read(bootstrap, COPY, records)
    finished_s = time.monotonic() - began_s
    copied += await _rest(bootstrap, copied)
    source = await _read(bootstrap, SOURCE, records)
    killed = sum(one.killed for one in team)
    found = check_copy(source, copied)
    return CopyReport(len(source), len(copied), found, killing, killed, finished_s)


async def _read(bootstrap: str, topic: str, count: int) -> list[Record]:
    """From the beginning, until so many have come or time is up."""
    found: list[Record] = []
    until_s = time.monotonic() + FINISH_S_MAX
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        await consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        while len(found) < count and time.monotonic() < until_s:
            found += await consumer.poll(1.0)
    return found


async def _rest(bootstrap: str, found: list[Record]) -> list[Record]:
    """What comes after those: duplicates, if anything."""
    more: list[Record] = []
    wheres = [TopicPartition(COPY, number) for number in range(PARTITIONS)]
    after = dict.fromkeys(wheres, 0)
    for record in found:
        after[wheres[record.partition]] = record.offset + 1
    async with Consumer(bootstrap) as consumer:
        await consumer.assign(after)
        for where in wheres:
            while consumer.position(where) < await consumer.offset_of(where, Bound.LATEST):
                more += await consumer.poll(0.5)
    return more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--copiers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(
            copy_through_kills(Path(root), options.seconds, options.every, options.copiers)
        )
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
