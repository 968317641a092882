"""The member's side of a group: what it says and does, message by message."""

from __future__ import annotations

from itertools import count

from suiro._proto import groupcoord_pb2 as pb
from suiro._proto.common_pb2 import Error
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.membership import (
    Assign,
    Compute,
    Connect,
    Fail,
    Lost,
    MemberConfig,
    Membership,
    Revoke,
    Say,
)
from suiro.model.error_base import ErrorCode
from suiro.model.ids import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def joined(**options: int) -> Membership:
    """A member that holds A and B at epoch 2."""
    numbers = count(1)
    config = MemberConfig(
        group="g",
        topics=("t",),
        session_timeout_ms=1_000,
        heartbeat_interval_ms=300,
        processing_timeout_ms=options.get("processing_timeout_ms"),
    )
    member = Membership(config, lambda: f"m{next(numbers)}")
    assert member.start(0) == [Connect()]
    (said,) = member.on_connected(0)
    assert isinstance(said, Say)
    assert (said.message.member_id, said.message.member_epoch) == ("m1", 0)
    assert list(said.message.topics) == ["t"]
    assert member.on_notice(notice(1, answers=1), 10) == [_heard(member, 2, 1)]
    taken = member.on_notice(notice(2, A, B), 20)
    assert taken == [Assign((A, B)), _heard(member, 3, 2)]
    return member


def _heard(member: Membership, number: int, epoch: int) -> Say:
    owned = [WirePartition(topic=p.topic, partition=p.partition) for p in sorted(member.held)]
    return Say(
        pb.MemberMessage(
            group="g", member_id=member.member_id, member_epoch=epoch, owned=owned, number=number
        )
    )


def notice(
    epoch: int, *assigned: TopicPartition, answers: int = 0, joined_epoch: int = 1
) -> pb.MemberNotice:
    return pb.MemberNotice(
        member_id="m1",
        member_epoch=epoch,
        joined_epoch=joined_epoch,
        has_assignment=True,
        assigned=[WirePartition(topic=p.topic, partition=p.partition) for p in assigned],
        answers=answers,
    )


def error(code: ErrorCode) -> pb.MemberNotice:
    return pb.MemberNotice(error=Error(code=int(code), message="because"))  # type: ignore[arg-type]


def test_what_is_new_is_taken_at_once_and_the_rest_is_given_up_before_the_answer() -> None:
    member = joined()
    assert member.on_notice(notice(3, A, C, answers=3), 30) == [Revoke((B,)), Assign((C,))]
    assert (member.told_epoch, member.carried_out) == (3, 2)
    (beat,) = member.on_time(400)
    assert beat == _heard(member, 4, 2)  # it still holds B, and says so
    assert member.on_given_up([B], 410) == [_heard(member, 5, 3)]
    assert member.held == {A, C}


def test_an_old_or_foreign_notice_changes_nothing() -> None:
    member = joined()
    assert member.on_notice(notice(1), 30) == []
    foreign = notice(9, C)
    foreign.member_id = "other"
    assert member.on_notice(foreign, 30) == []
    assert member.held == {A, B}


def test_what_is_given_back_while_it_is_given_up_is_assigned_again() -> None:
    member = joined()
    assert member.on_notice(notice(3, A), 30) == [Revoke((B,))]
    assert member.on_notice(notice(4, A, B), 40) == []
    assert member.on_given_up([B], 50) == [Assign((B,)), _heard(member, 4, 4)]


def test_a_lost_connection_loses_nothing() -> None:
    member = joined()
    assert member.on_disconnected() == [Connect()]
    assert member.on_notice(error(ErrorCode.NOT_COORDINATOR), 100) == [Connect()]
    (said,) = member.on_connected(200)
    assert isinstance(said, Say)
    assert (said.message.member_id, said.message.member_epoch) == ("m1", 2)
    assert len(said.message.owned) == 2
    assert list(said.message.topics) == ["t"]


def test_who_is_not_answered_is_kept_waiting() -> None:
    member = joined()
    member.on_notice(notice(2, answers=3), 30)
    assert not member.is_kept_waiting(10_000)
    (beat,) = member.on_time(320)
    assert isinstance(beat, Say)
    assert member.on_notice(notice(2), 400) == []  # a push is no answer
    assert (member.is_kept_waiting(569), member.is_kept_waiting(570)) == (False, True)
    member.on_disconnected()
    member.on_connected(580)
    assert (member.is_kept_waiting(829), member.is_kept_waiting(830)) == (False, True)
    assert member.held == {A, B}


