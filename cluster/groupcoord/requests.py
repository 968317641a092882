"""What is asked of the group machine and what it answers, as values without any wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from suiro.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID

from cluster.groupcoord.records import NO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import (
        LeaderEpoch,
        Offset,
        ProducerEpoch,
        ProducerId,
        TopicId,
        TopicPartition,
    )

    from cluster.groupcoord.records import MemberState, OffsetState, Rebalance

JOINING: Final = 0
"""The member epoch of one that has no assignment yet."""

SESSION_TIMEOUT_MS_DEFAULT: Final = 10_000
REBALANCE_TIMEOUT_MS_DEFAULT: Final = 60_000


@dataclass(frozen=True, slots=True)
class Computed:
    """A member's answer when it was asked to run a user's own assignor."""

    group_epoch: int
    assignment: Mapping[str, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a member says. `member_epoch` is the newest assignment that it has carried out: whatever
    that took away is given up. `owned` is all that it still holds.
    """

    group: str
    member_id: str
    member_epoch: int = JOINING
    owned: frozenset[TopicPartition] = frozenset()
    instance_id: str = ""
    client_id: str = ""
    host: str = ""
    rack: str = ""
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assignors: tuple[str, ...] = ()
    session_timeout_ms: int = SESSION_TIMEOUT_MS_DEFAULT
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS_DEFAULT
    subscription_version: int = 0
    computed: Computed | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A member as an assignor sees it; `owned` is what it has or is to have now."""

    member_id: str
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    instance_id: str = ""
    rack: str = ""

    @property
    def order(self) -> str:
        """Members are sorted by this: a static member keeps its place through a restart."""
        return self.instance_id or self.member_id


@dataclass(frozen=True, slots=True)
class ComputeRequest:
    """Please run your own assignor on this."""

    group_epoch: int
    assignor: str
    views: tuple[View, ...]
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a member stands: the answer to a message, and what is pushed when it changes."""

    member_id: str
    member_epoch: int
    joined_epoch: int
    assigned: tuple[TopicPartition, ...]
    reason: str = ""
    compute: ComputeRequest | None = None


@dataclass(frozen=True, slots=True)
class Notify:
    """An effect: the member's standing has changed; push it if its session is open."""

    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """An effect: the member is out; end its session, if there is one, with this error."""

    group: str
    member_id: str
    error: SuiroError


@dataclass(frozen=True, slots=True)
class Commit:
    """One offset to be committed; only with `reset` may it be lower than the one that is."""

    partition: TopicPartition
    offset: Offset
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    metadata: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """Offsets of a member, or from outside (no member id); with a producer, of a transaction."""

    group: str
    member_id: str = ""
    member_epoch: int = JOINING
    offsets: tuple[Commit, ...] = ()
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """What became of one offset; the others do not depend on it."""

    partition: TopicPartition
    error: SuiroError | None = None


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """The committed offset, if there is one; or why it cannot be told now."""

    partition: TopicPartition
    committed: OffsetState | None = None
    error: SuiroError | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """The transaction that ran under this epoch has ended so."""

    group: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    commit: bool


class GroupPhase(StrEnum):
    """The states of a group, as people see them."""

    EMPTY = "empty"
    STABLE = "stable"
    RECONCILING = "reconciling"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class GroupView:
    """All that `describe` shows."""

    group: str
    phase: GroupPhase
    assignor: str = ""
    epoch: int = 0
    members: tuple[MemberState, ...] = ()
    targets: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    history: tuple[Rebalance, ...] = ()
