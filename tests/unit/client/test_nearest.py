"""Which replica a reader asks."""

from __future__ import annotations

from suiro.connection import PartitionInfo
from suiro.model.ids import NodeId
from suiro.nearest import nearest_replica

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
RACKS = {ONE: "a", TWO: "b", THREE: "b"}


def info(leader: NodeId | None = ONE, isr: tuple[NodeId, ...] = (ONE, TWO, THREE)) -> PartitionInfo:
    return PartitionInfo(leader, 0, (ONE, TWO, THREE), isr)


def test_an_in_sync_replica_of_the_same_rack_is_nearest() -> None:
    assert nearest_replica(info(), RACKS, "b") == TWO
    assert nearest_replica(info(isr=(ONE, THREE)), RACKS, "b") == THREE


def test_else_it_is_the_leader() -> None:
    assert nearest_replica(info(), RACKS, "") == ONE
    assert nearest_replica(info(), RACKS, "a") == ONE
    assert nearest_replica(info(), RACKS, "c") == ONE
    assert nearest_replica(info(isr=(ONE,)), RACKS, "b") == ONE, "nobody near is in sync"
    assert nearest_replica(info(), {ONE: "a"}, "b") == ONE, "nobody near is alive"
    assert nearest_replica(info(leader=THREE), RACKS, "b") == THREE, "the leader is near itself"
    assert nearest_replica(info(leader=None), RACKS, "b") is None
