"""A blank controller founds a quorum only with others that are blank (koperator #337, M7)."""

from __future__ import annotations

from suiro.model.ids import NodeId

from cluster.founding import Found, Introduction, Join, Wait, decide

A, B, C, D = (NodeId(n) for n in (101, 102, 103, 104))
FOUNDERS = (A, B, C)


def blank(node: NodeId, directory: bytes = b"") -> Introduction:
    return Introduction(node, directory or b"%d" % node)


def settled(node: NodeId, founders: dict[NodeId, bytes] | None) -> Introduction:
    return Introduction(node, b"%d" % node, True, founders)


def all_heard(*others: Introduction) -> dict[NodeId, Introduction]:
    return {other.node_id: other for other in others}


ALL = {A: b"101", B: b"102", C: b"103"}


def test_all_blank_found_together() -> None:
    assert decide(blank(A), FOUNDERS, all_heard(blank(B), blank(C))) == Found(ALL)


def test_whoever_is_not_heard_is_waited_for() -> None:
    assert decide(blank(A), FOUNDERS, all_heard(blank(C))) == Wait((B,))
    assert decide(blank(A), FOUNDERS, {}) == Wait((B, C))


def test_one_that_comes_late_finds_itself_among_the_founders() -> None:
    heard = all_heard(settled(B, ALL), settled(C, ALL))
    assert decide(blank(A), FOUNDERS, heard) == Found(ALL)


def test_one_settled_founder_that_lists_it_is_enough() -> None:
    assert decide(blank(A), FOUNDERS, all_heard(settled(C, ALL))) == Found(ALL)


def test_a_lost_volume_never_founds_again() -> None:
    fresh = blank(A, b"another directory")
    assert decide(fresh, FOUNDERS, all_heard(settled(B, ALL), settled(C, ALL))) == Join((B, C))
    assert decide(fresh, FOUNDERS, all_heard(settled(B, ALL))) == Join((B,))
    assert decide(fresh, FOUNDERS, {}) == Wait((B, C))


def test_a_quorum_that_was_formatted_by_hand_is_joined() -> None:
    assert decide(blank(A), FOUNDERS, all_heard(settled(B, None), blank(C))) == Join((B,))


def test_one_more_controller_waits_for_the_founders_and_joins() -> None:
    assert decide(blank(D), FOUNDERS, all_heard(blank(A), blank(B), blank(C))) == Wait(FOUNDERS)
    assert decide(blank(D), FOUNDERS, all_heard(settled(A, ALL))) == Join((A,))


def test_a_volume_lost_while_founding_takes_nobody_with_it() -> None:
    """C had decided with A's first directory: B goes by C, and A can only join."""
    heard = all_heard(blank(A, b"second"), settled(C, ALL))
    assert decide(blank(B), FOUNDERS, heard) == Found(ALL)
    assert decide(blank(A, b"second"), FOUNDERS, all_heard(blank(B), settled(C, ALL))) == Join((C,))
