"""When clients were served again: read off what the workloads did, and one probe for the quorum."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from suiro._proto import groupcoord_pb2, txncoord_pb2
from suiro.aio import Admin
from suiro.model.error_base import SuiroError
from suiro.transport.methods import GroupCoordinatorMethods, TxnCoordinatorMethods
from suiro.verify.groups import Kind

from tests.workloads.grouping import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.verify.append import Append
    from suiro.verify.banking import Bank

    from tests.workloads.grouping import Group

PATIENCE_S = 30.0
LOOK_S = 0.01
RECENT = 2_000
PROBE_S = 0.05
PROBE_TIMEOUT_S = 1.0
WRITER = "accounts-0"
"""Whose transaction coordinator is killed and watched."""


@dataclass
class Probes:
    """Each `*_served` waits until somebody was served who asked after `since_s`; when that was."""

    bootstrap: str
    append: Append
    bank: Bank
    group: Group
    changes: list[tuple[float, float]] = field(default_factory=list)
    """Of the metadata: when each was asked for and answered."""

    async def run(self) -> None:
        """Ask the quorum for a change all the time."""
        async with Admin(self.bootstrap, timeout_s=PROBE_TIMEOUT_S) as admin:
            while True:
                asked_s = time.monotonic()
                try:
                    await admin.throttle(0)
                    self.changes.append((asked_s, time.monotonic()))
                except SuiroError:
                    await asyncio.sleep(0)
                await asyncio.sleep(PROBE_S)

    async def partition_served(self, since_s: float) -> float:
        return await self._first(
            lambda: [
                answered_s
                for answered_s, partition, took_s in self.append.acks[-RECENT:]
                if partition == 0 and answered_s - took_s > since_s
            ]
        )

    async def quorum_served(self, since_s: float) -> float:
        return await self._first(
            lambda: [answered_s for asked_s, answered_s in self.changes[-100:] if asked_s > since_s]
        )

    async def transactions_served(self, since_s: float) -> float:
        """By the bank's first writer, whose coordinator it is about."""
        commits = self.bank.writers[0].commits
        return await self._first(
            lambda: [ended_s for begun_s, ended_s in commits[-100:] if ended_s > since_s]
        )

    async def group_served(self, since_s: float) -> float:
        events = self.group.journal.events
        return await self._first(
            lambda: [
                event.at_s
                for event in events[-RECENT:]
                if event.kind is Kind.ACKED and event.at_s > since_s
            ]
        )

    async def owner(self, kind: str) -> int:
        """The node that owns what the workloads use."""
        async with Admin(self.bootstrap) as admin:
            if kind == "group":
                group = groupcoord_pb2.FindGroupCoordinatorRequest(group=GROUP)
                owner = (
                    await admin.ask(GroupCoordinatorMethods.FIND_COORDINATOR, group)
                ).coordinator
            else:
                txn = txncoord_pb2.FindTxnCoordinatorRequest(transactional_id=WRITER)
                owner = (await admin.ask(TxnCoordinatorMethods.FIND_COORDINATOR, txn)).coordinator
        return int(owner.node_id)

    async def _first(self, look: Callable[[], list[float]]) -> float:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = look()
                if found:
                    return min(found)
                await asyncio.sleep(LOOK_S)
