"""kill -9 the quorum's leader again and again while 16 clients change metadata; print a table.

    python -m tests.cluster.quorum_kill [--kills 50] [--clients 16] [--pause-ms 5]

Fails if an acknowledged change is lost or the state hashes differ at the end.
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

from tests.cluster.quorum_harness import (
    MetadataClient,
    RealQuorum,
    lost_changes,
    paper_broker,
)

SETTLE_S = 0.3


@dataclass(frozen=True)
class KillReport:
    acknowledged: int
    lost: list[str]
    failovers_s: list[float]
    hashes: set[tuple[int, str]]
    seconds: float

    def table(self) -> str:
        return "\n".join(
            [
                f"leaders killed       {len(self.failovers_s)}",
                f"acknowledged changes {self.acknowledged}",
                f"lost changes         {len(self.lost)}",
                f"failover median      {statistics.median(self.failovers_s):.3f} s",
                f"failover maximum     {max(self.failovers_s):.3f} s",
                f"state hashes equal   {'yes' if len(self.hashes) == 1 else 'NO'} {self.hashes}",
                f"took                 {self.seconds:.0f} s",
            ]
        )

    @property
    def is_good(self) -> bool:
        return not self.lost and len(self.hashes) == 1


async def kill_leaders(root: Path, kills: int, clients: int, pause_s: float) -> KillReport:
    started_s = time.monotonic()
    quorum = RealQuorum(root, 3, quorum_snapshot_entries=2_000)
    try:
        await quorum.leader()
        writers = [MetadataClient(quorum, f"client-{n}") for n in range(clients)]
        async with paper_broker(quorum):
            failovers_s = await _kill_under_load(quorum, writers, kills, pause_s)
        hashes = await quorum.hashes()
        lost = []
        for node in quorum.nodes.values():
            lost += lost_changes(writers, await quorum.image(node))
        acknowledged = sum(len(writer.told.acks_s) for writer in writers)
        seconds = time.monotonic() - started_s
        return KillReport(acknowledged, lost, failovers_s, hashes, seconds)
    finally:
        await quorum.close()


async def _kill_under_load(
    quorum: RealQuorum, writers: list[MetadataClient], kills: int, pause_s: float
) -> list[float]:
    failovers_s = []
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(writer.run(pause_s=pause_s)) for writer in writers]
        await _acknowledged_after(writers, time.monotonic())
        for _ in range(kills):
            await asyncio.sleep(SETTLE_S)
            failovers_s.append(await _fail_over(quorum, writers))
        for task in running:
            task.cancel()
    return failovers_s


async def _fail_over(quorum: RealQuorum, writers: list[MetadataClient]) -> float:
    """Kill the leader, wait for the next acknowledged change, start it again; how long it took."""
    leader = await quorum.leader()
    killed_s = time.monotonic()
    leader.kill()
    took_s = await _acknowledged_after(writers, time.monotonic()) - killed_s
    leader.start()
    await quorum.caught_up()
    return took_s


async def _acknowledged_after(writers: list[MetadataClient], since_s: float) -> float:
    """When the first change was acknowledged that was asked for after `since_s`."""
    async with asyncio.timeout(30):
        while True:
            recent = [ack for writer in writers for ack in writer.told.acks_s[-50:]]
            after = [heard_s for asked_s, heard_s in recent if asked_s > since_s]
            if after:
                return min(after)
            await asyncio.sleep(0.002)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--pause-ms", type=float, default=5.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(
            kill_leaders(Path(root), arguments.kills, arguments.clients, arguments.pause_ms / 1000)
        )
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
