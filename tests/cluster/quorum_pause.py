"""SIGSTOP the quorum's leader until another leads, then wake it up: it must tell nobody old news.

    python -m tests.cluster.quorum_pause [--pauses 5]

While it is stopped, reads and changes are sent to it and wait in its socket; the new leader changes
a setting. What the old one answers when it wakes up is counted. Fails if it acknowledges a change
or gives the old value.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from suiro._proto import admin_pb2
from suiro.model.error_base import SuiroError
from suiro.transport.methods import AdminMethods

from tests.cluster.quorum_harness import (
    SETTING,
    ControllerProcess,
    MetadataClient,
    RealQuorum,
    paper_broker,
)

ASKED = 50
PATIENCE_S = 15.0


@dataclass
class PauseReport:
    pauses: int = 0
    stale_reads: int = 0
    acknowledged: int = 0
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def is_good(self) -> bool:
        return not self.stale_reads and not self.acknowledged

    def table(self) -> str:
        return "\n".join(
            [
                f"leaders stopped and woken   {self.pauses}",
                f"stale reads                 {self.stale_reads}",
                f"changes acknowledged by it  {self.acknowledged}",
                *(f"answered {name:18} {count}" for name, count in sorted(self.answers.items())),
            ]
        )


async def pause_leaders(root: Path, pauses: int) -> PauseReport:
    report = PauseReport()
    quorum = RealQuorum(root, 3)
    try:
        await quorum.leader()
        client = MetadataClient(quorum, "client")
        async with paper_broker(quorum):
            await client.begin()
            for _ in range(pauses):
                await client.change()
                await _pause(quorum, client, report)
        return report
    finally:
        await quorum.close()


async def _pause(quorum: RealQuorum, client: MetadataClient, report: PauseReport) -> None:
    old = await quorum.leader()
    await _read(quorum, old, client.name)  # the connection is there
    old.send(signal.SIGSTOP)
    try:
        reads = [asyncio.create_task(_read(quorum, old, client.name)) for _ in range(ASKED)]
        changes = [asyncio.create_task(_change(quorum, old, client.name)) for _ in range(ASKED)]
        await client.change()
        new = str(client.told.number)
    finally:
        old.send(signal.SIGCONT)
    for answer in await asyncio.gather(*reads, return_exceptions=True):
        report.answers[_name(answer)] += 1
        report.stale_reads += isinstance(answer, str) and answer != new
    for outcome in await asyncio.gather(*changes, return_exceptions=True):
        report.answers[_name(outcome)] += 1
        report.acknowledged += outcome is None
    report.pauses += 1


async def _read(quorum: RealQuorum, node: ControllerProcess, topic: str) -> str:
    request = admin_pb2.DescribeConfigsRequest(resource=admin_pb2.ConfigResource.TOPIC, name=topic)
    reply = await quorum.transport.call(
        node.address, AdminMethods.DESCRIBE_CONFIGS, request, timeout_s=PATIENCE_S
    )
    return next(str(entry.value) for entry in reply.entries if entry.key == SETTING)


async def _change(quorum: RealQuorum, node: ControllerProcess, topic: str) -> None:
    request = admin_pb2.AlterConfigsRequest(
        resource=admin_pb2.ConfigResource.TOPIC, name=topic, set={SETTING: "999999"}
    )
    await quorum.transport.call(
        node.address, AdminMethods.ALTER_CONFIGS, request, timeout_s=PATIENCE_S
    )


def _name(answer: object) -> str:
    if isinstance(answer, SuiroError):
        return type(answer).__name__
    if isinstance(answer, BaseException):
        raise answer
    return "with a reply"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pauses", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(pause_leaders(Path(root), arguments.pauses))
    print(report.table())
    sys.exit(0 if report.is_good else 1)


if __name__ == "__main__":
    main()
