"""Nothing quadratic: ten times the partitions cost about ten times the work, counted, not timed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from suiro.model.codec import decode, encode
from suiro.model.ids import Address, NodeId, TopicId
from suiro.model.image import ClusterImage
from suiro.model.records import Role

from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.metadata_requests import (
    IsrMember,
    IsrProposal,
    NewTopic,
    Registration,
)

if TYPE_CHECKING:
    from collections.abc import Callable

BROKERS = 6


def a_cluster(partitions: int) -> MetadataMachine:
    machine = MetadataMachine()
    for number in range(BROKERS):
        node = Registration(
            node_id=NodeId(number),
            incarnation=number.to_bytes(16, "big"),
            roles=(Role.BROKER,),
            address=Address("host", 1),
        )
        carry_out(machine, machine.decide_register(node, session_alive=False))
        epoch = machine.image.nodes[node.node_id].broker_epoch
        carry_out(machine, machine.decide_unfence(node.node_id, epoch))
    topics = [
        NewTopic(name=f"t{n}", topic_id=TopicId(n.to_bytes(16, "big")), partitions=partitions // 10)
        for n in range(10)
    ]
    carry_out(machine, machine.decide_create_topics(topics))
    assert machine.image.partition_count == partitions
    return machine


def carry_out(machine: MetadataMachine, decision: Any) -> None:
    for record in decision.records:
        machine.apply(record)


def calls(work: Callable[[], object]) -> int:
    """How many functions are called: what the work costs, whatever the machine does besides."""
    count = 0

    def on_event(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def fence_one(machine: MetadataMachine) -> None:
    carry_out(machine, machine.decide_fence(NodeId(1), machine.image.nodes[NodeId(1)].broker_epoch))


def restore(machine: MetadataMachine) -> None:
    again = ClusterImage(decode(encode(record)) for record in machine.image.records())
    assert again.state_hash() == machine.image.state_hash()


def balance(machine: MetadataMachine) -> None:
    carry_out(machine, machine.decide_balance_leaders(1_000_000))


def cost(partitions: int, work: Callable[[MetadataMachine], None]) -> int:
    machine = a_cluster(partitions)
    return calls(lambda: work(machine))


@pytest.mark.parametrize("work", [fence_one, restore, balance])
def test_ten_times_the_partitions_ten_times_the_work(
    work: Callable[[MetadataMachine], None],
) -> None:
    assert cost(2_000, work) <= 12 * cost(200, work)


def test_creating_is_linear() -> None:
    assert calls(lambda: a_cluster(2_000)) <= 12 * calls(lambda: a_cluster(200))


def test_one_change_costs_the_same_in_any_cluster() -> None:
    def change(machine: MetadataMachine) -> None:
        state = machine.image.topics_by_name["t0"].partitions[0]
        isr = (IsrMember(state.leader, machine.image.nodes[state.leader].broker_epoch),)
        proposal = IsrProposal(state.id, state.leader_epoch, state.partition_epoch, isr)
        carry_out(machine, machine.decide_alter_isr(state.leader, isr[0].broker_epoch, [proposal]))

    assert cost(2_000, change) == cost(200, change)
