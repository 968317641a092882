"""The transaction coordinator dies at each state of its machine; print a table.

    python -m tests.cluster.txn_failpoints [--rounds 1]

A producer writes to all partitions and commits offsets of a group, in one transaction; at the named
point the coordinator kills itself (`cluster/txncoord/failpoint.py`) and another takes over. Fails
if what the client was told is not what every partition and the group show, or if the point was
never reached.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from suiro.aio import Admin, Consumer, Producer
from suiro.aio.group_offsets import OffsetAndMetadata
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition
from suiro.verify.bank_clients import ACCOUNTS, until_stable

from cluster.local_cluster import Layout, LocalCluster
from cluster.txncoord.failpoint import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITIONS = 4
TIMEOUT_MS = 10_000
FIRES_S_MAX = 5.0
GROUP = "failpoints"
SOURCE = TopicPartition(ACCOUNTS, 0)
"""Whose offsets the group commits; that it is also written to does not matter."""


class Point(NamedTuple):
    """Where to die, and whether the client wants to commit."""

    name: str
    commit: bool


POINTS = [
    Point("before empty", True),
    Point("unanswered empty", True),
    Point("before ongoing", True),
    Point("unanswered ongoing", True),
    *(
        Point(name.format(word), commit)
        for commit, word in ((True, "commit"), (False, "abort"))
        for name in (
            "before prepare_{}",
            "after prepare_{}",
            "unanswered prepare_{}",
            "marked",
            "before complete_{}",
            "complete",
        )
    ),
]


@dataclass(frozen=True)
class Tried:
    """What one point led to."""

    point: Point
    fired: bool
    told: str
    seen: int
    """Partitions that show the transaction to readers of committed records."""
    offset: int
    """What the group has committed, of what was to be `wanted`."""
    wanted: int
    seconds: float

    @property
    def is_right(self) -> bool:
        if not self.fired:
            return False
        happened = self.seen == PARTITIONS and self.offset == self.wanted
        nothing = self.seen == 0 and self.offset != self.wanted
        match self.told:
            case "committed":
                return happened
            case "aborted":
                return nothing
            case _:
                return happened or nothing

    def line(self) -> str:
        wish = "commit" if self.point.commit else "abort"
        return (
            f"{self.point.name:27} {wish:7} {'yes' if self.fired else 'NO':6} {self.told:10} "
            f"{self.seen}/{PARTITIONS}    {'yes' if self.offset == self.wanted else 'no':8} "
            f"{self.seconds:5.1f} s  {'right' if self.is_right else 'WRONG'}"
        )


@dataclass(frozen=True)
class FailpointReport:
    tried: list[Tried]

    def table(self) -> str:
        title = "dies at                     wish    died   told       seen   offsets  took"
        return "\n".join([title, *(each.line() for each in self.tried)])

    @property
    def is_good(self) -> bool:
        return all(each.is_right for each in self.tried)


class Failing:
    """A cluster whose coordinators die on demand."""

    def __init__(self, cluster: LocalCluster, file: Path) -> None:
        self._cluster = cluster
        self._file = file
        self._count = 0

    async def open(self, stack: AsyncExitStack) -> None:
        bootstrap = self._cluster.bootstrap
        self._reader = await stack.enter_async_context(
            Consumer(bootstrap, group_id=GROUP, enable_auto_commit=False)
        )
        self._uncommitted = await stack.enter_async_context(
            Consumer(bootstrap, isolation="read_uncommitted")
        )
        wheres = [TopicPartition(ACCOUNTS, number) for number in range(PARTITIONS)]
        await self._reader.assign(dict.fromkeys(wheres, 0))

    async def die_at(self, point: Point) -> Tried:
        """One transaction; the coordinator that died is up again afterwards."""
        self._count += 1
        began_s = time.monotonic()
        self._file.write_text(point.name)
        told = await self._transact(point)
        fired = await self._fires()
        self._file.unlink(missing_ok=True)
        for node in self._cluster.coordinators:
            if not node.is_running:
                node.start()
                await asyncio.to_thread(node.wait_ready)
        await until_stable(self._reader, self._uncommitted, PARTITIONS)
        offsets = await self._reader.committed([SOURCE])
        offset = offsets[SOURCE].offset if SOURCE in offsets else -1
        seconds = time.monotonic() - began_s
        seen = await self._seen()
        return Tried(point, fired, told, seen, offset, self._count, seconds)

    async def _fires(self) -> bool:
        """Markers are sent after the client has been answered, so it may take a moment."""
        until_s = time.monotonic() + FIRES_S_MAX
        while time.monotonic() < until_s:
            if not self._file.exists():
                return True
            await asyncio.sleep(0.05)
        return False

    async def _transact(self, point: Point) -> str:
        producer = Producer(
            self._cluster.bootstrap,
            transactional_id=f"failpoint-{self._count}",
            transaction_timeout_ms=TIMEOUT_MS,
        )
        async with producer:
            try:
                await producer.begin_transaction()
                for partition in range(PARTITIONS):
                    producer.send(ACCOUNTS, b"%d" % self._count, partition=partition)
                await producer.send_offsets(self._reader, {SOURCE: OffsetAndMetadata(self._count)})
                if point.commit:
                    await producer.commit_transaction()
                    return "committed"
                await producer.abort_transaction()
            except SuiroError:
                if not producer.transactions.is_open:
                    return "unknown"
                await producer.abort_transaction()
            return "aborted"

    async def _seen(self) -> int:
        """In how many partitions the newest transaction is visible: exactly once each."""
        values: list[tuple[int, bytes | None]] = []
        quiet = 0
        while quiet < 2:
            polled = await self._reader.poll(0.3)
            quiet = 0 if polled else quiet + 1
            values += [(record.partition, record.value) for record in polled]
        mine = [partition for partition, value in values if value == b"%d" % self._count]
        assert len(mine) == len(set(mine)), "a record came twice"
        assert len(mine) == len(values), f"records of an older transaction came late: {values}"
        return len(mine)


async def die_everywhere(root: Path, points: Sequence[Point]) -> FailpointReport:
    file = root / "failpoint"
    cluster = LocalCluster(root, Layout(controllers=1, brokers=3, groups=1, txns=2))
    for node in cluster.coordinators:
        node.within = ("env", f"{VARIABLE}={file}")
    with cluster:
        async with Admin(cluster.bootstrap) as admin:
            await admin.create_topic(ACCOUNTS, partitions=PARTITIONS, replication_factor=3)
        async with AsyncExitStack() as stack:
            failing = Failing(cluster, file)
            await failing.open(stack)
            return FailpointReport([await failing.die_at(point) for point in points])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(die_everywhere(Path(root), POINTS * options.rounds))
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
