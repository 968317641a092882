"""A member's session with its coordinator: carries out what `Membership` wants.

What concerns the application (`Assign`, `Revoke`, `Lost`, `Fail`) is handed to `on_event`;
everything else goes on in the background, so that a slow handler keeps its partitions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from suiro.assignor import group_to_assign
from suiro.cancellation import heed_cancellation
from suiro.membership import Assign, Compute, Connect, Fail, Lost, Revoke, Say
from suiro.model.error_base import SuiroError
from suiro.retry import Backoff
from suiro.transport.methods import GroupCoordinatorMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from suiro._proto import groupcoord_pb2 as pb
    from suiro.aio.coordinators import Coordinators
    from suiro.assignor import Assignor
    from suiro.connection import Connection
    from suiro.membership import Intention, Membership
    from suiro.model.ids import Address, TopicPartition
    from suiro.transport.api import Stream

    Event = Assign | Revoke | Lost | Fail
    SessionStream = Stream[pb.MemberMessage, pb.MemberNotice]

log = logging.getLogger("suiro.client")

FIND_TIMEOUT_S = 10.0
LOOK_S_MAX = 0.5
"""How long the clock is not looked at, at most."""


class GroupSession:
    """`run` is a task of the consumer; `leave` ends it in order."""

    def __init__(
        self,
        connection: Connection,
        coordinators: Coordinators,
        membership: Membership,
        *,
        on_event: Callable[[Event], None],
        assignors: Mapping[str, Assignor],
    ) -> None:
        self.membership = membership
        self._connection = connection
        self._coordinators = coordinators
        self._on_event = on_event
        self._assignors = assignors
        self._loop = asyncio.get_running_loop()
        self._outgoing: deque[pb.MemberMessage] = deque()
        self._to_send = asyncio.Event()
        self._hang_up = asyncio.Event()
        self._sent_all = asyncio.Event()
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        self._carry_out(self.membership.start(self._now_ms()))
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self._watch_the_clock(), name="group heartbeat")
            await self._stay_connected()
            watching.cancel()

    def given_up(self, partitions: Iterable[TopicPartition]) -> None:
        """The application has let go of these."""
        self._carry_out(self.membership.on_given_up(partitions, self._now_ms()))

    def subscribe(self, topics: tuple[str, ...], pattern: str) -> None:
        self._carry_out(self.membership.subscribe(topics, pattern, self._now_ms()))

    @property
    def has_overslept(self) -> bool:
        """Whether the session ran out while this process stood still; in whatever thread."""
        return self.membership.is_over(self._now_ms())

    def wake_up(self) -> None:
        self._carry_out(self.membership.on_time(self._now_ms()))

    def on_progress(self) -> None:
        """The application polls; in whatever thread it does."""
        self.membership.on_progress(self._now_ms())
        if self.membership.is_parked:
            self._loop.call_soon_threadsafe(self._come_back)

    def _come_back(self) -> None:
        self._carry_out(self.membership.come_back())
        self._wanted.set()

    async def leave(self, reason: str, timeout_s: float) -> None:
        """Say goodbye, so that others take over at once; not heard, the session runs out."""
        self._sent_all.clear()
        self._carry_out(self.membership.leave(reason, self._now_ms()))
        if self._outgoing:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._sent_all.wait()
            except TimeoutError:
                log.info("the group was not told that this member leaves")
        self._hang_up.set()
        self._wanted.set()

    # -- the stream -------------------------------------------------------------------------------

    async def _stay_connected(self) -> None:
        backoff = Backoff(self._connection.rng)
        while not self.membership.has_ended:
            self._hang_up.clear()
            try:
                await self._converse(backoff)
            except* SuiroError as errors:
                log.debug("the session of a group broke: %s", errors.exceptions[0])
            heed_cancellation()
            self._coordinators.forget(self.membership.config.group)
            self._carry_out(self.membership.on_disconnected())
            if self.membership.is_parked:
                self._wanted.clear()
                await self._wanted.wait()
            elif not self.membership.has_ended:
                await asyncio.sleep(backoff.next_s())

    async def _converse(self, backoff: Backoff) -> None:
        group = self.membership.config.group
        address = await self._coordinators.owner(group, timeout_s=FIND_TIMEOUT_S)
        method = GroupCoordinatorMethods.SESSION
        stream = await self._connection.transport.open(address, method)
        self._outgoing.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                working = [
                    tasks.create_task(self._send(stream), name="group session out"),
                    tasks.create_task(self._receive(stream, backoff), name="group session in"),
                ]
                working.append(tasks.create_task(self._watch(address), name="group owner"))
                self._carry_out(self.membership.on_connected(self._now_ms()))
                await self._hang_up.wait()
                for task in working:
                    task.cancel()
        finally:
            stream.cancel()

    async def _send(self, stream: SessionStream) -> None:
        is_first = True
        while True:
            while self._outgoing:
                message = self._outgoing[0]
                if is_first:
                    message.hello.CopyFrom(self._connection.hello())
                    is_first = False
                await stream.send(message)
                self._outgoing.popleft()
            self._sent_all.set()
            self._to_send.clear()
            await self._to_send.wait()

    async def _receive(self, stream: SessionStream, backoff: Backoff) -> None:
        while (notice := await stream.receive()) is not None:
            if not notice.error.code:
                backoff.reset()
            self._carry_out(self.membership.on_notice(notice, self._now_ms()))
        self._hang_up.set()

    async def _watch(self, address: Address) -> None:
        """Leave a coordinator that does not answer as soon as there is another one."""
        while True:
            await asyncio.sleep(self.membership.patience_ms / 1000)
            if self.membership.is_kept_waiting(self._now_ms()):
                group = self.membership.config.group
                self._coordinators.forget(group)
                if await self._coordinators.owner(group, timeout_s=FIND_TIMEOUT_S) != address:
                    self._hang_up.set()

    async def _watch_the_clock(self) -> None:
        while True:
            wait_s = (self.membership.next_deadline_ms() - self._now_ms()) / 1000
            await asyncio.sleep(min(max(wait_s, 0.001), LOOK_S_MAX))
            if self._now_ms() >= self.membership.next_deadline_ms():
                self.wake_up()

    # -- intentions -------------------------------------------------------------------------------

    def _carry_out(self, intentions: Iterable[Intention]) -> None:
        for intention in intentions:
            match intention:
                case Say(message):
                    self._outgoing.append(message)
                    self._to_send.set()
                case Connect():
                    self._hang_up.set()
                case Compute(request):
                    self._compute(request)
                case _:
                    self._on_event(intention)

    def _compute(self, request: pb.ComputeAssignment) -> None:
        """Run the user's assignor; one that fails is logged, and the coordinator goes on without
        it after a while.
        """
        try:
            assignment = self._assignors[request.assignor](group_to_assign(request))
        except Exception:
            log.exception("the assignor %r failed", request.assignor)
            return
        self._carry_out(
            self.membership.on_computed(request.group_epoch, assignment, self._now_ms())
        )

    def _now_ms(self) -> float:
        return self._loop.time() * 1000
