"""The broker role: its disks, its partitions, its services."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cluster.broker.cleaning import LogCleaner
from cluster.broker.disk_service import DiskService
from cluster.broker.log_directories import LogDirectories
from cluster.broker.producer_ids import ProducerIds
from cluster.broker.replica_metrics import ReplicaMetrics
from cluster.broker.replica_moves import ReplicaMoves
from cluster.broker.replicas import Replicas
from cluster.broker.replication_role import is_outside
from cluster.broker.retention import Retention
from cluster.broker.scrubbing import Scrubber
from cluster.broker.service import AdminProxy, BrokerService
from cluster.broker.stable_lag import StableLag

if TYPE_CHECKING:
    from suiro._proto.common_pb2 import Hello
    from suiro.model.ids import BrokerEpoch
    from suiro.model.image import ClusterImage, Delta
    from suiro.transport.api import Service

    from cluster.config import NodeConfig
    from cluster.host.env import Env
    from cluster.host.lease import Lease
    from cluster.host.metadata_feed import MetadataFeed
    from cluster.host.quorum_client import QuorumClient


class Broker:
    """Made by the node; `open` before it registers, `run` while it serves, `close` at the end."""

    def __init__(
        self, config: NodeConfig, hello: Hello, env: Env, quorum: QuorumClient, lease: Lease
    ) -> None:
        self._env = env
        self._quorum = quorum
        self._directories = LogDirectories(env, config.log_directories)
        self.replicas = Replicas(env, hello, self._directories, quorum, lease)
        self._moves = ReplicaMoves(self.replicas, self._directories, env)
        self._producer_ids = ProducerIds(quorum, self.replicas.node, env.rng)

    def services(self, feed: MetadataFeed, *, with_admin: bool) -> list[Service]:
        """What it serves; a node that is a controller too answers Admin calls itself."""
        services: list[Service] = [
            BrokerService(self.replicas, feed, self._quorum, self._producer_ids, self._env),
            DiskService(self.replicas, self._moves),
        ]
        return [*services, AdminProxy(self._quorum)] if with_admin else services

    @property
    def log_directories(self) -> list[str]:
        """The ids of those that work."""
        return self._directories.ids

    async def open(self) -> BrokerEpoch | None:
        """Open the disks; the epoch of the last life, if that ended cleanly."""
        await self._directories.start()
        return self._directories.clean_epoch

    def registered(self, broker_epoch: BrokerEpoch, *, lost_directories: bool) -> None:
        """The quorum knows this incarnation by this epoch; and whether a directory is missing."""
        self.replicas.broker_epoch = broker_epoch
        self.replicas.lost_directories = lost_directories

    async def say_what_is_offline(self) -> None:
        """To be done before the broker says that it is ready."""
        await self.replicas.reports.flush(self.replicas.broker_epoch)
        self.replicas.is_starting = False

    async def on_delta(self, image: ClusterImage, delta: Delta) -> None:
        await self.replicas.on_delta(image, delta)

    @property
    def is_catching_up(self) -> bool:
        """Whether a replica here is on its way back into the ISR of another broker's partition."""
        replicas = self.replicas
        return any(is_outside(replicas.node, partition.state) for partition in replicas.all())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            epoch = self.replicas.broker_epoch
            tasks.create_task(self.replicas.hub.run(epoch), name="replication")
            tasks.create_task(self._producer_ids.run(epoch), name="producer ids")
            tasks.create_task(self.replicas.reports.run(epoch), name="reports of replicas")
            tasks.create_task(self._directories.probe_forever(), name="look at directories")
            tasks.create_task(self.replicas.watch_for_room(), name="look for room")
            retention = Retention(self.replicas, self._env.clock)
            tasks.create_task(retention.run(), name="retention")
            tasks.create_task(LogCleaner(self.replicas, self._env).run(), name="log cleaner")
            tasks.create_task(Scrubber(self.replicas, self._env).run(), name="scrubber")
            tasks.create_task(self._moves.run(), name="moves between directories")
            lag = StableLag(self.replicas, self._env.metrics)
            tasks.create_task(lag.run(), name="stable lag")
            counting = ReplicaMetrics(self.replicas, self._env.metrics)
            tasks.create_task(counting.run(), name="replica metrics")

    async def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Close everything; with an epoch, the shutdown is marked as clean."""
        await self.replicas.close()
        await self._directories.close(broker_epoch)
