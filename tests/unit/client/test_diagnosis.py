"""What the doctor says of what it met."""

from __future__ import annotations

import pytest
from suiro.cluster_view import Problem
from suiro.diagnosis import (
    Door,
    Visit,
    judge_bootstrap,
    judge_clocks,
    judge_nodes,
    judge_problems,
    judge_versions,
)
from suiro.model.ids import Address, NodeId

HERE = Address("host", 9750)


def met(node: int, *, skew_ms: int = 0, roles: tuple[str, ...] = ("broker",)) -> Visit:
    return Visit(HERE, Door.NODE, "", NodeId(node), "id", roles, "suiro 1", True, skew_ms)


@pytest.mark.parametrize(
    ("door", "words"),
    [
        (Door.REFUSED, "check the port"),
        (Door.HTTP, "port for metrics"),
        (Door.NO_SUCH_NAME, "DNS"),
        (Door.SILENT, "firewalls"),
        (Door.OTHER, "another program"),
    ],
)
def test_a_wrong_address_is_named(door: Door, words: str) -> None:
    (found,) = judge_bootstrap([Visit(HERE, door)])
    assert (found.level, words in found.advice) == ("error", True)


def test_clients_begin_at_brokers() -> None:
    wrong = judge_bootstrap([met(101, roles=("controller",)), met(201, roles=("group",)), met(1)])
    assert [found.level for found in wrong] == ["error", "error", "ok"]


def test_a_dead_broker_and_a_stranger_at_its_address() -> None:
    found = judge_nodes(
        {NodeId(1): met(1), NodeId(2): Visit(HERE, Door.REFUSED), NodeId(3): met(1)}
    )
    assert [f.level for f in found] == ["ok", "error", "error"]
    assert "is dead" in found[1].advice
    assert "is node 1" in found[2].text


def test_one_clock_is_wrong_or_ours_is() -> None:
    (fine,) = judge_clocks([met(1), met(2, skew_ms=400)])
    assert fine.level == "ok"
    (one,) = judge_clocks([met(1), met(2, skew_ms=-300_000)])
    assert (one.subject, "300.0 s behind" in one.text) == ("node 2", True)
    (ours,) = judge_clocks([met(1, skew_ms=9_000), met(2, skew_ms=9_100)])
    assert (ours.subject, "9.0 s behind all" in ours.text) == ("this machine", True)
    assert judge_clocks([]) == []


def test_versions_and_problems() -> None:
    assert judge_versions([met(1), met(2)])[0].level == "ok"
    older = Visit(HERE, Door.NODE, software="suiro 0")
    assert judge_versions([met(1), older])[0].level == "warning"
    assert judge_problems([])[0].level == "ok"
    assert judge_problems([Problem("offline", "orders-0", "…")])[0].level == "error"
    assert judge_problems([Problem("node-down", "node 2", "…")])[0].level == "warning"
