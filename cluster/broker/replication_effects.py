"""What the leader and follower cores want done; the shell carries it out, in the order given.

The first group are also the events of RELIABILITY.md section 2: the shell logs them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch

    from cluster.broker.replication_epochs import Divergence, Position


class TruncateReason(Enum):
    """Why records were cut off."""

    DIVERGED = "diverged"
    """They were never committed: another leader wrote something else in their place."""
    LOST = "lost"
    """Records that this replica knew to be committed. The leader lacks them, which only an unclean
    election or the power loss of the last replica standing can bring about: to be told loudly.
    """
    DELETED = "deleted"
    """Everything here is below the leader's log start."""


# -- what happened --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Everything below this offset is held by every in-sync replica."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class EpochStarted:
    """This broker leads, and its log ended at `start` when it began to."""

    leader_epoch: LeaderEpoch
    start: Offset


@dataclass(frozen=True, slots=True)
class IsrChanged:
    """The controller has changed the ISR of a partition that goes on being led by this broker."""

    partition_epoch: PartitionEpoch
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Cut the log from `log_end` back to `offset`, then call `Follower.on_truncated`."""

    log_end: Offset
    offset: Offset
    reason: TruncateReason


@dataclass(frozen=True, slots=True)
class RestartAt:
    """Drop the whole log and begin at `offset`, then call `Follower.on_truncated`."""

    log_end: Offset
    offset: Offset
    reason: TruncateReason


# -- what a leader wants --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProposedMember:
    """A replica, and the incarnation of it that the leader has seen."""

    node_id: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Ask the controller for this ISR, once; what became of it goes to `Leader.on_outcome`."""

    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    members: tuple[ProposedMember, ...]

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        return tuple(member.node_id for member in self.members)


@dataclass(frozen=True, slots=True)
class Ready:
    """`Leader.next_push(node)` has something for this follower now, to be sent on that stream."""

    node: NodeId
    stream: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer this follower's position with an error, on that stream; or, where that is negative,
    send it the error unasked on whatever stream it has, if any.
    """

    node: NodeId
    error: SuiroError
    stream: int


LeaderEffect = HighWatermark | EpochStarted | IsrChanged | ProposeIsr | Ready | Refuse


# -- what a leader sends --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Diverging:
    """A part without batches that tells the follower to truncate."""

    divergence: Divergence


@dataclass(frozen=True, slots=True)
class Read:
    """A part with batches from `start` up to at most the log end, whole ones, at least one."""

    start: Offset
    bytes_max: int


@dataclass(frozen=True, slots=True)
class Beat:
    """A part at `start` without batches: it brings the high watermark and the log start, and tells
    a follower that has just announced itself that its log matches.
    """

    start: Offset


Push = Diverging | Read | Beat


# -- what a follower wants ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Announce:
    """Send this position to the leader."""

    position: Position


@dataclass(frozen=True, slots=True)
class Append:
    """Append the batches of this part, then call `Follower.on_appended`."""


@dataclass(frozen=True, slots=True)
class Ack:
    """Tell the leader that this replica holds everything below `held_end`."""

    held_end: Offset


@dataclass(frozen=True, slots=True)
class TrimTo:
    """Move the log start forward: the leader has deleted what is below."""

    offset: Offset


FollowerEffect = Announce | Append | Ack | TruncateTo | RestartAt | TrimTo | HighWatermark
