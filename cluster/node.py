"""One node: builds the roles it was asked for, starts them in order, stops them in reverse.

The order of a start: identity, server, controller, disks, registration, metadata, ready. The order
of a stop: leaders moved away, server, logs closed and marked clean, session dropped.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from suiro._proto import controller_pb2 as pb
from suiro._proto.common_pb2 import Hello, NodeAddress
from suiro.model.records import ShardKind
from suiro.version import PROTOCOL_MAX, PROTOCOL_MIN, SOFTWARE

from cluster.founding_desk import desk_of
from cluster.host.coordinator import RoleContext
from cluster.host.find_coordinator import FindCoordinator
from cluster.host.lease import Lease
from cluster.host.metadata_feed import MetadataFeed
from cluster.host.metrics_server import MetricsServer
from cluster.host.node_desk import NodeDesk
from cluster.host.node_session import NodeSession
from cluster.host.quorum_client import QuorumClient
from cluster.storage import load_identity

if TYPE_CHECKING:
    from suiro.model.ids import BrokerEpoch
    from suiro.model.image import ClusterImage, Delta
    from suiro.transport.api import Service

    from cluster.broker.broker import Broker
    from cluster.config import NodeConfig
    from cluster.controller_quorum.controller import Controller
    from cluster.host.env import Env

log = logging.getLogger("suiro.node")

INCARNATION_BYTES: Final = 16
SHUTDOWN_GRACE_S: Final = 5.0
DRAIN_S: Final = 0.5
"""For answers that are under way. Streams last for ever, and nobody has a leader here any more."""
LEASE_MARGIN_MS: Final = 200
"""What two clocks may drift apart during a session timeout, and a moment to act on it."""


class Coordinator(Protocol):
    """A coordinator role, as the node sees it."""

    def services(self) -> list[Service]: ...
    def on_image(self, image: ClusterImage) -> None: ...
    async def run(self) -> None: ...


class Node:
    """`await node.run()` serves until it is cancelled, then stops in order."""

    def __init__(self, config: NodeConfig, env: Env) -> None:
        self.config = config
        self.ready = asyncio.Event()
        self._env = env
        self._identity = load_identity(
            env.fs, config.data_dir, config.cluster_id or None, config.node_id
        )
        self._controller = self._make_controller()
        self._quorum = QuorumClient(env, config.controllers or (config.advertised,))
        self._lease = Lease(LEASE_MARGIN_MS)
        self._broker = self._make_broker()
        self._feed = MetadataFeed(env, self._quorum, self._hello(), self._on_delta)
        self._coordinators = self._make_coordinators()
        self._server = env.make_server(self._services())
        self._metrics_server = MetricsServer(env.metrics.render, self.ready.is_set)

    async def run(self) -> None:
        config = self.config
        port = await self._server.start(config.listen)
        log.info("node %d listens on %s", config.node_id, replace(config.listen, port=port))
        try:
            await self._serve_metrics()
            async with asyncio.TaskGroup() as tasks:
                if self._controller is not None:
                    tasks.create_task(self._controller.run(), name="controller")
                if self._broker is not None or self._coordinators:
                    await self._run_member(tasks, port)
                elif self._controller is not None:
                    await self._controller.caught_up()
                    await self._serve()
        finally:
            await self._server.stop(0)
            await self._metrics_server.stop()
            await self._env.transport.close()

    async def _serve_metrics(self) -> None:
        config = self.config
        if config.metrics_port is not None:
            wanted = replace(config.listen, port=config.metrics_port)
            port = await self._metrics_server.start(wanted)
            log.info("metrics are at http://%s/metrics", replace(wanted, port=port))

    async def _serve(self) -> None:
        """Ready, until cancelled."""
        await self._server.set_serving(True)
        log.info("node %d is ready", self.config.node_id)
        self.ready.set()
        await asyncio.Event().wait()

    async def _run_member(self, tasks: asyncio.TaskGroup, port: int) -> None:
        """Everything but a controller lives under the quorum's eyes."""
        broker = self._broker
        former_epoch = None if broker is None else await broker.open()
        session = NodeSession(
            self._env,
            self._quorum,
            self._registration(former_epoch, port),
            session_timeout_ms=self.config.session_timeout_ms,
            image_index=lambda: self._feed.index,
            on_notice=self._on_notice,
        )
        stopped_cleanly = False
        calling = tasks.create_task(self._quorum.run(), name="calls of the quorum")
        try:
            index = await session.register()
            if broker is not None:
                lost = session.lost_directories
                broker.registered(session.broker_epoch, lost_directories=bool(lost))
            log.info("registered with broker epoch %d", session.broker_epoch)
            feeding = tasks.create_task(self._feed.run(), name="metadata feed")
            await self._feed.reached(index)
            if broker is not None:
                await broker.say_what_is_offline()
            session.announce(ready=True)
            holding = tasks.create_task(session.run(), name="session")
            working = [tasks.create_task(c.run(), name="shards") for c in self._coordinators]
            if broker is not None:
                working.append(tasks.create_task(broker.run(), name="broker"))
            await self._unfenced()
            await self._in_sync()
            try:
                await self._serve()
            except asyncio.CancelledError:
                await self._leave(session)
                stopped_cleanly = True
                raise
            finally:
                for task in (calling, feeding, holding, *working):
                    task.cancel()
        finally:
            await self._server.set_serving(False)
            await self._server.stop(DRAIN_S if stopped_cleanly else 0)
            if broker is not None:
                await broker.close(session.broker_epoch if stopped_cleanly else None)

    async def _leave(self, session: NodeSession) -> None:
        """Ask for our leaders to be moved; go when that is done, or when nobody answers."""
        log.info("stopping: moving leaders away")
        session.announce(want_shutdown=True)
        try:
            async with asyncio.timeout(SHUTDOWN_GRACE_S):
                await session.may_shut_down.wait()
        except TimeoutError:
            log.warning("the quorum did not answer in time; stopping anyway")

    async def _unfenced(self) -> None:
        node_id = self.config.node_id
        while (node := self._feed.image.nodes.get(node_id)) is None or node.fenced:
            await self._feed.changed()

    async def _in_sync(self) -> None:
        """Ready is who has caught up: whoever restarts the nodes in turn may go on then (L2)."""
        while self._broker is not None and self._broker.is_catching_up:
            await self._feed.changed()

    async def _on_delta(self, image: ClusterImage, delta: Delta, index: int) -> None:
        if self._broker is not None:
            await self._broker.on_delta(image, delta)
        for coordinator in self._coordinators:
            coordinator.on_image(image)
        self._lease.on_image(index)

    def _on_notice(self, notice: pb.NodeNotice, sent_ms: float) -> None:
        """The quorum has answered the heartbeat that was sent then."""
        if notice.fenced and self._env.events.on:
            self._env.events.emit("fenced", committed_index=notice.committed_index)
        self._lease.on_notice(
            sent_ms=int(sent_ms),
            session_timeout_ms=notice.session_timeout_ms,
            committed_index=notice.committed_index,
            fenced=notice.fenced,
        )

    # A role's code is imported where the role runs: a coordinator starts in half of the time.

    def _make_controller(self) -> Controller | None:
        if "controller" not in self.config.roles:
            return None
        from cluster.controller_quorum.controller import Controller

        return Controller(self.config, self._identity, self._env)

    def _make_broker(self) -> Broker | None:
        if "broker" not in self.config.roles:
            return None
        from cluster.broker.broker import Broker

        return Broker(self.config, self._hello(), self._env, self._quorum, self._lease)

    def _make_coordinators(self) -> list[Coordinator]:
        config = self.config
        context = RoleContext(
            self._env,
            config.node_id,
            self._identity.cluster_id,
            self._lease,
            self._quorum,
            self._feed,
            {
                ShardKind.GROUP: config.offsets_partitions,
                ShardKind.TXN: config.transactions_partitions,
            },
            config.internal_replication_factor,
            config.metrics_port is not None,
        )
        made: list[Coordinator] = []
        if "group" in config.roles:
            from cluster.groupcoord.coordinator import GroupCoordinator

            made.append(GroupCoordinator(context))
        if "txn" in config.roles:
            from cluster.txncoord.coordinator import TxnCoordinator

            made.append(TxnCoordinator(context))
        return made

    def _services(self) -> list[Service]:
        services: list[Service] = [
            NodeDesk(
                self._env,
                self._identity.cluster_id,
                self.config.node_id,
                self.config.roles,
                self.ready.is_set,
            )
        ]
        if self._controller is not None:
            services += self._controller.services()
            services.append(desk_of(self._env.fs, self.config.data_dir, self._identity))
        if self._broker is not None:
            services += self._broker.services(self._feed, with_admin=self._controller is None)
        for coordinator in self._coordinators:
            services += coordinator.services()
        if self._broker is not None or self._coordinators:
            services.append(FindCoordinator(self._feed))
        return services

    def _hello(self) -> Hello:
        return Hello(
            protocol_min=PROTOCOL_MIN,
            protocol_max=PROTOCOL_MAX,
            software=SOFTWARE,
            cluster_id=self._identity.cluster_id,
            node_id=self.config.node_id,
        )

    def _registration(self, former: BrokerEpoch | None, port: int) -> pb.RegisterNodeRequest:
        config = self.config
        advertised = config.advertised
        return pb.RegisterNodeRequest(
            hello=self._hello(),
            incarnation=self._env.rng.randbytes(INCARNATION_BYTES),
            roles=[role for role in config.roles if role != "controller"],
            address=NodeAddress(
                node_id=config.node_id,
                host=advertised.host,
                port=advertised.port or port,
                rack=config.rack,
            ),
            clean_shutdown=former is not None,
            former_broker_epoch=-1 if former is None else former,
            log_directories=() if self._broker is None else self._broker.log_directories,
        )
