"""How long a broker may lead, and when it may begin to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from suiro.model.errors import NotLeader
from suiro.model.ids import NO_LEADER, BrokerEpoch, LeaderEpoch, NodeId, TopicPartition
from suiro.model.records import Reassignment

from cluster.broker.replication_role import ReplicaRole, is_beyond, is_outside, role_of
from cluster.host.lease import Lease
from tests.unit.broker.replication_kit import EPOCH, node, state


def noticed(lease: Lease, sent_ms: int, index: int = 0, *, fenced: bool = False) -> None:
    lease.on_notice(sent_ms=sent_ms, session_timeout_ms=3_000, committed_index=index, fenced=fenced)


def test_it_is_counted_from_when_the_heartbeat_was_sent() -> None:
    lease = Lease(margin_ms=150)
    assert not lease.holds(0)
    noticed(lease, 1_000)
    assert lease.holds(3_849)
    assert not lease.holds(3_850)
    with pytest.raises(NotLeader):
        lease.check(TopicPartition("t", 0), 3_850)


def test_an_answer_counts_once_the_image_has_caught_up_with_it() -> None:
    lease = Lease(margin_ms=0)
    noticed(lease, 1_000, index=7)
    noticed(lease, 2_000, index=9)
    assert not lease.holds(2_000)
    lease.on_image(8)
    assert lease.holds(3_999)
    assert not lease.holds(4_000)
    lease.on_image(9)
    assert lease.holds(4_999)


@pytest.mark.parametrize("how", ["fenced", "broken"])
def test_it_ends_at_once(how: str) -> None:
    lease = Lease(margin_ms=0)
    noticed(lease, 1_000)
    noticed(lease, 1_500, index=5)
    if how == "fenced":
        noticed(lease, 1_600, fenced=True)
    else:
        lease.end()
    assert not lease.holds(1_700)
    lease.on_image(5)  # what was answered before has no effect any more
    assert not lease.holds(1_700)


def test_late_answers_do_not_shorten_it() -> None:
    lease = Lease(margin_ms=0)
    noticed(lease, 2_000)
    noticed(lease, 1_000)
    assert lease.holds(4_999)


def role(
    node_id: int, *, broker_epoch: int = 20, last_epoch: int = 0, leader: int = 1
) -> ReplicaRole:
    nodes = {NodeId(n): node(n, 10 * n) for n in (1, 2, 3)}
    partition = state(1, 2, replicas=(1, 2))
    if leader != 1:
        partition = type(partition)(
            partition.topic_id,
            0,
            partition.replicas,
            partition.isr,
            NodeId(leader),
            partition.leader_epoch,
        )
    return role_of(
        NodeId(node_id), BrokerEpoch(broker_epoch), nodes, partition, LeaderEpoch(last_epoch)
    )


def test_roles() -> None:
    assert role(1, broker_epoch=10) is ReplicaRole.LEADER
    assert role(2) is ReplicaRole.FOLLOWER
    assert role(3, broker_epoch=30) is ReplicaRole.ABSENT
    assert role(2, leader=NO_LEADER) is ReplicaRole.WAITING


def test_no_role_by_an_image_that_does_not_know_this_incarnation() -> None:
    assert role(1, broker_epoch=9) is ReplicaRole.WAITING
    assert role(1, broker_epoch=11) is ReplicaRole.WAITING


def test_no_role_by_an_image_older_than_the_log() -> None:
    assert role(2, last_epoch=EPOCH + 1) is ReplicaRole.WAITING
    assert role(2, last_epoch=EPOCH) is ReplicaRole.FOLLOWER


def test_a_leader_epoch_that_there_never_was_is_damage() -> None:
    """But only for metadata that know of this incarnation: older ones may not know of it yet."""
    nodes = {NodeId(2): node(2, 20)}

    def beyond(broker_epoch: int, last_epoch: int) -> bool:
        last = LeaderEpoch(last_epoch)
        return is_beyond(NodeId(2), BrokerEpoch(broker_epoch), nodes, state(1, 2), last)

    assert beyond(20, EPOCH + 1)
    assert not beyond(20, EPOCH)
    assert not beyond(21, EPOCH + 1)


def test_who_is_ready() -> None:
    """A replica that has somebody to follow and is not in sync is not; one that is only being added
    may take its time, and one that nobody leads has nobody to catch up with."""
    two = NodeId(2)
    assert is_outside(two, state(1, 3))
    assert not is_outside(two, state(1, 2))
    assert not is_outside(NodeId(4), state(1, 2))
    assert not is_outside(two, replace(state(1, 3), leader=NO_LEADER))
    adding = Reassignment(target=(NodeId(1), two), adding=(two,))
    assert not is_outside(two, replace(state(1, 3), reassignment=adding))
