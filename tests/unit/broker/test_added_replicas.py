"""Whom a leader counts as being added: what they are sent may be throttled."""

from __future__ import annotations

from dataclasses import replace

from suiro.model.ids import NodeId, PartitionEpoch
from suiro.model.records import Reassignment

from cluster.broker.replication_effects import ProposeIsr
from tests.unit.broker.replication_kit import START_MS, Kit, state

FOUR = NodeId(4)


def moving() -> Kit:
    """Broker 4 takes the place of broker 3, which follows as before."""
    kit = Kit(1, 2, 3, records=10, high_watermark=10)
    added = replace(
        state(1, 2, 3, replicas=(1, 2, 3, 4), partition_epoch=8),
        reassignment=Reassignment((NodeId(1), NodeId(2), FOUR), (FOUR,)),
    )
    kit.leader.on_state(added, START_MS)
    return kit


def test_only_what_a_reassignment_adds() -> None:
    kit = moving()
    assert [n for n in (1, 2, 3, 4) if kit.leader.is_being_added(NodeId(n))] == [4]
    assert not Kit(1, 2).leader.is_being_added(NodeId(3)), "a replica that lags is not being added"


def test_from_its_proposal_on_everyone_waits_for_it_so_it_is_not_held_back() -> None:
    kit = moving()
    kit.join(2, 10)
    kit.join(3, 10)
    kit.announce(4, 0, partition_epoch=8)
    kit.push(4)
    assert kit.leader.is_being_added(FOUR)
    (proposal,) = [e for e in kit.ack(4, 10) if isinstance(e, ProposeIsr)]
    assert FOUR in proposal.nodes
    assert not kit.leader.is_being_added(FOUR)
    joined = replace(
        kit.leader.state,
        isr=tuple(map(NodeId, (1, 2, 3, 4))),
        partition_epoch=PartitionEpoch(9),
    )
    kit.leader.on_state(joined, START_MS)
    assert not kit.leader.is_being_added(FOUR)
