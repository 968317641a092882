"""Add a controller to a running quorum, remove an old one and the leader, all under load; and let a
controller of another cluster try to get in.

    python -m tests.cluster.quorum_members [--clients 16]

Fails if an acknowledged change is lost, a hash differs, or the foreigner is let in.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suiro._proto import admin_pb2
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.errors import ClusterIdMismatch
from suiro.transport.methods import AdminMethods

from cluster.storage import random_cluster_id
from tests.cluster.quorum_harness import (
    ControllerProcess,
    MetadataClient,
    RealQuorum,
    lost_changes,
    paper_broker,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable

CHANGE_S = 40.0


@dataclass
class MembersReport:
    acknowledged: int = 0
    steps: list[str] = field(default_factory=list)
    voters: list[int] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    hashes: set[tuple[int, str]] = field(default_factory=set)
    foreigner: str = ""

    @property
    def is_good(self) -> bool:
        return not self.lost and len(self.hashes) == 1 and bool(self.foreigner)

    def table(self) -> str:
        return "\n".join(
            [
                *self.steps,
                f"voters at the end    {self.voters}",
                f"acknowledged changes {self.acknowledged}",
                f"lost changes         {len(self.lost)}",
                f"state hashes equal   {'yes' if len(self.hashes) == 1 else 'NO'} {self.hashes}",
                f"foreign cluster id   {self.foreigner or 'NOT REFUSED'}",
            ]
        )


async def change_members(root: Path, clients: int) -> MembersReport:
    report = MembersReport()
    quorum = RealQuorum(root, 3, quorum_snapshot_entries=500)
    try:
        await quorum.leader()
        writers = [MetadataClient(quorum, f"client-{n}") for n in range(clients)]
        async with paper_broker(quorum), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(writer.run(pause_s=0.005)) for writer in writers]
            await asyncio.sleep(1)
            await _change(quorum, report)
            for task in running:
                task.cancel()
        report.hashes = await quorum.hashes()
        for node in quorum.nodes.values():
            report.lost += lost_changes(writers, await quorum.image(node))
        report.acknowledged = sum(len(writer.told.acks_s) for writer in writers)
        seen = await quorum.describe(await quorum.leader())
        assert seen is not None
        report.voters = sorted(m.address.node_id for m in seen.members if m.voter)
        return report
    finally:
        await quorum.close()


async def _change(quorum: RealQuorum, report: MembersReport) -> None:
    report.foreigner = await _let_foreigner_try(quorum)
    for node_id in (4, 5):
        node = quorum.joiner(node_id)
        node.start()
        await _until_serving(quorum, node)
        await _timed(report, f"controller {node_id} added", _add(quorum, node))
    await _timed(report, "controller 1 removed", _remove(quorum, 1))
    leader = await quorum.leader()
    await _timed(report, "the leader removed", _remove(quorum, leader.node_id))


async def _timed(report: MembersReport, name: str, change: Awaitable[None]) -> None:
    started_s = time.monotonic()
    await change
    report.steps.append(f"{name:20} {time.monotonic() - started_s:.2f} s")


async def _add(quorum: RealQuorum, node: ControllerProcess) -> None:
    address = node.address
    request = admin_pb2.AddControllerRequest(
        address=NodeAddress(node_id=node.node_id, host=address.host, port=address.port),
        directory_id=node.directory_id,
    )
    await _ask(quorum, AdminMethods.ADD_CONTROLLER, request)
    quorum.nodes[node.node_id] = node


async def _remove(quorum: RealQuorum, node_id: int) -> None:
    request = admin_pb2.RemoveControllerRequest(node_id=node_id)
    await _ask(quorum, AdminMethods.REMOVE_CONTROLLER, request)
    quorum.nodes.pop(node_id).kill()


async def _ask(quorum: RealQuorum, method: Any, request: Any) -> None:
    async with asyncio.timeout(CHANGE_S):
        await MetadataClient(quorum, "operator").call(method, request, timeout_s=CHANGE_S)


async def _until_serving(quorum: RealQuorum, node: ControllerProcess) -> None:
    async with asyncio.timeout(20):
        while await quorum.describe(node) is None:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


async def _let_foreigner_try(quorum: RealQuorum) -> str:
    """The error that an operator sees who adds a controller of another cluster; "" if none."""
    foreigner = quorum.joiner(9, random_cluster_id(random.SystemRandom()))
    foreigner.start()
    address = foreigner.address
    request = admin_pb2.AddControllerRequest(
        address=NodeAddress(node_id=9, host=address.host, port=address.port)
    )
    try:
        await _until_serving(quorum, foreigner)
        await _ask(quorum, AdminMethods.ADD_CONTROLLER, request)
    except ClusterIdMismatch as error:
        return f"refused: {error}"
    finally:
        foreigner.kill()
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(change_members(Path(root), arguments.clients))
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
