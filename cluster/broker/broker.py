"""The broker role: its disks, its partitions, its services."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cluster.broker.log_directories import LogDirectories
from cluster.broker.replicas import Replicas
from cluster.broker.service import AdminProxy, BrokerService

if TYPE_CHECKING:
    from suiro.model.ids import BrokerEpoch
    from suiro.model.image import ClusterImage, Delta
    from suiro.transport.api import Service

    from cluster.config import NodeConfig
    from cluster.host.env import Env
    from cluster.host.metadata_feed import MetadataFeed
    from cluster.host.quorum_client import QuorumClient


class Broker:
    """Made by the node; `open` before it registers, `run` while it serves, `close` at the end."""

    def __init__(self, config: NodeConfig, cluster_id: str, env: Env) -> None:
        self._env = env
        self._directories = LogDirectories(env, config.log_directories)
        self.replicas = Replicas(config.node_id, cluster_id, env, self._directories)

    def services(
        self, feed: MetadataFeed, quorum: QuorumClient, *, with_admin: bool
    ) -> list[Service]:
        """What it serves; a node that is a controller too answers Admin calls itself."""
        services: list[Service] = [BrokerService(self.replicas, feed, quorum)]
        return [*services, AdminProxy(quorum)] if with_admin else services

    async def open(self) -> BrokerEpoch | None:
        """Open the disks; the epoch of the last life, if that ended cleanly."""
        await self._directories.start()
        return self._directories.clean_epoch

    async def on_delta(self, image: ClusterImage, delta: Delta) -> None:
        await self.replicas.on_delta(image, delta)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.replicas.syncer.run(), name="syncer")

    async def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Close everything; with an epoch, the shutdown is marked as clean."""
        await self.replicas.close()
        await self._directories.close(broker_epoch)
