"""A node's registration with the quorum, and the session that keeps it alive.

Every answered heartbeat is handed on with the time at which it was sent: roles that act for the
cluster only while the quorum counts on them (see `lease`) go by that.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from suiro._proto import controller_pb2 as pb
from suiro.cancellation import heed_cancellation
from suiro.model.error_base import SuiroError
from suiro.model.errors import DuplicateNode, StaleBrokerEpoch, Unavailable
from suiro.model.ids import Address, BrokerEpoch
from suiro.retry import Backoff
from suiro.transport.methods import ControllerMethods

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.transport.api import Stream

    from cluster.host.env import Env
    from cluster.host.quorum_client import QuorumClient

    SessionStream = Stream[pb.NodeHeartbeat, pb.NodeNotice]

log = logging.getLogger("suiro.node")

REGISTER_TIMEOUT_S: Final = 60.0
HEARTBEATS_PER_TIMEOUT: Final = 6


class NodeSession:
    """`register` first, then `run` as a task of the node."""

    def __init__(
        self,
        env: Env,
        quorum: QuorumClient,
        registration: pb.RegisterNodeRequest,
        *,
        session_timeout_ms: int,
        image_index: Callable[[], int],
        on_notice: Callable[[pb.NodeNotice, float], None],
    ) -> None:
        """`on_notice` is told of every answer, with the time of the heartbeat that it answers."""
        self.broker_epoch = BrokerEpoch(-1)
        self.ready = False
        self.want_shutdown = False
        self.may_shut_down = asyncio.Event()
        self.fenced = True
        self.lost_directories: tuple[str, ...] = ()
        """Of the log directories that the quorum knew of, those that were not registered again."""
        self._env = env
        self._quorum = quorum
        self._registration = registration
        self._timeout_ms = session_timeout_ms
        self._image_index = image_index
        self._on_notice = on_notice
        self._hurry = asyncio.Event()

    async def register(self) -> int:
        """Announce this incarnation; the index that the image must reach before it serves.

        A node that has moved to another address may find its former self still counted as alive;
        that lasts a session at most, so a refusal after that is another node with our id.
        """
        backoff = Backoff(self._env.rng)
        give_up_ms = self._env.clock.monotonic_ms() + 2 * self._timeout_ms
        while True:
            try:
                reply = await self._quorum.call(
                    ControllerMethods.REGISTER_NODE,
                    self._registration,
                    timeout_s=REGISTER_TIMEOUT_S,
                )
            except DuplicateNode:
                if self._env.clock.monotonic_ms() >= give_up_ms:
                    raise
            else:
                self.broker_epoch = BrokerEpoch(reply.broker_epoch)
                self.lost_directories = tuple(reply.lost_directories)
                return int(reply.registered_at_index)
            await asyncio.sleep(backoff.next_s())

    def announce(self, *, ready: bool | None = None, want_shutdown: bool | None = None) -> None:
        """Say it with the next heartbeat, which leaves at once."""
        self.ready = self.ready if ready is None else ready
        self.want_shutdown = self.want_shutdown if want_shutdown is None else want_shutdown
        self._hurry.set()

    async def run(self) -> None:
        backoff = Backoff(self._env.rng)
        while True:
            try:
                await self._hold(backoff)
            except* StaleBrokerEpoch:
                # The quorum has forgotten this incarnation or replaced it. Nothing that this
                # process believes can be trusted: end, and let its supervisor start it anew.
                raise
            except* SuiroError as errors:
                log.debug("the session with the quorum broke: %s", errors.exceptions[0])
            heed_cancellation()
            await asyncio.sleep(backoff.next_s())

    async def _hold(self, backoff: Backoff) -> None:
        address, stream = await self._quorum.open(ControllerMethods.NODE_SESSION)
        sent_ms: deque[float] = deque()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._send(stream, sent_ms), name="heartbeats")
                while (notice := await stream.receive()) is not None:
                    backoff.reset()
                    self._heard(notice, sent_ms.popleft())
                raise Unavailable("the controller ended the session")
        except* SuiroError as errors:
            first = errors.exceptions[0]
            assert isinstance(first, SuiroError)
            self._quorum.leave(address, first)
            raise
        finally:
            stream.cancel()

    async def _send(self, stream: SessionStream, sent_ms: deque[float]) -> None:
        while True:
            self._hurry.clear()
            sent_ms.append(self._env.clock.monotonic_ms())
            await stream.send(
                pb.NodeHeartbeat(
                    node_id=self._registration.address.node_id,
                    broker_epoch=self.broker_epoch,
                    image_index=self._image_index(),
                    want_shutdown=self.want_shutdown,
                    ready=self.ready,
                )
            )
            try:
                async with asyncio.timeout(self._timeout_ms / HEARTBEATS_PER_TIMEOUT / 1000):
                    await self._hurry.wait()
            except TimeoutError:
                continue  # time for the next heartbeat

    def _heard(self, notice: pb.NodeNotice, sent_at_ms: float) -> None:
        if notice.session_timeout_ms:
            self._timeout_ms = notice.session_timeout_ms
        if notice.controllers:
            self._quorum.learn([Address(told.host, told.port) for told in notice.controllers])
        self._on_notice(notice, sent_at_ms)
        if notice.fenced and not self.fenced:
            log.warning("fenced by the quorum: this node stops serving until it is back in touch")
        self.fenced = notice.fenced
        if notice.may_shut_down:
            self.may_shut_down.set()
