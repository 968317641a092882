"""An operator's questions about consumer groups, and the changes that may be made to them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from suiro._proto import groupcoord_pb2
from suiro._proto.common_pb2 import READ_COMMITTED
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.aio import coordinators
from suiro.aio.group_offsets import GroupOffsets, OffsetAndMetadata
from suiro.aio.offsets import Bound, find_offset, first_record
from suiro.group_info import (
    GroupInfo,
    GroupListing,
    GroupMemberInfo,
    GroupMove,
    GroupRebalance,
    OffsetReset,
    PartitionLag,
)
from suiro.model.errors import (
    GroupNotEmpty,
    InvalidRequest,
    UnknownGroup,
    UnknownTopicOrPartition,
)
from suiro.model.ids import Address, TopicPartition
from suiro.transport.methods import GroupCoordinatorMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from suiro.connection import Connection

    Target = Bound | int | Callable[[TopicPartition, int | None], int]

AT_ONCE: Final = 32
"""Partitions that are asked about at the same time."""


class GroupAdmin:
    """`Admin.groups`. `now_ms` is the time of day."""

    def __init__(
        self, connection: Connection, timeout_s: float, now_ms: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._now_ms = now_ms
        self._coordinators = coordinators.groups(connection)

    async def list_groups(self, states: Iterable[str] = ()) -> list[GroupListing]:
        """Every group of the cluster, or those in one of these states."""
        request = groupcoord_pb2.ListGroupsRequest(states=list(states))
        replies = await self._coordinators.call_everyone(
            GroupCoordinatorMethods.LIST_GROUPS, request, timeout_s=self._timeout_s
        )
        found = [
            GroupListing(each.group, each.state, each.members, address)
            for address, reply in replies
            for each in reply.groups
        ]
        return sorted(found, key=lambda listing: listing.group)

    async def describe_group(self, group: str) -> GroupInfo:
        """A group with its members and history. Raises UnknownGroup."""
        reply = await self._coordinators.call(
            group,
            GroupCoordinatorMethods.DESCRIBE_GROUP,
            groupcoord_pb2.DescribeGroupRequest(group=group, history=True),
            timeout_s=self._timeout_s,
        )
        return GroupInfo(
            group=group,
            state=reply.summary.state,
            assignor=reply.assignor,
            epoch=reply.group_epoch,
            coordinator=Address(reply.coordinator.host, reply.coordinator.port),
            members=tuple(map(_member, reply.members)),
            history=tuple(map(_rebalance, reply.history)),
        )

    async def delete_group(self, group: str, offsets: Iterable[TopicPartition] = ()) -> None:
        """Forget a group, or only its offsets of these partitions.

        Raises UnknownGroup, and GroupNotEmpty while it has members.
        """
        doomed = [WirePartition(topic=p.topic, partition=p.partition) for p in offsets]
        await self._coordinators.call(
            group,
            GroupCoordinatorMethods.DELETE_GROUP,
            groupcoord_pb2.DeleteGroupRequest(group=group, offsets=doomed),
            timeout_s=self._timeout_s,
        )

    # -- lag --------------------------------------------------------------------------------------

    async def group_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed, also where a transaction may be about to change it."""
        offsets = GroupOffsets(self._connection, self._coordinators, group)
        return await offsets.fetch(require_stable=False, timeout_s=self._timeout_s)

    async def group_lag(self, info: GroupInfo) -> list[PartitionLag]:
        """How far a group is behind, in what it has committed and in what its members own."""
        committed = await self.group_offsets(info.group)
        owned = {p for m in info.members for p in (*m.assigned, *m.revoking)}
        partitions = sorted(owned.union(committed))
        topics = await self._connection.all_topics(timeout_s=self._timeout_s)
        self._connection.topics |= topics
        gate = asyncio.Semaphore(AT_ONCE)

        async def lag(partition: TopicPartition) -> PartitionLag:
            async with gate:
                return await self._lag(partition, committed.get(partition))

        return await asyncio.gather(*(lag(partition) for partition in partitions))

    async def _lag(self, partition: TopicPartition, at: OffsetAndMetadata | None) -> PartitionLag:
        offset, metadata = (None, "") if at is None else (at.offset, at.metadata)
        topic = self._connection.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return PartitionLag(partition, offset, metadata, None, None, None, None)
        start, end = await self._bounds(partition)
        if offset is None:
            return PartitionLag(partition, offset, metadata, start, end, None, None)
        first = await first_record(
            self._connection, partition, max(offset, start), end, isolation=READ_COMMITTED
        )
        if first is None:
            return PartitionLag(partition, offset, metadata, start, end, 0, 0.0)
        unread, timestamp_ms = first
        age_s = max(self._now_ms() - timestamp_ms, 0) / 1000
        return PartitionLag(partition, offset, metadata, start, end, end - unread, age_s)

    async def _bounds(self, partition: TopicPartition) -> tuple[int, int]:
        start = await self._offset_of(partition, Bound.EARLIEST)
        return start, await self._offset_of(partition, Bound.LATEST)

    async def _offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        return await find_offset(
            self._connection,
            partition,
            bound,
            isolation=READ_COMMITTED,
            timeout_s=self._timeout_s,
        )

    # -- resets -----------------------------------------------------------------------------------

    async def plan_reset(
        self,
        group: str,
        partitions: Sequence[TopicPartition],
        target: Target,
        *,
        is_new: bool = False,
    ) -> list[OffsetReset]:
        """Where the group would be: at an end of the log, at a time (ms), or wherever `target` says
        when it is asked with the committed offset. What is not in the log is moved to its ends.

        Raises GroupNotEmpty while the group has members, who would not notice, and UnknownGroup
        unless it may be a new one.
        """
        await self._check_idle(group, is_new=is_new)
        committed = await self.group_offsets(group)
        await self._connection.refresh({p.topic for p in partitions}, timeout_s=self._timeout_s)
        gate = asyncio.Semaphore(AT_ONCE)

        async def plan(partition: TopicPartition) -> OffsetReset:
            async with gate:
                at = committed.get(partition)
                before = None if at is None else at.offset
                return await self._planned(partition, before, target)

        return await asyncio.gather(*(plan(partition) for partition in sorted(set(partitions))))

    async def _planned(
        self, partition: TopicPartition, before: int | None, target: Target
    ) -> OffsetReset:
        count = len(self._connection.topics[partition.topic].partitions)
        if not 0 <= partition.partition < count:
            raise UnknownTopicOrPartition(f"{partition.topic} has {count} partitions")
        start, end = await self._bounds(partition)
        if callable(target):
            wanted = target(partition, before)
        else:
            wanted = await self._offset_of(partition, target)
        after = min(max(wanted, start), end)
        note = "" if after == wanted else f"{wanted} is not in the log"
        return OffsetReset(partition, before, after, note)

    async def reset_offsets(self, group: str, plan: Iterable[OffsetReset]) -> None:
        """Carry a plan out. Raises GroupNotEmpty if somebody has joined meanwhile."""
        await self._check_idle(group, is_new=True)
        wanted = {reset.partition: OffsetAndMetadata(reset.after) for reset in plan}
        await self._connection.refresh({p.topic for p in wanted}, timeout_s=self._timeout_s)
        offsets = GroupOffsets(self._connection, self._coordinators, group)
        await offsets.commit(wanted, resets=wanted.keys(), timeout_s=self._timeout_s)

    async def _check_idle(self, group: str, *, is_new: bool) -> None:
        try:
            info = await self.describe_group(group)
        except UnknownGroup:
            if is_new:
                return
            raise
        if info.members:
            who = ", ".join(sorted({f"{m.client_id} at {m.host}" for m in info.members}))
            raise GroupNotEmpty(f"{group} is active: {len(info.members)} members ({who})")


