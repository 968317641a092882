"""Money is moved in transactions while brokers and both coordinators are killed; print a table.

    python -m tests.cluster.txn_bank [--minutes 10] [--every 2] [--writers 8] [--readers 4]

Fails if a reader of committed records ever sees money that was made or lost, an aborted transfer,
one twice, one out of its writer's order or one in part for good; if a committed one is not seen; if
fewer than 83 a second are committed, on average; or if a transaction is still open in some
partition `timeout + 10 s` after the last killed node is up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suiro.aio import Admin, Consumer
from suiro.verify.bank import Book, Ledger
from suiro.verify.bank_clients import ACCOUNTS, until_stable

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.bank_process import TIMEOUT_MS
from tests.cluster.killing import Killing

PARTITIONS = 8
PROCESSES = 2
RATE_MIN = 50_000 / 600
"""Transactions per second."""
STABLE_S_MAX = TIMEOUT_MS / 1000 + 10


@dataclass(frozen=True)
class Plan:
    """How long and how much."""

    seconds: float
    every_s: float = 2.0
    writers: int = 8
    readers: int = 4
    committed_min: int = 1


@dataclass(frozen=True)
class BankReport:
    plan: Plan
    book: Book
    ledgers: list[Ledger]
    violations: list[str]
    killing: Killing
    stable_s: float
    errors: int
    lives: int

    def table(self) -> str:
        killed = ", ".join(f"{kind} {count}" for kind, count in sorted(self.killing.killed.items()))
        committed = len(self.book.committed)
        return "\n".join(
            [
                f"writers, readers               {self.plan.writers}, {self.plan.readers}",
                f"killed with kill -9            {self.killing.killed.total()} ({killed})",
                f"faults skipped, too few up     {self.killing.skipped}",
                f"transactions committed         {committed} "
                f"({committed / self.plan.seconds:.0f}/s; at least {self.plan.committed_min})",
                f"aborted, unknown to the writer {len(self.book.aborted)}, "
                f"{len(self.book.unknown)}",
                f"errors that writers saw        {self.errors}; producers made anew "
                f"{self.lives - self.plan.writers}",
                f"longest time seen in part      "
                f"{max(ledger.half_s_max for ledger in self.ledgers):.2f} s",
                f"no transaction open after      {self.stable_s:.2f} s (at most {STABLE_S_MAX:g})",
                f"violations                     {len(self.violations)}",
                *(f"  {line}" for line in self.violations[:20]),
            ]
        )

    @property
    def is_good(self) -> bool:
        return (
            not self.violations
            and self.stable_s <= STABLE_S_MAX
            and len(self.book.committed) >= self.plan.committed_min
        )


class Helper:
    """A process with some of the clients."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, kind: str, bootstrap: str, first: int, count: int) -> Helper:
        command = [sys.executable, "-m", "tests.cluster.bank_process", kind, bootstrap]
        command += map(str, (PARTITIONS, first, count))
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 30
        )
        return cls(process)

    async def finish(self) -> dict[str, Any]:
        """End its input; what it says."""
        said, _ = await self._process.communicate(b"")
        assert self._process.returncode == 0, "a helper has failed; its words are above"
        result: dict[str, Any] = json.loads(said)
        return result

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


async def move_money(root: Path, plan: Plan) -> BankReport:
    layout = Layout(controllers=3, brokers=3, groups=2, txns=2)
    with LocalCluster(root, layout) as cluster:
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(
                ACCOUNTS,
                partitions=PARTITIONS,
                replication_factor=3,
                configs={"min.insync.replicas": "2"},
            )
        helpers: list[Helper] = []
        try:
            return await _run(cluster, plan, helpers)
        finally:
            for helper in helpers:
                await helper.kill()


async def _run(cluster: LocalCluster, plan: Plan, helpers: list[Helper]) -> BankReport:
    each = plan.writers // PROCESSES
    jobs = [("write", number * each, each) for number in range(PROCESSES)]
    for kind, first, count in (*jobs, ("read", 0, plan.readers)):
        helpers.append(await Helper.start(kind, cluster.bootstrap, first, count))
    killing = Killing(cluster, random.Random(1), plan.every_s)
    started_s = time.monotonic()
    async with killing.running():
        while (passed_s := time.monotonic() - started_s) < plan.seconds:
            print(f"  {passed_s:.0f} s, {killing.killed.total()} kills", file=sys.stderr)
            await asyncio.sleep(min(30.0, plan.seconds - passed_s))
    faults_over_s = time.monotonic()
    wrote = await asyncio.gather(*(helper.finish() for helper in helpers[:-1]))
    await _stable(cluster)
    stable_s = time.monotonic() - faults_over_s
    book, ledgers = _book(wrote), _ledgers(await helpers[-1].finish())
    return BankReport(
        plan,
        book,
        ledgers,
        book.check(ledgers),
        killing,
        stable_s,
        errors=sum(said["errors"] for said in wrote),
        lives=sum(said["lives"] for said in wrote),
    )


async def _stable(cluster: LocalCluster) -> None:
    async with (
        Consumer(cluster.bootstrap) as committed,
        Consumer(cluster.bootstrap, isolation="read_uncommitted") as uncommitted,
    ):
        await until_stable(committed, uncommitted, PARTITIONS)


def _book(wrote: list[dict[str, Any]]) -> Book:
    book = Book()
    for said in wrote:
        book.committed.update(map(_name, said["committed"]))
        book.aborted.update(map(_name, said["aborted"]))
        book.unknown.update(map(_name, said["unknown"]))
    return book


def _ledgers(said: dict[str, Any]) -> list[Ledger]:
    return [
        Ledger(one["violations"], set(map(_name, one["whole"])), one["half_s_max"])
        for one in said["ledgers"]
    ]


def _name(pair: list[int]) -> tuple[int, int]:
    return pair[0], pair[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--readers", type=int, default=4)
    options = parser.parse_args()
    seconds = options.minutes * 60
    committed_min = int(seconds * RATE_MIN)
    plan = Plan(seconds, options.every, options.writers, options.readers, committed_min)
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(move_money(Path(root), plan))
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
