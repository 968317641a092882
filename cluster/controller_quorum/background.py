"""What the active controller does unasked: give leaders back, complete reassignments, hand out
shards; and what every controller watches: whether it still hears of a leader.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from suiro.model.configs import broker_config
from suiro.model.error_base import SuiroError
from suiro.model.records import ConfigResource, ShardKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.controller_quorum.controller import Controller
    from cluster.controller_quorum.metadata import MetadataMachine
    from cluster.controller_quorum.quorum_metrics import QuorumMetrics
    from cluster.host.machine import Decision

log = logging.getLogger("suiro.quorum")

R = TypeVar("R")

TEND_S: Final = 1.0
WATCH_S: Final = 0.5
LEADERLESS_S_MAX: Final = 3.0
"""A controller that has heard of no leader for so long no longer serves the feed."""

BALANCE_MOVES_MAX: Final = 500
"""Leaders given back at once: a broker that came back is not to be buried."""


class Background:
    """The tasks, each as a coroutine for the controller to own."""

    def __init__(self, controller: Controller, metrics: QuorumMetrics) -> None:
        self._controller = controller
        self._metrics = metrics

    async def tend_forever(self) -> None:
        """While this controller leads. What has nothing to do decides nothing and costs nothing."""
        clock = self._controller.env.clock
        balanced_ms = clock.monotonic_ms()
        while True:
            await asyncio.sleep(TEND_S)
            image = self._controller.replica.machine.image
            settings = broker_config({}, image.configs(ConfigResource.CLUSTER))
            if image.reassigning:
                await self._decide(lambda m: m.decide_complete_reassignments())
            for kind in ShardKind:
                if self._controller.replica.machine.decide_assign_shards(kind).records:
                    await self._assign_shards(kind)
            interval_ms = settings.leader_imbalance_check_interval_seconds * 1000
            is_due = clock.monotonic_ms() - balanced_ms >= interval_ms
            if is_due and settings.auto_leader_rebalance_enable:
                balanced_ms = clock.monotonic_ms()
                if image.not_preferred or image.leaderless:
                    await self._balance(settings.leader_imbalance_per_broker_percentage)

    async def watch_leader(self) -> None:
        """On every controller."""
        leaderless_s = 0.0
        while True:
            await asyncio.sleep(WATCH_S)
            self._metrics.refresh(self._controller.replica.machine.image)
            leaderless_s = leaderless_s + WATCH_S if self._controller.driver.leader is None else 0.0
            if leaderless_s >= LEADERLESS_S_MAX:
                leaderless_s = 0.0
                self._controller.cut_off_followers()

    async def _balance(self, percentage: int) -> None:
        await self._decide(lambda m: m.decide_balance_leaders(BALANCE_MOVES_MAX, percentage))

    async def _assign_shards(self, kind: ShardKind) -> None:
        await self._decide(lambda machine: machine.decide_assign_shards(kind))

    async def _decide(self, choose: Callable[[MetadataMachine], Decision[R]]) -> None:
        try:
            await self._controller.decide(choose)
        except SuiroError as error:
            log.info("in the background: %s", error)
