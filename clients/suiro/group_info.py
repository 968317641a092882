"""What an operator is told about consumer groups. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suiro.model.ids import Address, TopicPartition


@dataclass(frozen=True, slots=True)
class GroupListing:
    """One group of the cluster."""

    group: str
    state: str
    """empty, stable or reconciling."""
    members: int
    coordinator: Address


@dataclass(frozen=True, slots=True)
class GroupMemberInfo:
    """One member, as the coordinator knows it."""

    member_id: str
    client_id: str
    host: str
    instance_id: str
    member_epoch: int
    topics: tuple[str, ...]
    pattern: str
    assigned: tuple[TopicPartition, ...]
    revoking: tuple[TopicPartition, ...]
    """Told to give them up, not done yet."""
    target: tuple[TopicPartition, ...]
    last_heard_ms: int
    """By the time of day."""


@dataclass(frozen=True, slots=True)
class GroupMove:
    partition: TopicPartition
    source: str
    """A member's id; empty: nobody had it."""
    destination: str


@dataclass(frozen=True, slots=True)
class GroupRebalance:
    """One change of the assignment, and why."""

    at_ms: int
    epoch: int
    reason: str
    moved: int
    moves: tuple[GroupMove, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group, its members and its last rebalances, oldest first."""

    group: str
    state: str
    assignor: str
    epoch: int
    coordinator: Address
    members: tuple[GroupMemberInfo, ...]
    history: tuple[GroupRebalance, ...]

    def owner_of(self, partition: TopicPartition) -> GroupMemberInfo | None:
        return next((m for m in self.members if partition in m.assigned + m.revoking), None)


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far a group is behind in one partition.

    `records` counts offsets from the first record that can be read, so what lies before it and is
    no record, the end of a transaction for instance, does not count; `seconds` is that record's
    age. Both are 0 when everything is read, and None where the group has committed nothing or the
    partition is gone.
    """

    partition: TopicPartition
    committed: int | None
    metadata: str
    start: int | None
    end: int | None
    records: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """One line of a plan: where the group is in a partition, and where it shall be."""

    partition: TopicPartition
    before: int | None
    after: int
    note: str = ""
