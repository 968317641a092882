"""A consumer as a member of its group: what it was given, what it has committed.

The session runs in the background; what concerns the application waits in the inbox, and the
consumer takes it out when it polls, so that nothing is taken away in the middle of a batch.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from suiro.aio import coordinators
from suiro.aio.group_inbox import GroupInbox
from suiro.aio.group_offsets import GroupMembership, GroupOffsets, OffsetAndMetadata
from suiro.aio.group_session import GroupSession
from suiro.aio.offsets import Bound
from suiro.aio.tasks import TaskScope
from suiro.assignor import name_of
from suiro.membership import MemberConfig, Membership
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest, NoPosition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from suiro.aio.fetcher import Fetcher
    from suiro.aio.group_inbox import Begin
    from suiro.connection import Connection
    from suiro.membership import Lost, Partitions, Revoke
    from suiro.model.ids import TopicPartition
    from suiro.settings import ConsumerSettings

log = logging.getLogger("suiro.client")

MEMBER_ID_BYTES = 8
GIVE_UP_TIMEOUT_S = 5.0
HEARTBEATS = 3
"""In a session timeout, unless the settings say otherwise."""


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
        self._coordinators = coordinators.groups(connection)
        self.offsets = GroupOffsets(connection, self._coordinators, settings.group_id)
        self._session: GroupSession | None = None
        self._scope = TaskScope("group member")
        self._inbox = GroupInbox(
            self._find, self._let_go_unread, on_event, self._scope, connection.rng
        )
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
        beat_ms = settings.heartbeat_interval_ms or settings.session_timeout_ms / HEARTBEATS
        config = MemberConfig(
            group=settings.group_id,
            topics=topics,
            pattern=pattern,
            assignors=tuple(map(name_of, settings.assignors)),
            instance_id=settings.group_instance_id,
            rack=settings.client_rack,
            session_timeout_ms=int(settings.session_timeout_ms),
            rebalance_timeout_ms=int(settings.rebalance_timeout_ms),
            heartbeat_interval_ms=int(beat_ms),
            processing_timeout_ms=None if stuck_ms is None else int(stuck_ms),
        )
        self._session = GroupSession(
            self._connection,
            self._coordinators,
            Membership(config, self._new_id),
            on_event=self._inbox.add,
            assignors={name_of(a): a for a in settings.assignors if not isinstance(a, str)},
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
        return bool(self._inbox)

    def on_progress(self) -> None:
        """The application polls: it is alive."""
        if self._session is not None:
            self._session.on_progress()

    @property
    def has_overslept(self) -> bool:
        """Whether all that it has may be somebody else's by now, and nobody has said so: `wake_up`
        (in the loop) before records are taken. Other tasks may not have run yet either.
        """
        return self._session is not None and self._session.has_overslept

    def wake_up(self) -> None:
        assert self._session is not None
        self._session.wake_up()

    def next_event(self) -> Begin | Revoke | Lost | None:
        """What to deal with first; raises if the group has thrown this member out for good."""
        return self._inbox.next()

    async def _find(self, partitions: Partitions) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to begin: where the group is, and else where `auto_offset_reset` says."""
        timeout_s = self._settings.request_timeout_ms / 1000
        # What is known of the others will do: a leader that has moved says so when it is asked.
        unknown = {p.topic for p in partitions if self._connection.leader(p) is None}
        if unknown:
            await self._connection.refresh(unknown, timeout_s=timeout_s, must_exist=True)
        found = await self.offsets.fetch(
            partitions,
            require_stable=self._settings.isolation == "read_committed",
            timeout_s=timeout_s,
        )
        reset = self._settings.auto_offset_reset
        fresh = [p for p in partitions if p not in found and reset != "none"]
        bounds = await asyncio.gather(*(self._fetcher.offset_of(p, Bound(reset)) for p in fresh))
        return found | {p: OffsetAndMetadata(at) for p, at in zip(fresh, bounds, strict=True)}

    def begin(self, event: Begin) -> None:
        """Read these from now on. Raises NoPosition where it is not known from where."""
        self._fetcher.add(event.partitions)
        self._seek(event.offsets)
        for partition in event.partitions:
            if partition not in event.offsets:
                raise NoPosition(f"{partition} has no position, auto_offset_reset is 'none'")

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

    def _let_go_unread(self, partitions: Partitions) -> None:
        assert self._session is not None
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

    def membership(self) -> GroupMembership:
        """As whom this consumer commits now."""
        if self._session is None:
            return GroupMembership(self.offsets.group)
        core = self._session.membership
        return GroupMembership(self.offsets.group, core.member_id, core.told_epoch)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        membership = self.membership()
        resets = self._fetcher.take_resets(offsets)
        try:
            await self.offsets.commit(
                offsets,
                member_id=membership.member_id,
                member_epoch=membership.member_epoch,
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
