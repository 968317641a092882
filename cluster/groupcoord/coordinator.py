"""The group role of a node."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro.model.configs import broker_config
from suiro.model.records import ConfigResource

from cluster.groupcoord.lag import LagWatch
from cluster.groupcoord.program import GroupProgram
from cluster.groupcoord.service import GroupService
from cluster.host.coordinator import Coordinator
from cluster.host.txn_owner import TxnOwner

if TYPE_CHECKING:
    from suiro.model.image import ClusterImage
    from suiro.transport.api import Service

    from cluster.groupcoord.machine import GroupMachine
    from cluster.host.coordinator import RoleContext


class GroupCoordinator:
    """Made by the node; `run` while it serves."""

    def __init__(self, context: RoleContext) -> None:
        self._context = context
        self._program = GroupProgram(context.env.clock, self._offsets_retention_ms)
        self._role: Coordinator[GroupMachine] = Coordinator(context, self._program)

    def services(self) -> list[Service]:
        context = self._context
        return [
            GroupService(
                self._role.shards,
                self._program,
                context.env.clock,
                context.greet,
                context.address,
                TxnOwner(context.env, lambda: context.feed.image),
            )
        ]

    def on_image(self, image: ClusterImage) -> None:
        self._program.on_image(image)
        self._role.on_image(image)

    async def run(self) -> None:
        context = self._context
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._role.run(), name="group role")
            if context.is_scraped:
                lag = LagWatch(context.env, lambda: context.feed.image, self._role.shards.owned)
                tasks.create_task(lag.run(), name="lag of groups")

    def _offsets_retention_ms(self) -> int:
        image = self._context.feed.image
        return broker_config({}, image.configs(ConfigResource.CLUSTER)).offsets_retention_ms
