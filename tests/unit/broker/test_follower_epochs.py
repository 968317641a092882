"""Where two logs part, against a twin that compares every record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from suiro.model.ids import LeaderEpoch, Offset

from cluster.broker.replication_epochs import Divergence, Position, divergence, truncation_point
from tests.sim.replication_log import MemoryLog, Record

if TYPE_CHECKING:
    from collections.abc import Sequence

LOGS = 4


def log_of(*epochs: int, start: int = 0) -> MemoryLog:
    """A log whose records have these epochs; a value is its (epoch, offset)."""
    log = MemoryLog()
    log.restart_at(Offset(start))
    for epoch in epochs:
        log.append([Record(LeaderEpoch(epoch), epoch * 1000 + log.log_end)])
    return log


def position(log: MemoryLog) -> Position:
    return Position(LeaderEpoch(99), log.log_start, log.log_end, log.last_epoch)


def common_end(one: MemoryLog, other: MemoryLog) -> int:
    offset = 0
    while one.has(offset) and other.has(offset) and one.at(offset) == other.at(offset):
        offset += 1
    return offset


def converge(leader: MemoryLog, follower: MemoryLog) -> int:
    """Cut as the protocol says; the number of rounds it took."""
    rounds = 0
    while (diverging := divergence(leader, position(follower))) is not None:
        end = truncation_point(follower, diverging)
        assert end < follower.log_end, "no progress"
        follower.truncate_to(end)
        rounds += 1
    return rounds


@given(
    st.lists(
        st.tuples(
            st.integers(0, LOGS - 1),  # who leads the epoch
            st.integers(0, 3),  # how many records it writes
            st.lists(st.tuples(st.integers(0, LOGS - 1), st.integers(0, 12)), max_size=3),
        ),
        max_size=8,
    ),
    st.integers(0, LOGS - 1),
    st.integers(0, LOGS - 1),
)
def test_the_protocol_finds_the_largest_common_point(
    epochs: Sequence[tuple[int, int, Sequence[tuple[int, int]]]], leading: int, following: int
) -> None:
    logs = [MemoryLog() for _ in range(LOGS)]
    for epoch, (leader, count, copies) in enumerate(epochs):
        source = logs[leader]
        for _ in range(count):
            source.append([Record(LeaderEpoch(epoch), epoch * 1000 + source.log_end)])
        for target, upto in copies:
            if target != leader:
                common = common_end(source, logs[target])
                logs[target].truncate_to(Offset(common))
                logs[target].append(source.records[common:upto])
    leader_log, follower_log = logs[leading], logs[following]
    expected = common_end(leader_log, follower_log)
    rounds = converge(leader_log, follower_log)
    assert follower_log.log_end == expected
    assert rounds <= len(epochs) + 1


def test_one_look_is_not_enough() -> None:
    """KIP-279: the leader's answer names an epoch that the follower never saw."""
    leader = log_of(0, 0, 1, 1, 3)
    follower = log_of(0, 0, 0, 2, 2)
    assert divergence(leader, position(follower)) == Divergence(LeaderEpoch(1), Offset(4))
    assert converge(leader, follower) == 2
    assert follower.log_end == 2


def test_an_epoch_that_the_leader_never_saw_is_no_match_however_short() -> None:
    leader = log_of(0, 0, 0, 2)
    follower = log_of(0, 1)
    assert divergence(leader, position(follower)) == Divergence(LeaderEpoch(0), Offset(3))
    converge(leader, follower)
    assert follower.log_end == 1


def test_a_record_from_before_its_epoch_began_is_no_match() -> None:
    """A bit flipped in the leader epoch of the follower's last record; what is appended behind it
    would be of an older epoch, which no log takes.
    """
    leader = log_of(4, 4, 4, 5, 5)
    follower = log_of(4, 5)
    assert divergence(leader, position(follower)) == Divergence(LeaderEpoch(4), Offset(3))
    assert converge(leader, follower) == 1
    assert follower.log_end == 1
    assert divergence(leader, position(log_of(4, 4, 4, 5))) is None


def test_what_the_leader_no_longer_has_it_cannot_say() -> None:
    leader = log_of(5, 5, start=10)
    assert divergence(leader, position(log_of(5, 5, start=8))) is None
    assert divergence(leader, position(log_of(5, start=10))) is None


def test_an_empty_follower_matches_wherever_the_leader_still_goes_on() -> None:
    assert divergence(log_of(0, 1), position(MemoryLog())) is None


def test_a_follower_before_the_leaders_start_is_not_asked_to_cut() -> None:
    leader = log_of(4, 4, start=10)
    assert divergence(leader, position(log_of(0, 0, 1))) is None


def test_a_leader_whose_log_was_deleted_to_its_end_makes_nobody_cut_below_it() -> None:
    leader = MemoryLog()
    leader.restart_at(Offset(3))
    ahead = log_of(0, 0, 0, 0, 0)
    assert converge(leader, ahead) == 1
    assert ahead.log_end == 3
    assert divergence(leader, position(log_of(0, 0, 1))) is None


def test_an_empty_follower_beyond_the_leaders_end_comes_back() -> None:
    """Only after an unclean election: it began at the start of a leader that is gone."""
    follower = MemoryLog()
    follower.restart_at(Offset(9))
    diverging = divergence(log_of(0, 0), position(follower))
    assert diverging is not None
    assert truncation_point(follower, diverging) == 2
