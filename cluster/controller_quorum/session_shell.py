"""The nodes' life lines at the active controller: registrations, session streams, fencing.

`Sessions` says who is due to be fenced; this feeds it with what the streams and the clock say, and
has the machine decide. A heartbeat is answered by the machine like any other request, so a
controller that has lost the quorum extends nobody's lease.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from suiro._proto import controller_pb2 as pb
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest
from suiro.model.ids import BrokerEpoch, NodeId
from suiro.model.limits import PARTITIONS_PER_DECISION_MAX as STEP
from suiro.model.records import ConfigResource

from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import Heartbeat
from cluster.controller_quorum.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.ids import Address
    from suiro.model.image import ClusterImage
    from suiro.model.records import PartitionId
    from suiro.transport.api import Stream

    from cluster.controller_quorum.controller import Controller
    from cluster.controller_quorum.metadata_requests import Registered, Registration, Standing
    from cluster.host.machine import Decision

    Step = Callable[[MetadataMachine, NodeId, BrokerEpoch, list[PartitionId]], Decision[int]]

log = logging.getLogger("suiro.quorum")

CHECK_S: Final = 0.05
"""How often the sessions are looked at."""

LOOK_TIMEOUT_S: Final = 0.15
"""Whether nobody listens is known at once, or not at all."""

OVERSLEPT_MS: Final = 250.0
"""A check that comes so late means that this process stood still: then silence proves nothing."""


class SessionKeeper:
    """All sessions of one reign after another."""

    def __init__(self, controller: Controller, timeout_ms: int) -> None:
        self._controller = controller
        self._clock = controller.env.clock
        self._timeout_ms = timeout_ms
        self._sessions = Sessions(timeout_ms)
        self._streams = 0
        self._begun_at = 0
        self._registered_at: dict[tuple[NodeId, BrokerEpoch], int] = {}

    def begin(self, image: ClusterImage, index: int) -> None:
        """This controller leads from now on; everything up to `index` was decided before."""
        self._begun_at = index
        self._registered_at.clear()
        self._obey(image)
        alive = [(node.id, node.broker_epoch) for node in image.nodes.values() if not node.fenced]
        self._sessions.restart(alive, self._clock.monotonic_ms())

    async def register(self, node: Registration) -> tuple[Registered, int]:
        """Let a node in; also the index that its image must reach before it serves."""
        alive = self._sessions.is_alive(node.node_id, self._clock.monotonic_ms())
        registered = await self._controller.decide(
            lambda machine: machine.decide_register(node, session_alive=alive)
        )
        index = self._controller.driver.end - 1
        key = (node.node_id, registered.broker_epoch)
        if key not in self._registered_at:
            self._registered_at[key] = index
            self._sessions.on_registered(*key, self._clock.monotonic_ms())
        return registered, index

    async def hold(self, stream: Stream[Any, Any]) -> None:
        """One session stream, until it breaks, or until this controller leads no more."""
        first = await stream.receive()
        if first is None:
            raise InvalidRequest("a session begins with a heartbeat")
        node_id, broker_epoch = NodeId(first.node_id), BrokerEpoch(first.broker_epoch)
        self._streams += 1
        number = self._streams
        heartbeat: pb.NodeHeartbeat | None = first
        told: dict[NodeId, Address] = {}
        try:
            while heartbeat is not None:
                self._sessions.on_heard(node_id, broker_epoch, self._clock.monotonic_ms())
                notice = await self._answer(heartbeat)
                # Only now: the answer shows that this incarnation is the one that counts. And each
                # time: the session is gone if the node was fenced for its silence meanwhile.
                now_ms = self._clock.monotonic_ms()
                self._sessions.on_opened(node_id, broker_epoch, number, now_ms)
                if told != (now := self._controller.quorum_addresses()):
                    told = now
                    notice.controllers.extend(
                        NodeAddress(node_id=node, host=address.host, port=address.port)
                        for node, address in now.items()
                    )
                await stream.send(notice)
                heartbeat = await stream.receive()
        finally:
            self._sessions.on_broken(node_id, broker_epoch, number)

    async def _answer(self, heartbeat: pb.NodeHeartbeat) -> pb.NodeNotice:
        key = (NodeId(heartbeat.node_id), BrokerEpoch(heartbeat.broker_epoch))
        required = self._registered_at.get(key, self._begun_at)
        heard = Heartbeat(
            *key,
            ready=heartbeat.ready and heartbeat.image_index >= required,
            want_shutdown=heartbeat.want_shutdown,
        )
        if heard.want_shutdown:
            await self._evacuate(key, is_heard=True)
        standing: Standing = await self._controller.decide(
            lambda machine: machine.decide_heartbeat(heard)
        )
        if not standing.fenced and not heard.want_shutdown:
            await self._lead_again(key)
        return pb.NodeNotice(
            fenced=standing.fenced,
            may_shut_down=standing.may_shut_down,
            session_timeout_ms=int(self._sessions.timeout_ms),
            committed_index=self._controller.driver.end - 1,
        )

    async def fence_forever(self) -> None:
        """Fence whose session is over."""
        due_ms = self._clock.monotonic_ms()
        while True:
            now_ms = self._clock.monotonic_ms()
            image = self._controller.replica.machine.image
            if now_ms - due_ms > OVERSLEPT_MS:
                self._excuse(image, now_ms)
            self._obey(image)
            await asyncio.gather(*(self._look(image, key) for key in self._sessions.broken()))
            for node_id, broker_epoch in self._sessions.due(now_ms):
                await self._fence(node_id, broker_epoch)
            due_ms = self._clock.monotonic_ms() + CHECK_S * 1000
            await asyncio.sleep(CHECK_S)

    async def _look(self, image: ClusterImage, key: tuple[NodeId, BrokerEpoch]) -> None:
        """Is a node whose stream broke gone? Only its own machine can say so."""
        node = image.nodes.get(key[0])
        if node is None:
            return
        address = node.registration.address
        if await self._controller.env.transport.refuses(address, timeout_s=LOOK_TIMEOUT_S):
            self._sessions.on_dead(*key)

    async def _fence(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> None:
        try:
            await self._evacuate((node_id, broker_epoch), is_heard=False)
            await self._controller.decide(
                lambda machine: machine.decide_fence(node_id, broker_epoch)
            )
        except SuiroError as error:
            log.info("node %s was not fenced: %s", node_id, error)
            if error.retriable:
                return
        else:
            log.warning("fenced node %s (broker epoch %s)", node_id, broker_epoch)
        self._sessions.forget(node_id, broker_epoch)

    async def _evacuate(self, key: tuple[NodeId, BrokerEpoch], *, is_heard: bool) -> None:
        """Before a node is let go: what it leads first, as nobody can write there meanwhile."""
        image = self._controller.replica.machine.image
        leads, holds = image.leaders_on(key[0]), image.replicas_on(key[0])
        if len(holds) > STEP:
            partitions = [*sorted(leads), *sorted(holds - leads)]
            step = MetadataMachine.decide_evacuate
            await self._in_steps(step, key, partitions, is_heard=is_heard)

    async def _lead_again(self, key: tuple[NodeId, BrokerEpoch]) -> None:
        image = self._controller.replica.machine.image
        leaderless = image.leaderless & image.replicas_on(key[0])
        if leaderless:
            step = MetadataMachine.decide_lead_again
            await self._in_steps(step, key, sorted(leaderless), is_heard=True)

    async def _in_steps(
        self,
        decide: Step,
        key: tuple[NodeId, BrokerEpoch],
        partitions: list[PartitionId],
        *,
        is_heard: bool,
    ) -> None:
        """One decision on tens of thousands would hold the loop for longer than an election
        timeout, and this controller would lead no more. `is_heard`: it is done for a heartbeat, and
        those that wait behind it are not to count as silence.
        """
        for start in range(0, len(partitions), STEP):
            some = partitions[start : start + STEP]
            await self._controller.decide(
                lambda machine, some=some: decide(machine, *key, some)  # type: ignore[misc]
            )
            if is_heard:
                self._sessions.on_heard(*key, self._clock.monotonic_ms())

    def _excuse(self, image: ClusterImage, now_ms: float) -> None:
        for node in image.nodes.values():
            self._sessions.on_heard(node.id, node.broker_epoch, now_ms)

    def _obey(self, image: ClusterImage) -> None:
        """The cluster's settings, where they are set, go before the node's own."""
        configs = image.configs(ConfigResource.CLUSTER)
        self._sessions.timeout_ms = float(
            configs.get("broker.session.timeout.ms", self._timeout_ms)
        )
