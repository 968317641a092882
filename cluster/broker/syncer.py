"""Brings logs to stable storage, off the loop, and says when it is done.

One sync of a log runs at a time; what is appended meanwhile is covered by the next one. That is
group commit: under load one sync serves many producers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from suiro.model.error_base import SuiroError
from suiro.model.limits import CHECKPOINT_MS

from cluster.log.config import Flush

if TYPE_CHECKING:
    from cluster.broker.partition import Partition
    from cluster.host.clock import Clock
    from cluster.host.offload import Offload

log = logging.getLogger("suiro.broker")

TICK_S: Final = 0.1
"""How often logs with an interval policy are looked at."""


class Syncer:
    """`run` is a task of the broker; `wanted` is called after an append."""

    def __init__(self, offload: Offload, clock: Clock) -> None:
        self._offload = offload
        self._clock = clock
        self._waiting: dict[Partition, None] = {}
        self._syncing: set[Partition] = set()
        self._by_interval: dict[Partition, None] = {}
        self._saved_ms: dict[Partition, int] = {}
        self._arrived = asyncio.Event()
        self._watched = asyncio.Event()
        """There are logs to look at now and then."""

    def appended(self, partition: Partition) -> None:
        """Something was appended; sync now or later, as the policy says."""
        match partition.log.config.flush:
            case Flush.ACK:
                self._waiting[partition] = None
                self._arrived.set()
            case Flush.INTERVAL | Flush.OS:
                self._by_interval[partition] = None
                self._watched.set()

    def forget(self, partition: Partition) -> None:
        self._waiting.pop(partition, None)
        self._by_interval.pop(partition, None)
        self._saved_ms.pop(partition, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_intervals(), name="flush by interval")
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                for partition in [p for p in self._waiting if p not in self._syncing]:
                    del self._waiting[partition]
                    self._syncing.add(partition)
                    tasks.create_task(self._sync(partition), name=f"sync {partition.partition}")

    async def _sync(self, partition: Partition) -> None:
        try:
            await self._offload.run(partition.log.sync)
            partition.on_synced()
            self._save(partition)
        except SuiroError as error:
            log.error("%s: sync failed: %s", partition.partition, error)
            partition.on_storage_failed(error)
        finally:
            self._syncing.discard(partition)
            if self._waiting:
                self._arrived.set()

    def _save(self, partition: Partition) -> None:
        """Now and then, what a start after a crash need not find out again."""
        now_ms = self._clock.now_ms()
        if now_ms - self._saved_ms.get(partition, 0) >= CHECKPOINT_MS:
            self._saved_ms[partition] = now_ms
            partition.log.checkpoint(partition.high_watermark, now_ms)

    async def _watch_intervals(self) -> None:
        while True:
            await self._watched.wait()
            await asyncio.sleep(TICK_S)
            now_ms = self._clock.now_ms()
            due = [p for p in self._by_interval if p.log.sync_due(now_ms)]
            for partition in due:
                del self._by_interval[partition]
                self._waiting[partition] = None
            if due:
                self._arrived.set()
            if not self._by_interval:
                self._watched.clear()
