"""Whether a blank controller founds the cluster's quorum with others, or joins one that is there.

A controller whose volume was lost looks like one that never ran, and must never found a quorum a
second time: it has forgotten what it voted for. Nothing on its own side tells the two apart, so the
others are asked. A quorum is founded only when every founder has been heard while it was blank too,
each with the id of its new directory; or when one that is settled lists this very directory.

Invariant: a directory is among the founders only if its controller was blank together with all the
others. A volume that is lost afterwards has another id, so its controller can only join.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from suiro.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class Introduction:
    """What a controller says of itself."""

    node_id: NodeId
    directory_id: bytes
    settled: bool = False
    """It is formatted, or has decided with whom it will be."""
    founders: Mapping[NodeId, bytes] | None = None
    """Their directories, if it is settled and one of them."""


@dataclass(frozen=True, slots=True)
class Found:
    """Format the directory with these founders and their directories."""

    founders: Mapping[NodeId, bytes]


@dataclass(frozen=True, slots=True)
class Join:
    """Format the directory as one that an operator will add to the quorum that is there."""

    settled: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """These have not been heard yet."""

    missing: tuple[NodeId, ...]


def decide(
    me: Introduction, founders: Collection[NodeId], heard: Mapping[NodeId, Introduction]
) -> Found | Join | Wait:
    """What to do with the blank directory of `me`, of all that others have said of themselves."""
    settled = sorted(node for node, other in heard.items() if other.settled)
    for node in settled:
        listed = heard[node].founders or {}
        if listed.get(me.node_id) == me.directory_id:
            return Found(listed)
    if settled:
        return Join(tuple(settled))
    missing = sorted(set(founders) - heard.keys() - {me.node_id})
    if missing:
        return Wait(tuple(missing))
    if me.node_id not in founders:
        return Wait(tuple(sorted(founders)))  # it comes later than they: it must see them settled
    directories = {node: other.directory_id for node, other in heard.items() if node in founders}
    return Found({**directories, me.node_id: me.directory_id})
