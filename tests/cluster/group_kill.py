"""Three consumers in processes, six partitions; kill one, hang one, let one join; print a table.

    python -m tests.cluster.group_kill [--rounds 10]

Fails if partitions are not owned again within 1 s of a kill -9, within the session timeout and
half a second of a hang (medians), if partitions that stay pause for 200 ms when somebody joins
(median), or if the history shows two owners, a skipped record or a commit that went back.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from suiro.verify.groups import check, ownerships

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.group_kit import TOPIC, Crowd, is_unseen, make_topic, owners, until
from tests.cluster.group_load import load

PARTITIONS = 6
SESSION_S = 3.0
KILLED_S_MAX = 1.0
HUNG_S_MAX = SESSION_S + 0.5
PAUSE_S_MAX = 0.2
EVERY_S = 0.02
CALM_S = 1.0


@dataclass
class Report:
    killed_s: list[float] = field(default_factory=list)
    hung_s: list[float] = field(default_factory=list)
    joined_s: list[float] = field(default_factory=list)
    pauses_s: list[float] = field(default_factory=list)
    calm_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    records: int = 0

    def table(self) -> str:
        rows = [
            ("owned again after kill -9", self.killed_s, KILLED_S_MAX),
            ("owned again after a hang", self.hung_s, HUNG_S_MAX),
            ("a third has its share after", self.joined_s, None),
            ("pause of what stays", self.pauses_s, PAUSE_S_MAX),
            ("the same while nothing happens", self.calm_s, None),
        ]
        lines = [f"{'':32}{'median':>10}{'worst':>10}{'bound':>10}"]
        for name, found, bound in rows:
            median, worst = f"{statistics.median(found):.3f} s", f"{max(found):.3f} s"
            most = "" if bound is None else f"{bound:.1f} s"
            lines.append(f"{name:32}{median:>10}{worst:>10}{most:>10}")
        lines.append(
            f"{len(self.killed_s)} kills, {len(self.hung_s)} hangs, {self.records} records"
        )
        return "\n".join([*lines, *(self.wrong or ["nothing wrong in the history"])])

    @property
    def is_good(self) -> bool:
        return (
            not self.wrong
            and statistics.median(self.killed_s) <= KILLED_S_MAX
            and statistics.median(self.hung_s) <= HUNG_S_MAX
            and statistics.median(self.pauses_s) <= PAUSE_S_MAX
        )


@dataclass
class Run:
    crowd: Crowd
    report: Report = field(default_factory=Report)
    born: int = 0

    async def join(self) -> None:
        """One more member; what the others keep is read on. Its process is up before that: that
        loading Python takes the cores from everybody is not the group's doing.
        """
        self.born += 1
        name = f"m{self.born}"
        self.crowd.start(name, join=False)
        await until(lambda: self.crowd.is_up(name), f"the process of {name} is up")
        before, began_s = owners(self.crowd.events()), time.monotonic()
        self.crowd.order("join", name)
        await self.shared_by(set(self.crowd.running))
        await asyncio.sleep(CALM_S)
        now = owners(self.crowd.events())
        mine = [o for o in now.values() if o.member == name]
        self.report.joined_s.append(max(o.began_s for o in mine) - began_s)
        if not before:
            return
        stayed = [p for p, o in now.items() if p in before and before[p].member == o.member]
        ended_s = max(o.began_s for o in mine)
        self.report.pauses_s.append(self._pause(stayed, began_s, ended_s + CALM_S / 2))

    async def calm(self) -> None:
        began_s = time.monotonic()
        await asyncio.sleep(CALM_S * 2)
        now = list(owners(self.crowd.events()))
        self.report.calm_s.append(self._pause(now, began_s, time.monotonic()))

    def _pause(self, partitions: list[str], from_s: float, until_s: float) -> float:
        """The longest that one of these partitions brought nothing."""
        found = ownerships(self.crowd.events())
        longest = 0.0
        for partition in partitions:
            times = [at_s for o in found[partition] for at_s, _, _ in o.polled]
            inside = [t for t in times if from_s - 0.1 <= t <= until_s]
            pauses = [b - a for a, b in pairwise(inside)]
            longest = max([longest, *pauses])
        return longest

    async def shared_by(self, members: set[str]) -> None:
        """Until these have everything among them, in equal shares."""

        def is_so() -> bool:
            now = owners(self.crowd.events())
            shares = [sum(o.member == m for o in now.values()) for m in members]
            return len(now) == PARTITIONS == sum(shares) and max(shares) - min(shares) <= 1

        await until(is_so, f"six partitions shared by {sorted(members)}")

    async def kill(self) -> None:
        victim = min(self.crowd.running)
        had = {p for p, o in owners(self.crowd.events()).items() if o.member == victim}
        killed_s = self.crowd.kill(victim)
        self.report.killed_s.append(await self._taken_over(had, victim, killed_s))

    async def hang(self) -> None:
        victim = max(self.crowd.running)
        had = {p for p, o in owners(self.crowd.events()).items() if o.member == victim}
        frozen_s = self.crowd.freeze(victim)
        self.report.hung_s.append(await self._taken_over(had, victim, frozen_s))
        self.crowd.thaw(victim)
        await self.shared_by(set(self.crowd.running))

    async def _taken_over(self, partitions: set[str], victim: str, since_s: float) -> float:
        await self.shared_by(set(self.crowd.running) - {victim})
        now = owners(self.crowd.events())
        return max(now[p].began_s for p in partitions) - since_s


async def run(root: Path, rounds: int) -> Report:
    with LocalCluster(root / "cluster", Layout(brokers=1, groups=2)) as cluster:
        await make_topic(cluster.bootstrap, PARTITIONS)
        settings = {"session_timeout_ms": SESSION_S * 1_000, "heartbeat_interval_ms": 500}
        crowd = Crowd(cluster.bootstrap, root, **settings)
        play = Run(crowd)
        try:
            with load(cluster.bootstrap, TOPIC, PARTITIONS, EVERY_S) as ends:
                for _ in range(3):
                    await play.join()
                for number in range(rounds):
                    print(f"  round {number}", file=sys.stderr)
                    await play.calm()
                    await play.kill()
                    await play.join()
                    await play.hang()
            await until(lambda: not is_unseen(crowd, ends), "everything is read")
            play.report.wrong = check(crowd.events(), ends)
            play.report.records = sum(ends.values())
        finally:
            crowd.close()
    return play.report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(run(Path(root), options.rounds))
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
