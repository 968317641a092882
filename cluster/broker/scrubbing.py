"""Looks for damage in the logs of this broker, in the background and at a bounded rate.

What it finds is handed to `Replicas.on_damage`, as is what a reader stumbles over: a log that has a
bad batch is put aside and fetched from the leader again, if anybody else has it (P15).
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

log = logging.getLogger("suiro.broker")

LOOK_S: Final = 1.0
"""How soon a change of the settings is heeded."""


class Scrubber:
    """`run` is a task of the broker: round after round over all of its logs."""

    def __init__(self, replicas: Replicas, env: Env) -> None:
        self._replicas = replicas
        self._env = env
        self._throttle = Throttle()
        self._bytes = env.metrics.scrubbed_bytes.of()

    async def run(self) -> None:
        while True:
            begun_ms = self._env.clock.monotonic_ms()
            for partition in self._replicas.all():
                await self._scrub(partition)
            await self._rest(begun_ms)

    async def _rest(self, begun_ms: float) -> None:
        """Until the next round is due, by the settings of that time."""
        while True:
            passed_ms = self._env.clock.monotonic_ms() - begun_ms
            if passed_ms >= self._replicas.broker_config.scrub_interval_ms:
                return
            await asyncio.sleep(LOOK_S)

    async def _scrub(self, partition: Partition) -> None:
        if partition.is_damaged:
            return
        scrub = partition.log.start_scrub()
        try:
            while size := await self._env.offload.run(scrub.step):
                self._bytes.add(size)
                await self._pause(size)
        except SuiroError as error:
            if self._replicas.find(partition.partition) is partition:
                log.error("scrubbing has found damage: %s", error)
                self._replicas.on_damage(partition.state.id, str(error))

    async def _pause(self, size: int) -> None:
        clock = self._env.clock
        self._throttle.set_rate(self._replicas.broker_config.scrub_bytes_per_s_max)
        due_ms = self._throttle.spend(size, clock.monotonic_ms())
        await asyncio.sleep(max(0.0, due_ms - clock.monotonic_ms()) / 1000)
