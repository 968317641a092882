"""Around the partitions of this broker: feeds followers, follows leaders, asks for ISRs."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import TYPE_CHECKING, Final

from suiro.model.ids import NodeId

from cluster.broker.isr_proposer import IsrProposer
from cluster.broker.replica_events import ReplicaEvents
from cluster.broker.replication_effects import RestartAt, TruncateReason, TruncateTo
from cluster.broker.replication_sender import ReplicationSender
from cluster.broker.replicator import Replicator
from cluster.broker.syncer import Syncer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from suiro._proto.common_pb2 import Hello
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import Address, BrokerEpoch, Offset
    from suiro.model.image import Node
    from suiro.model.records import PartitionId

    from cluster.broker.partition import Partition
    from cluster.broker.replication_effects import FollowerEffect, LeaderEffect, ProposeIsr
    from cluster.broker.replication_epochs import Position
    from cluster.host.env import Env
    from cluster.host.quorum_client import QuorumClient

log = logging.getLogger("suiro.broker")

TICK_S: Final = 0.25
REST_TICKS: Final = 4
"""A partition at rest is ticked every so many ticks: less often than a leader takes for a pause."""
RESTLESS_MS: Final = 5_000
"""How long a partition counts as busy after something has happened: any retry is due by then."""


class ReplicationHub:
    """Implements `Neighbours`. `run` is a task of the broker."""

    def __init__(
        self,
        env: Env,
        hello: Hello,
        nodes: Mapping[NodeId, Node],
        quorum: QuorumClient,
        find: Callable[[PartitionId], Partition | None],
    ) -> None:
        self.events = ReplicaEvents(env.events)
        self.syncer = Syncer(env.offload, env.clock)
        self.sender = ReplicationSender(hello.cluster_id, find, env.clock)
        self._env = env
        self._hello = hello
        self._nodes = nodes
        self._proposer = IsrProposer(quorum, NodeId(hello.node_id))
        self._broker_epoch: BrokerEpoch | None = None
        self._replicators: dict[NodeId, Replicator] = {}
        self._following: dict[Partition, Replicator] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[NodeId, asyncio.Task[None]] = {}
        self._ticking: dict[Partition, None] = {}
        self._restless: dict[Partition, float] = {}

    async def run(self, broker_epoch: BrokerEpoch) -> None:
        self._broker_epoch = self._proposer.broker_epoch = broker_epoch
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            tasks.create_task(self.syncer.run(), name="syncer")
            tasks.create_task(self._proposer.run(), name="ISR proposals")
            tasks.create_task(self._tick_forever(), name="replication tick")
            for leader in list(self._replicators):
                self._start(leader)

    # -- what the partitions want -----------------------------------------------------------------

    def ready(self, node: NodeId, stream: int, partition: Partition) -> None:
        self.sender.ready(node, stream, partition)

    def refuse(self, node: NodeId, stream: int, partition: Partition, error: SuiroError) -> None:
        self.sender.refuse(node, stream, partition, error)

    def propose(self, partition: Partition, proposal: ProposeIsr) -> None:
        self._stir(partition)
        self._proposer.propose(partition, proposal)

    def announce(self, partition: Partition, position: Position) -> None:
        self._stir(partition)
        self._following[partition].announce(partition, position)

    def ack(self, partition: Partition, held_end: Offset) -> None:
        self._following[partition].ack(partition, held_end)

    def appended(self, partition: Partition) -> None:
        self._stir(partition)
        if self.events.on:
            self.events.appended(partition)
        self.syncer.appended(partition)

    def event(self, partition: Partition, effect: LeaderEffect | FollowerEffect) -> None:
        if self.events.on:
            self.events.effect(partition, effect)
        if isinstance(effect, TruncateTo | RestartAt) and effect.reason is TruncateReason.LOST:
            log.warning("%s: committed records are lost: %s", partition.partition, effect)
        else:
            log.debug("%s: %s", partition.partition, effect)

    # -- who follows whom -------------------------------------------------------------------------

    def role_changes(self, partition: Partition, leader: NodeId | None) -> None:
        """From now on it follows `leader`, or nobody; called before it takes the role."""
        former = self._following.pop(partition, None)
        if former is not None:
            former.remove(partition)
        if leader is not None:
            replicator = self._replicator(leader)
            replicator.add(partition)
            self._following[partition] = replicator

    def keep_ticking(self, partition: Partition, *, wanted: bool) -> None:
        """Only partitions with other replicas have anything that time changes."""
        if wanted:
            self._ticking[partition] = None
            self._stir(partition)
        else:
            self._ticking.pop(partition, None)
            self._restless.pop(partition, None)

    def forget(self, partition: Partition) -> None:
        self.role_changes(partition, None)
        self.keep_ticking(partition, wanted=False)
        self.syncer.forget(partition)
        if self.events.on:
            self.events.forget(partition)

    def _replicator(self, leader: NodeId) -> Replicator:
        replicator = self._replicators.get(leader)
        if replicator is None:
            replicator = self._replicators[leader] = Replicator(
                self._env, leader, self._address_of, self._hello, lambda: self._broker_epoch
            )
            self._start(leader)
        return replicator

    def _start(self, leader: NodeId) -> None:
        if self._tasks is not None and leader not in self._running:
            replicator = self._replicators[leader]
            self._running[leader] = self._tasks.create_task(
                replicator.run(), name=f"replicate from {leader}"
            )

    def _address_of(self, node_id: NodeId) -> Address | None:
        node = self._nodes.get(node_id)
        return None if node is None or node.fenced else node.registration.address

    def _stir(self, partition: Partition) -> None:
        if partition in self._ticking:
            self._restless[partition] = self._env.clock.monotonic_ms() + RESTLESS_MS

    async def _tick_forever(self) -> None:
        """Those that something has happened to each time, of the others a share each time."""
        for number in itertools.count():
            await asyncio.sleep(TICK_S)
            now_ms = self._env.clock.monotonic_ms()
            for partition, until_ms in list(self._restless.items()):
                partition.tick()
                if until_ms < now_ms:
                    self._restless.pop(partition, None)
            for partition in list(self._ticking)[number % REST_TICKS :: REST_TICKS]:
                if partition not in self._restless:
                    partition.tick()
