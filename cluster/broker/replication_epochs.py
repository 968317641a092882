"""Where two logs part: found by leader epochs alone, without comparing a single record.

Two logs that have a record of the same epoch at the same offset are equal up to there, because one
leader wrote one epoch and appended only. So a leader that is told the epoch of a follower's last
record can say whether the follower's log is a prefix of its own, and if not, where its own log
leaves that epoch. The follower cuts there, or earlier where it left an older epoch itself, and asks
again: each round walks back at least one epoch, down to the largest common (epoch, offset). Looking
up one epoch once is not enough after fast changes of leader (rows 2 and 3 of RELIABILITY.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from suiro.model.ids import NO_LEADER_EPOCH, LeaderEpoch

if TYPE_CHECKING:
    from suiro.model.ids import Offset, PartitionEpoch


class LogView(Protocol):
    """What the cores look at in a log; they never change one."""

    @property
    def log_start(self) -> Offset: ...
    @property
    def log_end(self) -> Offset: ...
    @property
    def last_epoch(self) -> LeaderEpoch: ...
    def end_offset_for(self, leader_epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        """The largest epoch up to the one asked for and where it ends; None if there is none."""


@dataclass(frozen=True, slots=True)
class Position:
    """A follower's log, as it announces it to the leader of `leader_epoch`."""

    leader_epoch: LeaderEpoch
    log_start: Offset
    log_end: Offset
    last_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch | None = None
    """How far the follower's metadata are; None is not checked, so it may not be left out where
    replicas can be removed and added again.
    """


@dataclass(frozen=True, slots=True)
class Divergence:
    """The leader's log leaves the follower's at the end of this epoch at the latest."""

    leader_epoch: LeaderEpoch
    end: Offset


def divergence(leader: LogView, follower: Position) -> Divergence | None:
    """None if the follower's log is a prefix of the leader's, as far as the leader's still goes
    back: a follower that ends before the leader's start has to begin anew there.
    """
    if follower.log_end < leader.log_start:
        return None
    leader_epoch, end = follower.last_epoch, leader.log_end
    known = leader.end_offset_for(leader_epoch)
    if known is not None and leader_epoch != NO_LEADER_EPOCH:
        leader_epoch, end = known  # else one of the two logs is empty: only their ends can differ
    if leader_epoch == follower.last_epoch and follower.log_end <= end:
        return _before_its_time(leader, follower)
    return Divergence(leader_epoch, end)


def _before_its_time(leader: LogView, follower: Position) -> Divergence | None:
    """The follower's last record is of an epoch that began later in the leader's log, which goes
    back so far. One leader began it, at one offset: a bit has flipped in the follower's file, in
    the field that no checksum covers. It cuts the record off, and is sent it again.
    """
    if follower.last_epoch == NO_LEADER_EPOCH or follower.log_end <= leader.log_start:
        return None
    before = leader.end_offset_for(LeaderEpoch(follower.last_epoch - 1))
    return None if before is None or before[1] < follower.log_end else Divergence(*before)


def truncation_point(follower: LogView, diverging: Divergence) -> Offset:
    """Where the follower cuts before it asks again; never below the largest common point.

    Beyond `diverging.end` the leader has only later epochs; beyond the end of our own last epoch
    up to that one, we have only epochs that the leader has not.
    """
    own = follower.end_offset_for(diverging.leader_epoch)
    end = follower.log_end if own is None else own[1]
    return min(end, diverging.end, follower.log_end)
