"""A consumer as a member of its group: what it was given, what it has committed.

The session runs in the background and queues what concerns the application; the consumer takes
these events one by one when it polls, so that nothing is taken away in the middle of a batch.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from suiro.aio import coordinators
from suiro.aio.group_offsets import GroupOffsets, OffsetAndMetadata
from suiro.aio.group_session import GroupSession
from suiro.aio.tasks import TaskScope
from suiro.membership import Fail, MemberConfig, Membership
from suiro.model.error_base import SuiroError
from suiro.model.error_registry import error_from_wire
from suiro.model.errors import InvalidRequest, NoPosition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from suiro.aio.fetcher import Fetcher
    from suiro.aio.group_session import Assignor
    from suiro.connection import Connection
    from suiro.membership import Assign, Lost, Revoke
    from suiro.model.ids import TopicPartition
    from suiro.settings import ConsumerSettings

log = logging.getLogger("suiro.client")

MEMBER_ID_BYTES = 8
GIVE_UP_TIMEOUT_S = 5.0


class GroupMember:
    """Made by a consumer that has a `group_id`; it may commit without ever subscribing."""

    def __init__(
        self,
        connection: Connection,
        fetcher: Fetcher,
        settings: ConsumerSettings,
        on_event: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._fetcher = fetcher
        self._settings = settings
        self._on_event = on_event
        self._coordinators = coordinators.groups(connection)
        self.offsets = GroupOffsets(connection, self._coordinators, settings.group_id)
        self.assignors: dict[str, Assignor] = {}
        self._session: GroupSession | None = None
        self._scope = TaskScope("group member")
        self._loop = asyncio.get_running_loop()
        self._committed_s = self._loop.time()
        self._is_committing = False

    # -- membership -------------------------------------------------------------------------------

    def subscribe(self, topics: tuple[str, ...], pattern: str) -> None:
        """Join, or change what is wanted."""
        if self._session is not None:
            self._session.subscribe(topics, pattern)
            return
        settings = self._settings
        stuck_ms = settings.max_poll_interval_ms
        config = MemberConfig(
            group=settings.group_id,
            topics=topics,
            pattern=pattern,
            assignors=(*self.assignors, *settings.assignors),
            instance_id=settings.group_instance_id,
            rack=settings.client_rack,
            session_timeout_ms=int(settings.session_timeout_ms),
            rebalance_timeout_ms=int(settings.rebalance_timeout_ms),
            heartbeat_interval_ms=int(settings.heartbeat_interval_ms),
            processing_timeout_ms=None if stuck_ms is None else int(stuck_ms),
        )
        self._session = GroupSession(
            self._connection,
            self._coordinators,
            Membership(config, self._new_id),
            on_event=self._on_event,
            assignors=self.assignors,
        )
        self._scope.start(self._session.run(), "session")

    def _new_id(self) -> str:
        dice = self._connection.rng.randbytes(MEMBER_ID_BYTES)
        return f"{self._settings.client_id}-{dice.hex()}"

    @property
    def has_joined(self) -> bool:
        return self._session is not None

    @property
    def has_events(self) -> bool:
        return self._session is not None and bool(self._session.events)

    def on_progress(self) -> None:
        """The application polls: it is alive."""
        if self._session is not None:
            self._session.on_progress()

    def next_event(self) -> Assign | Revoke | Lost | None:
        """What to deal with first; raises if the group has thrown this member out for good."""
        if self._session is None or not self._session.events:
            return None
        event = self._session.events.popleft()
        if isinstance(event, Fail):
            raise error_from_wire(event.code, event.message, {})
        return event

    async def assigned(self, event: Assign, left_s: float) -> bool:
        """Begin to read where the group is; False if that took too long, and will be tried again.

        Raises NoPosition where the group has no offset and `auto_offset_reset` is 'none'.
        """
        assert self._session is not None
        try:
            async with asyncio.timeout(left_s):
                await self._begin(event.partitions)
        except TimeoutError:
            self._session.events.appendleft(event)
            return False
        return True

    async def _begin(self, partitions: Iterable[TopicPartition]) -> None:
        timeout_s = self._settings.request_timeout_ms / 1000
        topics = {partition.topic for partition in partitions}
        await self._connection.refresh(topics, timeout_s=timeout_s, must_exist=True)
        committed = await self.offsets.fetch(
            partitions,
            require_stable=self._settings.isolation == "read_committed",
            timeout_s=timeout_s,
        )
        self._fetcher.add(partitions)
        self._seek(committed)
        await self._fetcher.locate(partitions)

    async def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on where the group is, in those of them where it has been."""
        wanted = list(partitions)
        if wanted:
            timeout_s = self._settings.request_timeout_ms / 1000
            self._seek(await self.offsets.fetch(wanted, timeout_s=timeout_s))

    def _seek(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for partition, at in offsets.items():
            self._fetcher.seek(partition, at.offset, at.leader_epoch, is_reset=False)

    async def give_up(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit, if that is automatic, and let go. What could not be committed is read again by
        the next owner.
        """
        assert self._session is not None
        if self._settings.enable_auto_commit:
            await self._commit_quietly(self.positions(partitions))
        self._fetcher.remove(partitions)
        self._session.given_up(partitions)

    def lose(self, partitions: Iterable[TopicPartition]) -> None:
        """Somebody else may have them already: there is nothing to commit."""
        self._fetcher.remove(partitions)

    async def close(self, reason: str) -> None:
        if self._settings.enable_auto_commit and self._session is not None:
            await self._commit_quietly(self.positions())
        if self._session is not None:
            await self._session.leave(reason, GIVE_UP_TIMEOUT_S)
        await self._scope.close()

    # -- offsets ----------------------------------------------------------------------------------

    def positions(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where the application is: behind the last record that a poll returned."""
        found = {}
        for partition in self._fetcher.partitions() if partitions is None else partitions:
            try:
                offset, last_epoch = self._fetcher.position(partition)
            except (InvalidRequest, NoPosition):
                continue  # not begun, so there is nothing to commit
            found[partition] = OffsetAndMetadata(offset, leader_epoch=last_epoch)
        return found

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        membership = None if self._session is None else self._session.membership
        resets = self._fetcher.take_resets(offsets)
        try:
            await self.offsets.commit(
                offsets,
                member_id="" if membership is None else membership.member_id,
                member_epoch=0 if membership is None else membership.told_epoch,
                resets=resets,
                timeout_s=self._settings.request_timeout_ms / 1000,
            )
        except BaseException:
            self._fetcher.put_back_resets(resets)
            raise

    def commit_in_background(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        callback: Callable[[BaseException | None], None] | None,
    ) -> asyncio.Task[None]:
        async def commit() -> None:
            failure: SuiroError | None = None
            try:
                await self.commit(offsets)
            except SuiroError as error:
                failure = error
                if callback is None:
                    log.warning("commit: %s", error)
            if callback is not None:
                callback(failure)

        return self._scope.start(commit(), "commit")

    def auto_commit_is_due(self) -> bool:
        """Whether it is time to commit what earlier polls returned."""
        if not self._settings.enable_auto_commit or self._session is None or self._is_committing:
            return False
        return (
            self._loop.time() - self._committed_s >= self._settings.auto_commit_interval_ms / 1000
        )

    def auto_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """In the background; the next one comes an interval later."""
        self._committed_s = self._loop.time()
        self._is_committing = True
        self._scope.start(self._auto_commit(offsets), "auto commit")

    async def _auto_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            await self.commit(offsets)
        except SuiroError as error:
            log.warning("automatic commit: %s", error)
        finally:
            self._is_committing = False

    async def _commit_quietly(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        try:
            async with asyncio.timeout(GIVE_UP_TIMEOUT_S):
                await self.commit(offsets)
        except (SuiroError, TimeoutError) as error:
            log.warning("the last offsets were not committed: %s", error)