def shift_by(number: int) -> Callable[[TopicPartition, int | None], int]:
    """So many records on, or back."""

    def target(partition: TopicPartition, before: int | None) -> int:
        if before is None:
            raise InvalidRequest(f"{partition} has no committed offset to shift")
        return before + number

    return target


def as_listed(
    offsets: Mapping[TopicPartition, int],
) -> Callable[[TopicPartition, int | None], int]:
    """Each partition at its own offset."""
    return lambda partition, _before: offsets[partition]


def _member(state: groupcoord_pb2.MemberState) -> GroupMemberInfo:
    return GroupMemberInfo(
        member_id=state.member_id,
        client_id=state.client_id,
        host=state.host,
        instance_id=state.instance_id,
        member_epoch=state.member_epoch,
        topics=tuple(state.topics),
        pattern=state.pattern,
        assigned=_partitions(state.assigned),
        revoking=_partitions(state.revoking),
        target=_partitions(state.target),
        last_heard_ms=state.last_heard_ms,
    )


def _rebalance(done: groupcoord_pb2.Rebalance) -> GroupRebalance:
    moves = tuple(
        GroupMove(TopicPartition(m.partition.topic, m.partition.partition), m.source, m.destination)
        for m in done.moves
    )
    return GroupRebalance(done.at_ms, done.group_epoch, done.reason, done.moved, moves)


def _partitions(found: Iterable[WirePartition]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(p.topic, p.partition) for p in found)
