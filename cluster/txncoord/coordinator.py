"""The transaction role of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.host.coordinator import Coordinator
from cluster.txncoord.program import TxnProgram
from cluster.txncoord.service import Hosts, TxnService

if TYPE_CHECKING:
    from suiro.model.image import ClusterImage
    from suiro.transport.api import Service

    from cluster.host.coordinator import RoleContext
    from cluster.txncoord.machine import TxnMachine


class TxnCoordinator:
    """Made by the node; `run` while it serves."""

    def __init__(self, context: RoleContext) -> None:
        self._context = context
        self._program = TxnProgram(context)
        self._role: Coordinator[TxnMachine] = Coordinator(context, self._program)

    def services(self) -> list[Service]:
        shards = self._role.shards
        return [
            TxnService(
                Hosts(
                    lambda name: shards.shard_for(name).host,
                    lambda: [shard.host for shard in shards.owned()],
                    lambda name: self._program.completed(shards.shard_for(name), name),
                ),
                self._program.new_producer_id,
                self._context.env.clock,
                self._context.address,
                self._program.failpoint,
            )
        ]

    def on_image(self, image: ClusterImage) -> None:
        self._role.on_image(image)

    async def run(self) -> None:
        await self._role.run()