def test_one_that_is_out_has_lost_what_it_held_and_joins_under_another_id() -> None:
    for code in (ErrorCode.UNKNOWN_MEMBER, ErrorCode.STALE_MEMBER_EPOCH):
        member = joined()
        assert member.on_notice(error(code), 30) == [Lost((A, B)), Connect()]
        (said,) = member.on_connected(40)
        assert isinstance(said, Say)
        assert (said.message.member_id, said.message.member_epoch) == ("m2", 0)
        assert not said.message.owned


def test_a_second_life_under_the_same_id_is_not_this_one() -> None:
    member = joined()
    assert member.on_notice(notice(9, A, joined_epoch=8), 30) == [Lost((A, B)), Connect()]
    assert member.member_id == "m2"


def test_a_fenced_instance_is_the_end() -> None:
    member = joined()
    done = member.on_notice(error(ErrorCode.FENCED_INSTANCE), 30)
    assert done == [Lost((A, B)), Fail(ErrorCode.FENCED_INSTANCE, "because")]
    assert member.on_connected(40) == member.on_time(9_999) == []


def test_the_lease_runs_from_when_the_answered_message_was_sent() -> None:
    member = joined()
    member.on_disconnected()
    assert member.on_time(999) == []
    assert member.next_deadline_ms() == 1_000
    assert member.on_time(1_000) == [Lost((A, B)), Connect()]


def test_an_answer_extends_the_lease_and_a_push_does_not() -> None:
    member = joined()
    member.on_notice(notice(2, answers=3), 30)
    (beat,) = member.on_time(320)
    assert isinstance(beat, Say)
    member.on_notice(notice(2), 900)
    assert member.on_notice(notice(2, answers=beat.message.number), 990) == []
    member.on_disconnected()
    assert member.on_time(1_319) == []
    assert member.on_time(1_320)[0] == Lost((A, B))


def test_an_assignment_after_the_lease_is_over_is_not_taken() -> None:
    member = joined()
    assert member.on_notice(notice(3, A, C), 5_000) == [Lost((A, B)), Connect()]


def test_a_slow_handler_keeps_its_partitions_and_a_stuck_one_does_not() -> None:
    member = joined(processing_timeout_ms=900)
    member.on_notice(notice(2, answers=3), 30)
    member.on_progress(500)
    (beat,) = member.on_time(950)
    assert isinstance(beat, Say)
    assert member.on_notice(notice(2, answers=beat.message.number), 960) == []
    bye, lost = member.on_time(1_400)
    assert lost == Lost((A, B))
    assert isinstance(bye, Say)
    assert bye.message.leaving


def test_a_stuck_handler_is_back_when_it_polls_again() -> None:
    member = joined(processing_timeout_ms=900)
    former = member.member_id
    (bye, _) = member.on_time(960)
    assert isinstance(bye, Say)
    assert bye.message.member_id == former
    assert member.on_disconnected() == member.on_connected(970) == member.on_time(10_000) == []
    member.on_progress(10_000)
    assert member.come_back() == [Connect()]
    assert member.come_back() == []
    (join,) = member.on_connected(10_010)
    assert isinstance(join, Say)
    assert (join.message.member_epoch, join.message.member_id != former) == (0, True)


def test_leaving_says_so_once() -> None:
    member = joined()
    (bye,) = member.leave("done", 50)
    assert isinstance(bye, Say)
    assert (bye.message.leaving, bye.message.leave_reason) == (True, "done")
    assert not bye.message.owned
    assert member.on_disconnected() == member.on_time(400) == []


def test_another_subscription_has_another_version() -> None:
    member = joined()
    (said,) = member.subscribe(("t", "u"), "", 50)
    assert isinstance(said, Say)
    assert (list(said.message.topics), said.message.subscription_version) == (["t", "u"], 2)


def test_a_users_own_assignor_is_asked_for_and_answered() -> None:
    member = joined()
    asked = notice(2)
    asked.compute.group_epoch = 7
    assert member.on_notice(asked, 30) == [Compute(asked.compute)]
    (said,) = member.on_computed(7, {"m1": [B, A]}, 40)
    assert isinstance(said, Say)
    assert said.message.computed.group_epoch == 7
    assert [p.partition for p in said.message.computed.members[0].owned] == [0, 1]
