"""An operator's view of consumer groups, for ordinary threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.aio.group_admin import GroupAdmin as AioGroupAdmin
    from suiro.aio.group_admin import Target
    from suiro.aio.group_offsets import OffsetAndMetadata
    from suiro.group_info import GroupInfo, GroupListing, OffsetReset, PartitionLag
    from suiro.loop_thread import LoopThread
    from suiro.model.ids import TopicPartition


class GroupAdmin:
    """`Admin.groups`."""

    def __init__(self, loop: LoopThread, groups: AioGroupAdmin) -> None:
        self._loop = loop
        self._groups = groups

    def list_groups(self, states: Iterable[str] = ()) -> list[GroupListing]:
        """Every group of the cluster, or those in one of these states."""
        return self._loop.run(self._groups.list_groups(states))

    def describe_group(self, group: str) -> GroupInfo:
        """A group with its members and history. Raises UnknownGroup."""
        return self._loop.run(self._groups.describe_group(group))

    def group_offsets(self, group: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed."""
        return self._loop.run(self._groups.group_offsets(group))

    def group_lag(self, info: GroupInfo) -> list[PartitionLag]:
        """How far a group is behind, in what it has committed and in what its members own."""
        return self._loop.run(self._groups.group_lag(info))

    def plan_reset(
        self,
        group: str,
        partitions: Sequence[TopicPartition],
        target: Target,
        *,
        is_new: bool = False,
    ) -> list[OffsetReset]:
        """Where the group would be: at an end of the log, at a time (ms), or wherever `target` says
        when it is asked with the committed offset. Nothing is changed.
        """
        plan = self._groups.plan_reset(group, partitions, target, is_new=is_new)
        return self._loop.run(plan)

    def reset_offsets(self, group: str, plan: Iterable[OffsetReset]) -> None:
        """Carry a plan out. Raises GroupNotEmpty if somebody has joined meanwhile."""
        self._loop.run(self._groups.reset_offsets(group, plan))

    def delete_group(self, group: str, offsets: Iterable[TopicPartition] = ()) -> None:
        """Forget a group, or only its offsets of these partitions; refused while it is active."""
        self._loop.run(self._groups.delete_group(group, offsets))
