"""What is wrong with a cluster, what would be, and why: verdicts on one look."""

from __future__ import annotations

from typing import Any

from suiro.cluster_view import ClusterView, NodeView, VoterView, against_restart, problems
from suiro.connection import PartitionInfo, TopicInfo
from suiro.explain import explain_group, explain_partition, explain_transaction
from suiro.group_info import GroupInfo, GroupMemberInfo, PartitionLag
from suiro.model.ids import Address, NodeId, TopicPartition
from suiro.txn_info import OpenTransaction, ProducerInfo, TxnInfo, TxnListing

ORDERS = TopicPartition("orders", 0)
HERE = Address("host", 9750)


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def view(
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    leader: int | None = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    dead: tuple[int, ...] = (),
    least: int = 2,
    **more: Any,
) -> ClusterView:
    who = None if leader is None else NodeId(leader)
    info = PartitionInfo(who, 4, nodes(*replicas), nodes(*isr))
    given: dict[str, Any] = {
        "controller": NodeId(101),
        "quorum": tuple(VoterView(n, HERE, True, True) for n in nodes(101, 102, 103)),
        **more,
    }
    return ClusterView(
        "id",
        tuple(NodeView(n, HERE, ("broker",), fenced=n in dead) for n in nodes(1, 2, 3)),
        {"orders": TopicInfo("orders", b"", (info,))},
        {"orders": least},
        **given,
    )


def kinds(found: Any) -> list[str]:
    return [problem.kind for problem in found]


def test_a_healthy_cluster_has_no_problem() -> None:
    assert problems(view()) == []
    assert against_restart(view(), NodeId(2)) == []


def test_what_is_wrong_is_named_once_and_worst_first() -> None:
    assert kinds(problems(view((1, 2)))) == ["under-replicated"]
    assert kinds(problems(view((1,), dead=(2, 3)))) == ["node-down", "node-down", "unwritable"]
    assert kinds(problems(view((1,), leader=None, dead=(1,)))) == ["node-down", "offline"]
    assert kinds(problems(view(controller=None))) == ["no-controller"]


def test_a_restart_must_leave_enough_in_sync() -> None:
    assert kinds(against_restart(view((1, 2)), NodeId(1))) == ["unwritable"]
    assert kinds(against_restart(view((1, 2)), NodeId(3))) == [], "it is out of sync already"
    assert kinds(against_restart(view((1, 2, 3), dead=(2, 3)), NodeId(1))) == ["offline"]
    assert kinds(against_restart(view((1,), replicas=(1,), least=1), NodeId(1))) == ["offline"]
    assert kinds(against_restart(view(), NodeId(9))) == ["unknown-node"]


def test_a_controller_may_go_if_a_majority_stays() -> None:
    assert against_restart(view(), NodeId(102)) == []
    quorum = tuple(VoterView(n, HERE, True, n != 103) for n in nodes(101, 102, 103))
    assert kinds(against_restart(view(quorum=quorum), NodeId(102))) == ["quorum"]
    assert kinds(problems(view(quorum=quorum))) == ["quorum"]


def test_why_a_partition_cannot_be_written() -> None:
    assert not explain_partition(view(), ORDERS).stuck
    offline = explain_partition(view((2,), leader=None, dead=(2,)), ORDERS)
    assert (offline.stuck, offline.state) == (True, "offline")
    assert "node 2 at host:9750 is fenced" in offline.causes[1]
    few = explain_partition(view((1,), dead=(2,)), ORDERS)
    assert few.state == "unwritable"
    assert "node 3 is up and has not caught up yet" in few.causes
    assert few.advice[0] == "start node 2"


def test_why_readers_wait() -> None:
    producer = ProducerInfo(7, 0, 3, 0, 40)
    held = [OpenTransaction(ORDERS, producer, 12, "copier", "ongoing")]
    found = explain_partition(view(), ORDERS, held)
    assert found.stuck
    assert "transaction copier is open from offset 40: 12 offsets wait" in found.causes[0]
    assert found.advice == ("`suiro why txn:copier`",)


def member(revoking: tuple[TopicPartition, ...] = (), heard_ms: int = 99_000) -> GroupMemberInfo:
    return GroupMemberInfo("m-1", "app", "h", "", 3, ("orders",), "", (), revoking, (), heard_ms)


def group(*members: GroupMemberInfo) -> GroupInfo:
    return GroupInfo("billing", "stable", "range", 3, HERE, members, ())


LAG = [PartitionLag(ORDERS, 4, "", 0, 10, 6, 1.0)]


def test_why_a_group_does_not_move() -> None:
    assert explain_group(group(), LAG, 100_000).state == "nobody reads"
    assert explain_group(group(member((ORDERS,))), LAG, 100_000).state == "rebalancing"
    assert explain_group(group(member(heard_ms=1_000)), LAG, 100_000).state == "silent member"
    assert not explain_group(group(member()), LAG, 100_000).stuck
    blocked = [explain_partition(view((2,), leader=None, dead=(2,)), ORDERS)]
    found = explain_group(group(member()), [], 100_000, blocked)
    assert (found.state, "orders-0 is offline" in found.causes[0]) == ("blocked", True)


def txn(state: str) -> TxnInfo:
    listing = TxnListing("copier", state, 7, 2, 40_000, "app", HERE)
    return TxnInfo(listing, 60_000, (ORDERS,), (), (), -1, "", "", -1)


def test_why_a_transaction_is_open() -> None:
    found = explain_transaction(txn("ongoing"), 70_000, [])
    assert found.stuck
    assert "open for 30 s" in found.causes[0]
    assert found.advice[0] == "it is aborted by itself in 30 s"
    assert explain_transaction(txn("prepare_commit"), 70_000, []).state == "ending (commit)"
    assert not explain_transaction(txn("complete_commit"), 70_000, []).stuck
