"""The group machine where a transcript would be long: sizes, limits, soft state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from suiro.model.errors import InvalidRequest, Overloaded, UnknownGroup
from suiro.model.ids import Offset, TopicId, TopicPartition
from suiro.model.limits import GROUP_HISTORY_MAX, GROUP_MEMBERS_MAX

from cluster.groupcoord.codec import decode, encode
from cluster.groupcoord.machine import GroupMachine
from cluster.groupcoord.requests import Commit, CommitRequest, GroupPhase, Message
from cluster.groupcoord.subscriptions import TopicFact, check_pattern

if TYPE_CHECKING:
    from cluster.host.machine import Decision

ORDERS = TopicPartition("orders", 0)


class Bench:
    """A machine, its compacted log, and obedient members."""

    def __init__(self, partitions: int = 2) -> None:
        self.log: dict[bytes, bytes | None] = {}
        self.now = 0
        self.facts = {"orders": TopicFact(TopicId(b"1" * 16), partitions)}
        self.machine = GroupMachine()
        self.machine.on_topics(self.facts)

    def do(self, decision: Decision[Any]) -> Any:
        for record in decision.records:
            self.machine.apply(record)
            key, value = encode(record)
            self.log[key] = value
        self.machine.next_deadline_ms(self.now)
        return decision.reply

    def join(self, member_id: str, **fields: Any) -> Any:
        message = Message(group="g", member_id=member_id, topics=("orders",), **fields)
        return self.do(self.machine.decide_message(message, self.now))

    def pass_time(self, ms: int) -> None:
        self.now += ms
        self.do(self.machine.decide_expire(self.now, self.now))
        self.machine.on_swept(self.now)

    def settle(self) -> int:
        """Everyone does what it is told until nothing changes; replies how many rounds."""
        for rounds in range(100):
            self.pass_time(60)
            before = len(self.log), self.machine.describe("g")
            for member in self.machine.describe("g").members:
                self.machine.on_heard("g", member.member_id, 1, self.now)
                message = Message(
                    group="g",
                    member_id=member.member_id,
                    member_epoch=member.member_epoch,
                    owned=frozenset(member.assigned),
                )
                self.do(self.machine.decide_message(message, self.now))
            if before == (len(self.log), self.machine.describe("g")):
                return rounds
        raise AssertionError("it does not settle")


def test_fifty_members_join_one_by_one_and_ten_flap() -> None:
    """G4: one computation for each change, and a share moves with each member, no more."""
    bench = Bench(1_000)
    moved = 0
    for number in range(50):
        bench.join(f"m{number:02}")
        assert bench.settle() <= 3
        moved += bench.machine.describe("g").history[-1].moved
    assert moved <= 1_000 + sum(1_000 // count for count in range(2, 51))
    epoch = bench.machine.describe("g").epoch
    for number in range(10):
        bench.do(bench.machine.decide_leave("g", f"m{number:02}", "", bench.now))
        bench.join(f"n{number:02}")
    assert bench.settle() <= 3
    view = bench.machine.describe("g")
    assert view.phase is GroupPhase.STABLE
    assert view.epoch == epoch + 20
    assert view.history[-1].epoch == view.epoch
    assert view.history[-2].epoch == epoch
    assert view.history[-1].moved == 200
    assert {len(member.assigned) for member in view.members} == {20}
    assert len(view.history) == GROUP_HISTORY_MAX


def test_the_compacted_log_is_the_state() -> None:
    bench = Bench(6)
    for name in ("a", "b", "c"):
        bench.join(name)
    bench.settle()
    bench.do(bench.machine.decide_leave("g", "b", "", bench.now))
    bench.pass_time(60)
    again = GroupMachine()
    for key, value in bench.log.items():
        again.apply(decode(key, value))
    again.on_topics(bench.facts)
    assert again.describe("g") == bench.machine.describe("g")
    again.next_deadline_ms(bench.now)
    assert again.decide_expire(bench.now + 900, 0).records == ()


def test_a_coordinator_that_stood_still_blames_nobody() -> None:
    bench = Bench()
    bench.join("a", session_timeout_ms=1_000)
    bench.settle()
    bench.now += 60_000
    bench.machine.on_stood_still(bench.now)
    bench.pass_time(0)
    assert [member.member_id for member in bench.machine.describe("g").members] == ["a"]
    bench.pass_time(1_100)
    assert bench.machine.describe("g").members == ()


def test_a_broken_stream_counts_only_if_it_is_the_newest() -> None:
    bench = Bench()
    bench.join("a")
    bench.machine.on_heard("g", "a", 2, bench.now)
    bench.machine.on_broken("g", "a", 1, bench.now)
    bench.pass_time(5_000)
    assert bench.machine.describe("g").members
    bench.machine.on_broken("g", "a", 2, bench.now)
    bench.pass_time(600)
    assert not bench.machine.describe("g").members


def test_what_is_due_stays_due_until_it_is_done() -> None:
    bench = Bench()
    bench.join("a")
    first = bench.machine.decide_expire(60, 60)
    assert bench.machine.decide_expire(60, 60) == first
    assert first.records


def test_unknown_groups_and_limits() -> None:
    bench = Bench()
    with pytest.raises(UnknownGroup):
        bench.machine.describe("g")
    with pytest.raises(UnknownGroup):
        bench.machine.decide_delete("g")
    assert bench.machine.list_groups() == []
    with pytest.raises(InvalidRequest):
        bench.join("")
    with pytest.raises(InvalidRequest):
        bench.join("a", session_timeout_ms=1)
    with pytest.raises(InvalidRequest):
        bench.join("a" * 1_000)
    bench.join("first")
    (first,) = bench.machine.groups["g"].members.values()
    for number in range(1, GROUP_MEMBERS_MAX):
        bench.machine.apply(replace(first, member_id=f"m{number}"))
    with pytest.raises(Overloaded):
        bench.join("one too many")


def test_one_offset_is_refused_and_the_others_are_not() -> None:
    bench = Bench()
    offsets = (Commit(ORDERS, Offset(-1)), Commit(TopicPartition("orders", 1), Offset(3)))
    outcomes = bench.do(bench.machine.decide_commit(CommitRequest(group="g", offsets=offsets), 0))
    assert [outcome.error is None for outcome in outcomes] == [False, True]
    assert bench.machine.list_groups() == [("g", GroupPhase.EMPTY, 0)]


@pytest.mark.parametrize(
    ("pattern", "is_fine"),
    [
        ("orders", True),
        (r"orders-(eu|us)?", True),
        (r"[a-z+*]+-\d+", True),
        ("(a|b)*", False),
        ("(a*)+", False),
        (".*.*.*.*x", False),
        ("a" * 300, False),
    ],
)
def test_patterns_that_could_take_for_ever_are_refused(pattern: str, is_fine: bool) -> None:
    if is_fine:
        check_pattern(pattern)
    else:
        with pytest.raises(InvalidRequest):
            check_pattern(pattern)
