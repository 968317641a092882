"""Compacts the logs of this broker in the background, the dirtiest first.

Every replica compacts its own log, leader or not. A few workers share what may be read and written
per second (`compaction.bytes.per.s.max`) and the memory for what they have to know of the keys
(`compaction.memory.bytes.max`); a pass is done in small steps off the loop, and the loop
waits between them. A log whose pass failed is left alone for a while.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from suiro.model.error_base import SuiroError

from cluster.broker.throttle import Throttle

if TYPE_CHECKING:
    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from cluster.host.env import Env
    from cluster.log.clean_plan import CleanPlan
    from cluster.log.cleaner import Cleaning

log = logging.getLogger("suiro.broker")

WORKERS: Final = 2
CHECK_S: Final = 15.0
"""How often an idle worker looks for something to do."""
PAUSE_MS: Final = 300_000
"""How long a log is left alone whose pass failed."""


class LogCleaner:
    """`run` is a task of the broker."""

    def __init__(self, replicas: Replicas, env: Env) -> None:
        self._replicas = replicas
        self._env = env
        self._throttle = Throttle()
        self._busy: set[Partition] = set()
        self._failed_ms: dict[Partition, int] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS):
                tasks.create_task(self._work(), name=f"log cleaner {number}")

    async def _work(self) -> None:
        while True:
            found = self._dirtiest()
            if found is None:
                await asyncio.sleep(CHECK_S)
                continue
            partition, plan = found
            self._busy.add(partition)
            try:
                await self._clean(partition, plan)
            except SuiroError as error:
                log.warning("%s: not compacted: %s", partition.partition, error)
                self._failed_ms[partition] = self._env.clock.now_ms()
            finally:
                self._busy.discard(partition)

    def _dirtiest(self) -> tuple[Partition, CleanPlan] | None:
        now_ms = self._env.clock.now_ms()
        failed = self._failed_ms.items()
        self._failed_ms = {p: at_ms for p, at_ms in failed if now_ms - at_ms < PAUSE_MS}
        due: tuple[Partition, CleanPlan] | None = None
        for partition in self._replicas.all():
            plan = self._plan(partition, now_ms)
            if plan is not None and (due is None or plan.dirty_ratio > due[1].dirty_ratio):
                due = (partition, plan)
        return due

    def _plan(self, partition: Partition, now_ms: int) -> CleanPlan | None:
        is_taken = partition in self._busy or partition in self._failed_ms
        if is_taken or not partition.log.config.compacts:
            return None
        try:
            partition.log.roll_if_old(now_ms)
            return partition.log.plan_cleaning(partition.high_watermark, now_ms)
        except SuiroError as error:
            log.warning("%s: cannot be compacted: %s", partition.partition, error)
            self._failed_ms[partition] = now_ms
            return None

    async def _clean(self, partition: Partition, plan: CleanPlan) -> None:
        before = partition.log.size_bytes
        seed = self._env.rng.getrandbits(64)
        share = self._replicas.broker_config.compaction_memory_bytes_max // WORKERS
        cleaning = partition.log.start_cleaning(plan, seed=seed, map_bytes_max=share)
        try:
            await self._take_steps(cleaning)
            is_done = partition.log.finish_cleaning(cleaning, self._env.clock.now_ms())
        except BaseException:
            cleaning.drop()
            raise
        if is_done:
            after = partition.log.size_bytes
            log.info("%s: compacted, %d bytes of %d", partition.partition, after, before)

    async def _take_steps(self, cleaning: Cleaning) -> None:
        while size := await self._env.offload.run(cleaning.step):
            clock = self._env.clock
            self._throttle.set_rate(self._replicas.broker_config.compaction_bytes_per_s_max)
            due_ms = self._throttle.spend(size, clock.monotonic_ms())
            await asyncio.sleep(max(0.0, due_ms - clock.monotonic_ms()) / 1000)
