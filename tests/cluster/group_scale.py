"""Fifty members and a thousand partitions: join one by one, flap ten; print a table.

    python -m tests.cluster.group_scale [--members 50] [--partitions 1000] [--flap 10]

Fails if the group has not converged 5 s after the last change, if far more partitions moved than
had to, or if the history shows two owners. The members are spread over a few processes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin
from suiro.verify.groups import Kind, check

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.group_kit import GROUP, Crowd, make_topic, owners, until

if TYPE_CHECKING:
    from suiro.verify.groups import Event

HOSTS = 2
CONVERGED_S_MAX = 5.0
MOVED_SLACK = 1.2
STEP_S = 0.1


@dataclass(frozen=True)
class Phase:
    """What one kind of change cost."""

    name: str
    changes: int
    converged_s: float
    rebalances: int
    moved: int
    least: int

    def row(self) -> str:
        return (
            f"{self.name:16}{self.changes:>9}{self.converged_s:>13.2f} s{self.rebalances:>12}"
            f"{self.moved:>9}{self.least:>9}"
        )

    @property
    def is_good(self) -> bool:
        return self.converged_s <= CONVERGED_S_MAX and self.moved <= self.least * MOVED_SLACK


@dataclass
class Scale:
    crowd: Crowd
    admin: Admin
    partitions: int
    seen_epoch: int = 0

    async def phase(self, name: str, orders: list[tuple[str, str]], *, step_s: float) -> Phase:
        """Give the orders one by one; how long after the last until everything is shared out."""
        began_s, least = time.monotonic(), 0
        for what, member in orders:
            least += self._least_moves(what)
            self.crowd.order(what, member)
            last_s = time.monotonic()
            await asyncio.sleep(step_s)
        staying = set(self.crowd.running)
        await until(lambda: self._is_shared_by(staying), f"{name}: {len(staying)} share them")
        changes = [e.at_s for e in self.crowd.events() if e.kind is Kind.ASSIGNED]
        moved = sum(at_s > began_s for at_s in changes)
        rebalances = await self._rebalances()
        return Phase(name, len(orders), max(changes) - last_s, rebalances, moved, least)

    def _least_moves(self, what: str) -> int:
        """A joiner's share, or what the leaver had: so much moves, however good the assignor is."""
        count = len(self.crowd.running) + (what == "join")
        return self.partitions // count

    def _is_shared_by(self, members: set[str]) -> bool:
        shares = Counter(_shares(self.crowd.events()).values())
        counts = [shares[member] for member in members]
        return sum(counts) == self.partitions and max(counts) - min(counts) <= 1

    async def _rebalances(self) -> int:
        """How often targets were computed since this was asked last, as far as it is remembered."""
        done = (await self.admin.groups.describe_group(GROUP)).history
        fresh = sum(each.epoch > self.seen_epoch for each in done)
        self.seen_epoch = max((each.epoch for each in done), default=0)
        return fresh


def _shares(events: list[Event]) -> dict[str, str]:
    return {partition: ownership.member for partition, ownership in owners(events).items()}


async def run(
    root: Path, members: int, partitions: int, flap: int
) -> tuple[list[Phase], list[str]]:
    with LocalCluster(root / "cluster", Layout(brokers=1, groups=1)) as cluster:
        await make_topic(cluster.bootstrap, partitions)
        crowd = Crowd(cluster.bootstrap, root, session_timeout_ms=10_000)
        names = [f"m{number:02}" for number in range(members)]
        try:
            async with Admin(cluster.bootstrap) as admin:
                for number in range(HOSTS):
                    crowd.start(*names[number::HOSTS], join=False)
                scale = Scale(crowd, admin, partitions)
                orders = [("join", name) for name in names]
                phases = [await scale.phase("join one by one", orders, step_s=STEP_S)]
                print(phases[-1].row(), file=sys.stderr)
                chosen = names[:flap]
                flaps = [(what, name) for name in chosen for what in ("leave", "join")]
                phases.append(await scale.phase("flap", flaps, step_s=STEP_S))
                print(phases[-1].row(), file=sys.stderr)
                leaving = [("leave", name) for name in chosen]
                phases.append(await scale.phase("leave", leaving, step_s=STEP_S))
        finally:
            crowd.close()
        return phases, check(crowd.events())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--flap", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        phases, wrong = asyncio.run(
            run(Path(root), options.members, options.partitions, options.flap)
        )
    print(f"{'':16}{'changes':>9}{'converged':>15}{'rebalances':>12}{'moved':>9}{'least':>9}")
    for phase in phases:
        print(phase.row())
    print("\n".join(wrong or ["nothing wrong in the history"]))
    sys.exit(0 if not wrong and all(phase.is_good for phase in phases) else 1)


if __name__ == "__main__":
    main()
