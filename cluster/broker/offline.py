"""Replicas that this broker cannot use: why, and what may become of them. Pure.

Nothing that may have held an acknowledged record is ever replaced by an empty log while somebody
counts on it (P15). So a log that is damaged or lost begins anew only when the controllers have put
the mark on it, which makes what its leader knew of it void, and have taken it out of the ISR. As
long as it is the last one in the ISR it stays as it is, and the partition waits for an operator.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suiro.model.ids import NodeId
    from suiro.model.records import PartitionState


class Offline(Enum):
    """Why a replica cannot be used."""

    FAILED = "its directory has failed"
    """Or it may be in one that has. Only a new start of the broker looks again."""
    NO_ROOM = "no directory has room for it"
    """It is tried again when one has."""
    LOST = "no directory has it"
    DAMAGED = "its log is damaged"


class Remedy(Enum):
    """What to do about a replica that is offline."""

    WAIT = "wait"
    BEGIN_ANEW = "begin anew"
    """Put aside what there is, and fetch everything from the leader."""
    COME_BACK = "come back"
    """It is the only one left: better a log with a bad place, which is never handed out."""


def why_missing(
    node: NodeId, state: PartitionState, *, is_starting: bool, any_failed: bool, any_lost: bool
) -> Offline | None:
    """Why a replica is in no directory; None if that is because it is new here, or may begin anew.
    `any_lost`: the controllers know of a directory that this broker had once.
    """
    if not is_starting:
        return None
    if any_failed:
        return Offline.FAILED
    was_here = any_lost or node in state.offline
    return Offline.LOST if was_here and node in state.isr else None


def may_stay(node: NodeId, state: PartitionState) -> bool:
    """Whether a damaged log goes on serving what is good of it: nobody else could."""
    return state.isr == (node,)


def remedy(node: NodeId, state: PartitionState, why: Offline) -> Remedy:
    """What can be done now, by a state that knows of this broker's present incarnation."""
    if why in {Offline.FAILED, Offline.NO_ROOM} or node not in state.offline:
        return Remedy.WAIT
    if node not in state.isr and state.has_leader:
        return Remedy.BEGIN_ANEW
    if why is Offline.DAMAGED and may_stay(node, state):
        return Remedy.COME_BACK
    return Remedy.WAIT
