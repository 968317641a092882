"""The records of a group coordinator: what is in __consumer_offsets, one class per kind of key.

Each record is the whole new state of its key, and `Removed` says that a key is gone. So the newest
record of every key rebuilds the state (the topic is compacted), and applying one needs no other.
The records of one decision are appended as one batch: all of them or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from suiro.model.ids import (
    NO_LEADER_EPOCH,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)

NOT_REVOKED: Final = 0
NOT_EMPTY: Final = -1
NO_TOPIC_ID: Final = TopicId(b"")


class Kind(IntEnum):
    """What a key names; the numbers are stored."""

    GROUP = 1
    MEMBER = 2
    TARGET = 3
    OFFSET = 4
    PRODUCER = 5
    HISTORY = 6


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What a record is the newest state of. Only the fields that its kind needs are set."""

    kind: Kind
    group: str
    member_id: str = ""
    partition: TopicPartition | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as a whole.

    `epoch` rises with every change that may ask for another assignment; the targets are those of
    `target_epoch`. `given_epoch` is the highest member epoch ever given out: member epochs come
    from one counter per group, so an epoch names one assignment of one member, forever.
    """

    group: str
    epoch: int = 0
    target_epoch: int = 0
    given_epoch: int = 0
    assignor: str = ""
    reasons: tuple[str, ...] = ()
    """Of the changes since the targets were computed."""
    asked: str = ""
    """The member that has to compute a user's own assignor, if one has."""
    empty_since_ms: int = NOT_EMPTY

    @property
    def key(self) -> Key:
        return Key(Kind.GROUP, self.group)


@dataclass(frozen=True, slots=True, order=True)
class Owned:
    """A partition that a member may hold, from when on, and since when it has to give it up.

    It stays the member's until the member says, at `revoked_epoch` or later, that it gave it up.
    """

    partition: TopicPartition
    granted_epoch: int
    revoked_epoch: int = NOT_REVOKED

    @property
    def is_revoked(self) -> bool:
        return self.revoked_epoch != NOT_REVOKED


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """One member: who it is, what it wants, what it may hold."""

    group: str
    member_id: str
    member_epoch: int
    instance_id: str = ""
    client_id: str = ""
    host: str = ""
    rack: str = ""
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assignors: tuple[str, ...] = ()
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription_version: int = 0
    joined_epoch: int = 0
    """The first epoch that it was given: it names this membership."""
    owned: tuple[Owned, ...] = ()
    """In the order of the partitions."""

    @property
    def key(self) -> Key:
        return Key(Kind.MEMBER, self.group, self.member_id)

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """What it was told to hold at its epoch."""
        return tuple(owned.partition for owned in self.owned if not owned.is_revoked)

    @property
    def revoking(self) -> tuple[TopicPartition, ...]:
        return tuple(owned.partition for owned in self.owned if owned.is_revoked)


@dataclass(frozen=True, slots=True)
class TargetState:
    """What a member shall own once everybody has moved."""

    group: str
    member_id: str
    partitions: tuple[TopicPartition, ...]

    @property
    def key(self) -> Key:
        return Key(Kind.TARGET, self.group, self.member_id)


@dataclass(frozen=True, slots=True)
class OffsetState:
    """The committed offset of one partition: the next record to be consumed."""

    group: str
    partition: TopicPartition
    offset: Offset
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    metadata: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    committed_at_ms: int = 0

    @property
    def key(self) -> Key:
        return Key(Kind.OFFSET, self.group, partition=self.partition)


class Outcome(IntEnum):
    """How a producer's newest transaction stands; the numbers are stored."""

    PENDING = 0
    COMMITTED = 1
    ABORTED = 2


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The offsets that a transaction wants to commit; after its end, only how it ended.

    The end is remembered for a while: without it a late commit of that transaction would open it
    again, and nobody would ever settle it.
    """

    group: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    outcome: Outcome = Outcome.PENDING
    at_ms: int = 0
    offsets: tuple[OffsetState, ...] = ()

    @property
    def key(self) -> Key:
        return Key(Kind.PRODUCER, self.group, number=self.producer_id)


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """A partition that another member shall own; an empty source means that nobody was to."""

    partition: TopicPartition
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Targets were computed: when, why, what moved. The oldest is overwritten: keys are slots."""

    group: str
    slot: int
    at_ms: int
    epoch: int
    reason: str
    moved: int
    moves: tuple[PartitionMove, ...] = ()
    """The first of them."""

    @property
    def key(self) -> Key:
        return Key(Kind.HISTORY, self.group, number=self.slot)


@dataclass(frozen=True, slots=True)
class Removed:
    """A key is gone: a tombstone in the log."""

    key: Key


State = GroupState | MemberState | TargetState | OffsetState | ProducerState | Rebalance
GroupRecord = State | Removed
