"""What a group coordinator does with its shards: machines, deadlines, and whom to tell of changes.

`Shards` owns the plumbing: it claims a shard, replays it, serves its machine. This is the part that
knows about groups. A push is best effort: a member whose push got lost learns the same from the
answer to its next heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from suiro.model.error_base import SuiroError
from suiro.model.records import ShardKind

from cluster.groupcoord.codec import decode, encode
from cluster.groupcoord.machine import GroupMachine
from cluster.groupcoord.requests import Fenced, Notify
from cluster.groupcoord.subscriptions import TopicFact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from suiro.model.image import ClusterImage

    from cluster.groupcoord.records import GroupRecord
    from cluster.host.clock import Clock
    from cluster.host.machine import Decision
    from cluster.host.shard_log import Keyed
    from cluster.host.shards import Shard

log = logging.getLogger("suiro.group")

R = TypeVar("R")

STOOD_STILL_MS: Final = 500.0
"""A deadline that is missed by so much means that this process did not run."""

IDLE_S: Final = 60.0
AGAIN_S: Final = 0.1


class Session:
    """One open session stream: what the coordinator has to tell the member on its own account."""

    def __init__(self) -> None:
        self.has_news = asyncio.Event()
        self.error: SuiroError | None = None

    def tell(self, error: SuiroError | None = None) -> None:
        """Its standing has changed; or, with an error, it is out."""
        self.error = self.error or error
        self.has_news.set()


class GroupProgram:
    """The `Program` of group shards, and the sessions that are open on this node."""

    kind = ShardKind.GROUP

    def __init__(self, clock: Clock, offsets_retention_ms: Callable[[], int]) -> None:
        self._clock = clock
        self._offsets_retention_ms = offsets_retention_ms
        self._topics: Mapping[str, TopicFact] | None = None
        self._sessions: dict[tuple[str, str], Session] = {}
        self._woken: dict[int, asyncio.Event] = {}

    def on_image(self, image: ClusterImage) -> None:
        """The metadata have changed; told before the first shard is served."""
        topics = {
            topic.name: TopicFact(topic.id, len(topic.partitions))
            for topic in image.topics.values()
        }
        if topics != self._topics:
            self._topics = topics
            for woken in self._woken.values():
                woken.set()

    # -- for Shards -------------------------------------------------------------------------------

    def new_machine(self, _shard: int) -> GroupMachine:
        return GroupMachine(offsets_retention_ms=self._offsets_retention_ms())

    def encode(self, record: GroupRecord) -> Keyed:
        return encode(record)

    def decode(self, key: bytes, value: bytes | None) -> GroupRecord:
        return decode(key, value)

    def perform(self, _shard: Shard[GroupMachine], effect: Any) -> None:
        match effect:
            case Notify(group, member_id):
                session, error = self._sessions.get((group, member_id)), None
            case Fenced(group, member_id, error):
                session = self._sessions.get((group, member_id))
                log.info("%s: %s", group, error)
            case _:
                raise AssertionError(f"no group decides {effect!r}")
        if session is not None:
            session.tell(error)

    async def tend(self, shard: Shard[GroupMachine]) -> None:
        """See to the deadlines of a shard while it is served."""
        woken = self._woken[shard.index] = asyncio.Event()
        try:
            while True:
                try:
                    await self._tend_once(shard, woken)
                except SuiroError as error:  # too busy, or over; then this task is cancelled
                    log.debug("shard %s: %s", shard.index, error)
                    await asyncio.sleep(AGAIN_S)
        finally:
            if self._woken.get(shard.index) is woken:
                del self._woken[shard.index]

    async def _tend_once(self, shard: Shard[GroupMachine], woken: asyncio.Event) -> None:
        woken.clear()
        due_ms = await shard.host.read(self._look)
        wait_s = IDLE_S if due_ms is None else (due_ms - self._clock.monotonic_ms()) / 1000
        if wait_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await woken.wait()
                    return
        now_ms = self._clock.monotonic_ms()
        if due_ms is not None and now_ms - due_ms > STOOD_STILL_MS:
            await shard.host.read(lambda machine: machine.on_stood_still(now_ms))
        wall_ms = self._clock.now_ms()
        await shard.host.decide(lambda machine: machine.decide_expire(now_ms, wall_ms))
        await shard.host.read(lambda machine: machine.on_swept(now_ms))

    def _look(self, machine: GroupMachine) -> float | None:
        """The next deadline of a machine, which is told of the topics if it does not know them."""
        if self._topics is not None and machine.topics.by_name != self._topics:
            machine.on_topics(self._topics)
        return machine.next_deadline_ms(self._clock.monotonic_ms())

    # -- for the service --------------------------------------------------------------------------

    async def decide(
        self, shard: Shard[GroupMachine], choose: Callable[[GroupMachine], Decision[R]]
    ) -> R:
        """As the host does; whoever waits for deadlines looks again if something was written."""
        wrote = False

        def watched(machine: GroupMachine) -> Decision[R]:
            nonlocal wrote
            decision = choose(machine)
            wrote = bool(decision.records)
            return decision

        try:
            return await shard.host.decide(watched)
        finally:
            if wrote:
                self.wake(shard)

    def wake(self, shard: Shard[GroupMachine]) -> None:
        if shard.index in self._woken:
            self._woken[shard.index].set()

    def open_session(self, group: str, member_id: str) -> Session:
        """A new stream of the member; an earlier one is not told anything more."""
        session = self._sessions[group, member_id] = Session()
        return session

    def close_session(self, group: str, member_id: str, session: Session) -> bool:
        """The stream is over; says whether the member is without one now.

        The machine cannot know: its terms are shorter than streams, and it is told of a stream by
        what is said on it.
        """
        if self._sessions.get((group, member_id)) is not session:
            return False
        del self._sessions[group, member_id]
        return True
