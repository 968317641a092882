"""Replicas that their broker cannot use: out of the ISR, never leading, never forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from suiro.model.errors import InvalidRequest, StaleBrokerEpoch
from suiro.model.ids import NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from suiro.model.image import ClusterImage
from suiro.model.records import ConfigResource, Recovery

from cluster.controller_quorum.metadata_requests import IsrMember, IsrProposal, Move
from tests.unit.controller_quorum.test_metadata import Bench, node, topic

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
WHERE = TopicPartition("orders", 0)


def bench(*replicas: int) -> Bench:
    made = Bench()
    made.create(topic("orders", assignment=(tuple(map(NodeId, replicas)),)))
    return made


def report(made: Bench, number: int, *, offline: bool) -> Any:
    which = [made.partition().id]
    return made.do(
        made.machine.decide_report_replicas(
            NodeId(number), made.epoch(number), which if offline else [], [] if offline else which
        )
    )


def test_an_offline_leader_is_followed_by_another_and_leaves_the_isr() -> None:
    made = bench(1, 2, 3)
    assert report(made, 1, offline=True) == 1
    state = made.partition()
    assert (state.leader, state.isr, state.offline) == (TWO, (TWO, THREE), (ONE,))
    assert report(made, 1, offline=True) == 0, "the same again changes nothing"


def test_an_offline_follower_leaves_the_isr_and_the_leader_stays() -> None:
    made = bench(1, 2, 3)
    report(made, 3, offline=True)
    state = made.partition()
    assert (state.leader, state.leader_epoch, state.isr) == (ONE, 0, (ONE, TWO))


def test_the_last_one_in_sync_stays_in_the_isr_and_nobody_leads() -> None:
    made = bench(1)
    report(made, 1, offline=True)
    state = made.partition()
    assert (state.leader, state.isr, state.offline) == (NO_LEADER, (ONE,), (ONE,))
    report(made, 1, offline=False)
    assert made.partition().leader == ONE


def test_a_restart_does_not_elect_what_is_offline() -> None:
    made = bench(1)
    report(made, 1, offline=True)
    made.start(node(1, life=1))
    assert made.partition().leader == NO_LEADER
    made.do(made.machine.decide_elect_leaders())
    made.do(made.machine.decide_balance_leaders(100))
    assert made.partition().leader == NO_LEADER


def test_online_while_fenced_gives_no_leadership_before_the_node_serves() -> None:
    made = bench(1)
    report(made, 1, offline=True)
    reply = made.do(made.machine.decide_register(node(1, life=1), session_alive=False))
    report(made, 1, offline=False)
    assert made.partition().leader == NO_LEADER
    made.do(made.machine.decide_unfence(ONE, reply.broker_epoch))
    assert made.partition().leader == ONE


def test_what_is_offline_is_not_let_into_the_isr_nor_preferred() -> None:
    made = bench(1, 2)
    report(made, 1, offline=True)
    state = made.partition()
    members = (IsrMember(ONE, made.epoch(1)), IsrMember(TWO, made.epoch(2)))
    proposal = IsrProposal(state.id, state.leader_epoch, state.partition_epoch, members)
    (outcome,) = made.do(made.machine.decide_alter_isr(TWO, made.epoch(2), [proposal]))
    assert isinstance(outcome.error, InvalidRequest)
    made.do(made.machine.decide_elect_leaders([WHERE]))
    assert made.partition().leader == TWO


def test_an_unclean_election_passes_over_what_is_offline() -> None:
    made = bench(1, 2)
    allowed = {"unclean.leader.election.enable": "true"}
    made.do(made.machine.decide_alter_config(ConfigResource.TOPIC, "orders", allowed))
    report(made, 2, offline=True)
    report(made, 1, offline=True)
    assert made.partition().leader == NO_LEADER
    report(made, 2, offline=False)
    state = made.partition()
    assert (state.leader, state.recovery) == (TWO, Recovery.UNCLEAN)


def test_a_replica_that_is_moved_away_takes_its_mark_along() -> None:
    made = bench(1, 2)
    report(made, 2, offline=True)
    made.do(made.machine.decide_reassign([Move(WHERE, (ONE,))]))
    state = made.partition()
    assert (state.replicas, state.offline) == ((ONE,), ())


def test_a_report_of_an_earlier_incarnation_is_refused() -> None:
    made = bench(1, 2)
    former = made.epoch(1)
    made.start(node(1, life=1))
    with pytest.raises(StaleBrokerEpoch):
        made.machine.decide_report_replicas(ONE, former, [made.partition().id])


def test_a_node_hears_which_directories_it_lost_until_it_has_answered_for_them() -> None:
    made = Bench(brokers=0)
    made.start(node(1, log_directories=("a", "b")))
    fresh = node(1, life=1, log_directories=("b", "c"), clean_shutdown=True)
    first = made.do(made.machine.decide_register(fresh, session_alive=False))
    assert first.lost_directories == ("a",)
    again = made.do(made.machine.decide_register(fresh, session_alive=False))
    assert again == first, "a lost answer"
    # It dies before it was ready: the next incarnation has to answer for the same.
    later = node(1, life=2, log_directories=("b", "c"))
    second = made.do(made.machine.decide_register(later, session_alive=False))
    assert second.lost_directories == ("a",)
    assert ClusterImage(made.machine.image.records()).state_hash() == (
        made.machine.image.state_hash()
    )
    made.do(made.machine.decide_unfence(ONE, second.broker_epoch))
    third = node(1, life=3, log_directories=("b", "c"), clean_shutdown=True)
    third_reply = made.do(made.machine.decide_register(third, session_alive=False))
    assert third_reply.lost_directories == ()
    assert ClusterImage(made.machine.image.records()).state_hash() == (
        made.machine.image.state_hash()
    )


def test_a_node_without_all_of_its_directories_did_not_shut_down_cleanly() -> None:
    made = Bench(brokers=0)
    epoch: BrokerEpoch = made.start(node(1, log_directories=("a", "b")))
    back = node(1, life=1, log_directories=("b",), clean_shutdown=True, former_broker_epoch=epoch)
    made.start(back)
    assert not made.machine.image.nodes[ONE].registration.clean_shutdown
