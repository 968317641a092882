"""How far open transactions hold readers of committed records back, on the partitions led here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from suiro._proto.common_pb2 import READ_COMMITTED
from suiro.model.error_base import SuiroError

if TYPE_CHECKING:
    from cluster.broker.replicas import Replicas
    from cluster.host.metrics import Metrics

LOOK_S: Final = 2.0


class StableLag:
    """Looks now and then; `run` is a task of the broker."""

    def __init__(self, replicas: Replicas, metrics: Metrics) -> None:
        self._replicas = replicas
        self._held = metrics.partitions_held_back.of()
        self._lag_max = metrics.stable_lag_records_max.of()

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        lags = []
        for partition in self._replicas.all():
            try:
                lags.append(partition.high_watermark - partition.latest(READ_COMMITTED))
            except SuiroError:
                continue  # led by another broker, or about to be led here
        self._held.set(sum(lag > 0 for lag in lags))
        self._lag_max.set(max(lags, default=0))
