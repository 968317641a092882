"""The leader core, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from suiro.model.errors import (
    NotEnoughReplicas,
    OffsetNotAvailable,
    StaleBrokerEpoch,
    StalePartitionEpoch,
    TimedOut,
)
from suiro.model.ids import NodeId, Offset, PartitionEpoch

from cluster.broker.leader import PROPOSAL_RETRY_MS, REPLICA_LAG_TIME_MAX_MS
from cluster.broker.replication_effects import (
    Beat,
    Diverging,
    EpochStarted,
    HighWatermark,
    IsrChanged,
    ProposeIsr,
    Read,
    Ready,
    Refuse,
)
from cluster.broker.replication_progress import NO_STREAM
from tests.unit.broker.replication_kit import EPOCH, START_MS, Kit, node, state

TWO, THREE = NodeId(2), NodeId(3)


def proposal(effects: list[object]) -> ProposeIsr:
    (found,) = (effect for effect in effects if isinstance(effect, ProposeIsr))
    return found


# -- the high watermark ---------------------------------------------------------------------------


def test_a_leader_alone_commits_what_it_holds() -> None:
    kit = Kit(1, records=3)
    assert kit.started == [EpochStarted(EPOCH, Offset(3)), HighWatermark(Offset(3))]
    assert kit.append()[-1] == HighWatermark(Offset(4))


def test_it_waits_for_everyone_in_the_isr_and_for_nobody_else() -> None:
    kit = Kit(1, 2)
    kit.join(2, 0)
    kit.join(3, 0)
    kit.append(3)
    assert HighWatermark(Offset(3)) not in kit.ack(3, 3)
    assert HighWatermark(Offset(2)) in kit.ack(2, 2)


def test_it_waits_for_its_own_sync() -> None:
    kit = Kit(1, 2)
    kit.join(2, 0)
    kit.append(2)
    kit.leader.on_held(Offset(1))
    assert HighWatermark(Offset(1)) in kit.ack(2, 2)
    assert kit.leader.on_held(Offset(2)) == [HighWatermark(Offset(2))]


def test_a_member_that_has_said_nothing_holds_nothing() -> None:
    kit = Kit(1, 2, 3, records=2)
    assert HighWatermark(Offset(2)) not in kit.join(2, 2)
    assert HighWatermark(Offset(2)) in kit.join(3, 2)


def test_it_never_goes_back() -> None:
    kit = Kit(1, 2, records=4, high_watermark=4)
    assert kit.join(2, 1) == [Ready(TWO, 2)]
    assert kit.leader.high_watermark == 4


def test_it_is_not_above_a_log_that_lost_its_tail() -> None:
    assert Kit(1, 2, records=2, high_watermark=9).leader.high_watermark == 2


def test_a_new_leader_does_not_know_it_before_its_log_is_committed() -> None:
    kit = Kit(1, 2, records=3, high_watermark=1)
    with pytest.raises(OffsetNotAvailable, match="committed up to 1 of the 3"):
        kit.leader.check_high_watermark()
    kit.join(2, 3)
    kit.leader.check_high_watermark()


def test_min_insync_counts_what_the_controller_has_committed() -> None:
    kit = Kit(1, records=1)
    kit.join(2, 1)  # proposed, not accepted
    with pytest.raises(NotEnoughReplicas, match=r"in sync are \[1\], min.insync.replicas is 2"):
        kit.leader.is_committed(Offset(1), 2)
    assert kit.leader.is_committed(Offset(1), 1)
    assert not kit.leader.is_committed(Offset(2), 2)


# -- acks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [1, 3])
def test_acks_of_another_stream_do_not_count(stream: int) -> None:
    kit = Kit(1, 2, records=2)
    kit.announce(2, 2)
    assert kit.ack(2, 2, stream=stream) == []
    assert kit.leader.high_watermark == 0


def test_acks_of_another_epoch_do_not_count() -> None:
    kit = Kit(1, 2, records=2)
    kit.announce(2, 2)
    assert kit.leader.on_ack(TWO, 2, EPOCH - 1, Offset(2), START_MS) == []


def test_acks_of_a_log_that_diverges_do_not_count() -> None:
    kit = Kit(1, 2, records=2)
    kit.announce(2, 5)
    assert kit.ack(2, 2) == []


def test_acks_of_a_stranger_do_not_count() -> None:
    kit = Kit(1, records=2)
    assert kit.leader.on_ack(NodeId(9), 9, EPOCH, Offset(2), START_MS) == []


def test_a_new_incarnation_holds_nothing_yet() -> None:
    kit = Kit(1, 2, records=2)
    kit.join(2, 2)
    kit.append()
    kit.announce(2, 0, stream=8, broker_epoch=21)
    assert kit.leader.lag(TWO) is None
    assert kit.ack(2, 3) == []


def test_an_earlier_incarnation_cannot_take_over_again() -> None:
    kit = Kit(1, 2, records=2)
    kit.announce(2, 2, stream=8, broker_epoch=21)
    (refusal,) = kit.announce(2, 2, stream=9, broker_epoch=20)
    assert isinstance(refusal, Refuse)
    assert isinstance(refusal.error, StaleBrokerEpoch)
    assert refusal.stream == 9


def test_after_its_stream_closed_an_older_one_may_speak() -> None:
    kit = Kit(1, 2, records=2)
    kit.announce(2, 2, stream=9)
    assert isinstance(kit.announce(2, 2, stream=8)[0], Refuse)
    kit.leader.on_stream_closed(TWO, 9)
    assert kit.announce(2, 2, stream=8) == [Ready(TWO, 8)]


@pytest.mark.parametrize(
    ("epoch", "error"), [(EPOCH - 1, "FencedLeaderEpoch"), (EPOCH + 1, "UnknownLeaderEpoch")]
)
def test_positions_of_another_epoch_are_refused(epoch: int, error: str) -> None:
    (refusal,) = Kit(1, 2).announce(2, 0, leader_epoch=epoch)
    assert isinstance(refusal, Refuse)
    assert type(refusal.error).__name__ == error


# -- what is sent ---------------------------------------------------------------------------------


def test_what_is_appended_meanwhile_travels_in_the_next_part() -> None:
    kit = Kit(1, 2)
    kit.join(2, 0)
    for _ in range(5):
        kit.append()
        if kit.leader.next_push(TWO) is not None:
            kit.push(2)
    assert kit.leader.next_push(TWO) is None  # two parts are under way
    assert Ready(TWO, 2) in kit.ack(2, 1)
    push = kit.leader.next_push(TWO)
    assert isinstance(push, Read)
    assert push.start == 2


def test_a_position_is_answered_even_if_there_is_nothing_to_send() -> None:
    kit = Kit(1, 2, records=2)
    kit.announce(2, 2)
    assert kit.leader.next_push(TWO) == Beat(Offset(2))
    kit.push(2)
    assert kit.leader.next_push(TWO) is None


def test_a_divergence_is_sent_once_and_nothing_after_it() -> None:
    kit = Kit(1, 2, records=2)
    kit.announce(2, 5)
    assert isinstance(kit.leader.next_push(TWO), Diverging)
    kit.push(2)
    assert kit.leader.next_push(TWO) is None


def test_an_idle_follower_hears_of_the_high_watermark_with_a_tick() -> None:
    kit = Kit(1, 2)
    kit.join(2, 0)
    kit.append()
    kit.push(2)
    kit.ack(2, 1)
    assert kit.leader.next_push(TWO) is None
    assert kit.leader.tick(START_MS + 500) == [Ready(TWO, 2)]
    assert kit.leader.next_push(TWO) == Beat(Offset(1))


def test_a_follower_that_needs_what_is_deleted_is_sent_the_start() -> None:
    kit = Kit(1, 2, records=9)
    kit.log.trim_to(Offset(5))
    kit.announce(2, 3)
    push = kit.leader.next_push(TWO)
    assert isinstance(push, Read)
    assert push.start == 5


# -- the ISR --------------------------------------------------------------------------------------


def test_a_follower_is_proposed_when_it_has_caught_up() -> None:
    kit = Kit(1, 2, records=3)
    kit.join(2, 3)
    kit.append(2)
    assert not any(isinstance(effect, ProposeIsr) for effect in kit.join(3, 2))
    found = proposal([*kit.ack(3, 3)])
    assert [(m.node_id, m.broker_epoch) for m in found.members] == [(1, 10), (2, 20), (3, 30)]
    assert found.partition_epoch == 7


@pytest.mark.parametrize("known", [None, node(3, 31), node(3, 30, fenced=True)])
def test_only_an_available_incarnation_that_was_seen_is_proposed(known: object) -> None:
    kit = Kit(1, records=3)
    if known is None:
        del kit.nodes[THREE]
    else:
        kit.nodes[THREE] = known  # type: ignore[assignment]
    assert not any(isinstance(effect, ProposeIsr) for effect in kit.join(3, 3))


def test_who_is_proposed_holds_the_high_watermark_back() -> None:
    kit = Kit(1)
    kit.join(2, 0)
    assert kit.leader.maximal_isr == [1, 2]
    assert not any(isinstance(effect, HighWatermark) for effect in kit.append())
    assert HighWatermark(Offset(1)) in kit.ack(2, 1)


def test_one_proposal_at_a_time() -> None:
    kit = Kit(1)
    kit.join(2, 0)
    assert not any(isinstance(effect, ProposeIsr) for effect in kit.join(3, 0))


def test_after_a_refusal_it_never_was() -> None:
    kit = Kit(1)
    found = proposal([*kit.join(2, 0)])
    kit.append()
    later = START_MS + 10
    assert kit.leader.on_outcome(found, StalePartitionEpoch("x"), later) == [
        HighWatermark(Offset(1))
    ]
    assert kit.leader.tick(later + 1) == [Ready(TWO, 2)]  # not proposed again at once
    kit.ack(2, 1, now_ms=later)
    assert proposal([*kit.leader.tick(later + PROPOSAL_RETRY_MS)]).nodes == (1, 2)


def test_without_an_answer_its_members_count_until_the_partition_epoch_moves() -> None:
    kit = Kit(1)
    found = proposal([*kit.join(2, 0)])
    assert kit.leader.on_outcome(found, TimedOut("x"), START_MS) == []
    kit.append()
    assert kit.leader.maximal_isr == [1, 2]
    again = proposal([*kit.ack(2, 1, now_ms=START_MS + PROPOSAL_RETRY_MS)])
    assert kit.leader.on_outcome(again, StalePartitionEpoch("x"), START_MS) == []
    assert kit.leader.maximal_isr == [1, 2]  # the first one may still have been accepted
    kit.leader.on_state(state(1, partition_epoch=8), START_MS)
    assert 2 not in kit.leader.state.isr


def test_an_answer_to_another_proposal_changes_nothing() -> None:
    kit = Kit(1)
    found = proposal([*kit.join(2, 0)])
    kit.leader.on_state(state(1, partition_epoch=8), START_MS)
    assert kit.leader.on_outcome(found, StalePartitionEpoch("x"), START_MS) == []


def test_an_accepted_proposal_waits_for_the_metadata() -> None:
    kit = Kit(1)
    found = proposal([*kit.join(2, 0)])
    assert kit.leader.on_outcome(found, None, START_MS) == []
    assert kit.leader.state.isr == (1,)
    effects = kit.leader.on_state(state(1, 2, partition_epoch=8), START_MS)
    assert effects == [IsrChanged(kit.leader.state.partition_epoch, (NodeId(1),), (NodeId(1), TWO))]


def test_an_older_state_is_ignored() -> None:
    kit = Kit(1, 2)
    assert kit.leader.on_state(state(1, partition_epoch=6), START_MS) == []
    assert kit.leader.state.isr == (1, 2)


def ticks(kit: Kit, start: int, end: int) -> list[object]:
    return [effect for now in range(start, end, 500) for effect in kit.leader.tick(now)]


def test_a_follower_that_lags_too_long_is_proposed_out() -> None:
    kit = Kit(1, 2, 3)
    kit.join(2, 0)
    kit.join(3, 0)
    kit.append(2)
    kit.ack(2, 2)
    kit.ack(3, 1)
    end = START_MS + REPLICA_LAG_TIME_MAX_MS
    assert not any(isinstance(e, ProposeIsr) for e in ticks(kit, START_MS, end))
    assert proposal(ticks(kit, end, end + 1000)).nodes == (1, 2)


def test_a_follower_that_is_always_a_little_behind_keeps_up() -> None:
    kit = Kit(1, 2, 3)
    kit.join(2, 0)
    kit.join(3, 0)
    for now in range(START_MS, START_MS + 3 * REPLICA_LAG_TIME_MAX_MS, 100):
        kit.append(2, now_ms=now)
        kit.ack(2, kit.log.log_end, now_ms=now)
        kit.ack(3, kit.log.log_end - 1, now_ms=now)
        assert not any(isinstance(effect, ProposeIsr) for effect in kit.leader.tick(now))


def test_an_idle_follower_does_not_lag() -> None:
    kit = Kit(1, 2, records=2)
    kit.join(2, 2)
    end = START_MS + 3 * REPLICA_LAG_TIME_MAX_MS
    assert not any(isinstance(e, ProposeIsr) for e in ticks(kit, START_MS, end))
    kit.append(now_ms=end)
    assert not any(isinstance(e, ProposeIsr) for e in ticks(kit, end, end + 2000))


def test_a_pause_of_the_leader_is_not_its_followers_lag() -> None:
    kit = Kit(1, 2)
    kit.join(2, 0)
    kit.append()
    woke = START_MS + 60_000
    assert not any(isinstance(e, ProposeIsr) for e in kit.leader.tick(woke))
    assert proposal(ticks(kit, woke, woke + REPLICA_LAG_TIME_MAX_MS + 1000)).nodes == (1,)


# -- replicas that come and go --------------------------------------------------------------------


def test_a_replica_that_was_removed_and_added_again_begins_anew() -> None:
    kit = Kit(1, 2, records=2)
    kit.join(2, 2)
    kit.join(3, 2)
    kit.leader.on_state(state(1, 2, replicas=(1, 2), partition_epoch=8), START_MS)
    assert kit.ack(3, 2) == []
    effects = kit.leader.on_state(state(1, 2, partition_epoch=9), START_MS)
    assert [e.node for e in effects if isinstance(e, Refuse)] == [3]
    assert kit.ack(3, 2) == []
    assert kit.leader.lag(THREE) is None


def test_it_is_believed_only_once_it_knows_of_that() -> None:
    """Else it deletes its log when it hears of the removal, and is in the ISR by then."""
    kit = Kit(1, 2, records=2)
    kit.leader.on_state(state(1, 2, replicas=(1, 2), partition_epoch=8), START_MS)
    kit.leader.on_state(state(1, 2, partition_epoch=9), START_MS)
    assert isinstance(kit.announce(3, 2, partition_epoch=8)[0], Refuse)
    assert kit.announce(3, 2, partition_epoch=9) == [Ready(THREE, 3)]


def test_a_member_of_the_isr_is_believed_whatever_it_knows() -> None:
    """A new leader must not wait for its followers' metadata: they may be a little behind."""
    assert Kit(1, 2).announce(2, 0, partition_epoch=3) == [Ready(TWO, 2)]


def test_so_does_one_where_states_were_missed() -> None:
    kit = Kit(1, 2, records=2)
    kit.join(2, 2)
    kit.announce(3, 2)
    effects = kit.leader.on_state(state(1, 2, partition_epoch=9), START_MS)
    (refusal,) = (e for e in effects if isinstance(e, Refuse))
    assert (refusal.node, refusal.stream) == (3, NO_STREAM)
    assert kit.ack(3, 2) == []
    assert kit.leader.lag(TWO) == 0  # in the ISR before and after: it never left


def test_what_a_replica_held_before_it_went_offline_no_longer_counts() -> None:
    """It may have begun anew since: row 7 without a restart."""
    kit = Kit(1, 2, records=2)
    kit.join(2, 2)
    kit.announce(3, 2)
    before = kit.leader.state
    marked = replace(
        before, offline=(THREE,), partition_epoch=PartitionEpoch(before.partition_epoch + 1)
    )
    kit.leader.on_state(marked, START_MS)
    back = replace(marked, offline=(), partition_epoch=PartitionEpoch(marked.partition_epoch + 1))
    kit.leader.on_state(back, START_MS)
    assert kit.ack(3, 2) == [], "said before it went offline, heard after it came back"
