"""Which replica of a partition a reader asks. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.connection import PartitionInfo
    from suiro.model.ids import NodeId


def nearest_replica(
    info: PartitionInfo, racks: Mapping[NodeId, str], client_rack: str
) -> NodeId | None:
    """A replica in sync in the reader's rack, else the leader; `racks` names those alive.

    The leader goes first where it is near itself: it has every record first.
    """
    leader = info.leader
    if leader is None or not client_rack or racks.get(leader) == client_rack:
        return leader
    near = (n for n in info.replicas if n in info.isr and racks.get(n) == client_rack)
    return next(near, leader)
