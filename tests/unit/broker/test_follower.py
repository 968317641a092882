"""The follower core, rule by rule."""

from __future__ import annotations

import pytest
from suiro.model.errors import OffsetNotAvailable
from suiro.model.ids import LeaderEpoch, Offset

from cluster.broker.follower import ANNOUNCE_RETRY_MS, Follower, Part
from cluster.broker.replication_effects import (
    Ack,
    Announce,
    Append,
    HighWatermark,
    RestartAt,
    TrimTo,
    TruncateReason,
    TruncateTo,
)
from cluster.broker.replication_epochs import Divergence, Position
from tests.sim.replication_log import MemoryLog, Record

EPOCH = LeaderEpoch(5)


class Kit:
    """A follower in epoch 5 whose log has records of epoch 0."""

    def __init__(self, records: int = 0, *, held_end: int | None = None, high: int = 0) -> None:
        self.log = MemoryLog()
        for _ in range(records):
            self.log.append([Record(LeaderEpoch(0), self.log.log_end)])
        held = self.log.log_end if held_end is None else Offset(held_end)
        self.follower = Follower(EPOCH, self.log, held_end=held, high_watermark=Offset(high))

    def part(
        self,
        base: int,
        end: int,
        *,
        epoch: int = EPOCH,
        high: int = 0,
        start: int = 0,
        diverging: Divergence | None = None,
    ) -> list[object]:
        part = Part(
            LeaderEpoch(epoch), Offset(base), Offset(end), Offset(high), Offset(start), diverging
        )
        return [*self.follower.on_part(part, 0)]

    def append(self, end: int) -> None:
        while self.log.log_end < end:
            self.log.append([Record(EPOCH, self.log.log_end)])


def test_it_announces_where_its_log_is() -> None:
    kit = Kit(3)
    assert kit.follower.announce(0) == [
        Announce(Position(EPOCH, Offset(0), Offset(3), LeaderEpoch(0)))
    ]


def test_what_fits_is_appended_and_acknowledged_once_held() -> None:
    kit = Kit(3)
    assert kit.part(3, 5, high=4) == [Append()]
    kit.append(5)
    assert kit.follower.on_appended() == [HighWatermark(Offset(4))]
    assert kit.follower.on_held(Offset(4)) == [Ack(Offset(4))]


def test_a_part_without_batches_says_that_the_logs_match() -> None:
    kit = Kit(3, held_end=2)
    assert kit.follower.on_held(Offset(2)) == []  # nothing is acknowledged before
    assert kit.part(3, 3, high=1) == [HighWatermark(Offset(1)), Ack(Offset(2))]


def test_the_high_watermark_is_not_beyond_its_own_log() -> None:
    assert HighWatermark(Offset(3)) in Kit(3).part(3, 3, high=9)


def test_the_high_watermark_does_not_go_back_with_a_new_leader() -> None:
    kit = Kit(3, high=3)
    kit.part(3, 3, high=1)
    assert kit.follower.high_watermark == 3


def test_other_epochs_are_not_heeded() -> None:
    kit = Kit(3)
    for epoch in (EPOCH - 1, EPOCH + 1):
        assert kit.part(3, 4, epoch=epoch) == []
        assert kit.part(0, 0, epoch=epoch, diverging=Divergence(LeaderEpoch(0), Offset(0))) == []


def test_a_divergence_cuts_and_asks_again() -> None:
    kit = Kit(5, high=2)
    diverging = Divergence(LeaderEpoch(0), Offset(3))
    assert kit.part(0, 0, diverging=diverging) == [
        TruncateTo(Offset(5), Offset(3), TruncateReason.DIVERGED)
    ]
    kit.log.truncate_to(Offset(3))
    (announced,) = kit.follower.on_truncated(0)
    assert isinstance(announced, Announce)
    assert announced.position.log_end == 3


def test_a_cut_below_the_high_watermark_is_told_as_a_loss() -> None:
    kit = Kit(5, high=4)
    diverging = Divergence(LeaderEpoch(0), Offset(3))
    assert kit.part(0, 0, diverging=diverging) == [
        TruncateTo(Offset(5), Offset(3), TruncateReason.LOST)
    ]
    kit.log.truncate_to(Offset(3))
    kit.follower.on_truncated(0)
    assert kit.follower.high_watermark == 3


def test_what_was_cut_is_not_held() -> None:
    kit = Kit(5)
    kit.log.truncate_to(Offset(2))
    kit.follower.on_truncated(0)
    assert kit.part(2, 2) == [Ack(Offset(2))]


def test_once_the_logs_match_a_divergence_is_an_old_one() -> None:
    kit = Kit(3)
    kit.part(3, 3)
    assert kit.part(0, 0, diverging=Divergence(LeaderEpoch(0), Offset(0))) == []


def test_a_gap_is_announced_once_until_it_is_answered() -> None:
    kit = Kit(3)
    kit.part(3, 3)
    assert isinstance(kit.part(5, 6)[0], Announce)
    assert kit.part(6, 7) == []
    assert kit.part(3, 5) == [Append()]
    kit.append(5)
    assert isinstance(kit.part(7, 8)[0], Announce)


def test_what_is_there_already_is_acknowledged_again() -> None:
    kit = Kit(3)
    kit.part(3, 3)
    assert kit.part(1, 3) == [Ack(Offset(3))]


def test_behind_the_leaders_start_it_begins_anew() -> None:
    kit = Kit(3)
    assert kit.part(7, 9, start=7) == [RestartAt(Offset(3), Offset(7), TruncateReason.DELETED)]


def test_it_trims_before_it_learns_anything() -> None:
    kit = Kit(3)
    assert kit.part(3, 3, start=2, high=3) == [
        TrimTo(Offset(2)),
        HighWatermark(Offset(3)),
        Ack(Offset(3)),
    ]
    assert kit.part(3, 4, start=2) == [TrimTo(Offset(2)), Append()]


def test_a_cut_below_its_own_start_drops_everything() -> None:
    kit = Kit()
    kit.log.restart_at(Offset(9))
    diverging = Divergence(LeaderEpoch(-1), Offset(4))
    assert kit.part(0, 0, diverging=diverging) == [
        RestartAt(Offset(9), Offset(4), TruncateReason.DIVERGED)
    ]


def test_it_asks_again_when_refused() -> None:
    kit = Kit(3)
    kit.follower.announce(0)
    kit.part(3, 3)
    assert kit.follower.tick(10_000) == []
    kit.follower.on_refused(10_000)
    assert kit.follower.tick(10_000 + ANNOUNCE_RETRY_MS - 1) == []
    assert isinstance(kit.follower.tick(10_000 + ANNOUNCE_RETRY_MS)[0], Announce)


def test_without_a_stream_it_does_not_ask() -> None:
    kit = Kit(3)
    kit.follower.announce(0)
    kit.follower.on_stream_closed()
    assert kit.follower.tick(10_000) == []


def test_it_serves_nobody_before_it_has_heard_the_leader() -> None:
    kit = Kit(3, high=3)
    with pytest.raises(OffsetNotAvailable):
        kit.follower.check_high_watermark()
    kit.part(3, 3)
    kit.follower.check_high_watermark()


def test_what_begins_anew_holds_all_that_is_left() -> None:
    """Seeds 15560, 19253, 19445: it said that it held nothing until the next append, which
    min.insync.replicas may never let through without it."""
    kit = Kit(0)
    assert kit.part(7, 7, start=7) == [RestartAt(Offset(0), Offset(7), TruncateReason.DELETED)]
    kit.log.restart_at(Offset(7))
    kit.follower.on_truncated(0)
    assert kit.part(7, 7, high=7, start=7) == [HighWatermark(Offset(7)), Ack(Offset(7))]


def test_a_part_that_came_before_still_brings_news() -> None:
    """Seed 8709: announced twice, fed twice; the second part was the first with the news."""
    kit = Kit(3)
    assert kit.part(3, 5, high=3) == [Append()]
    kit.append(5)
    kit.follower.on_appended()
    kit.follower.on_held(Offset(5))
    news = kit.part(3, 5, high=5, start=2)
    assert news == [TrimTo(Offset(2)), HighWatermark(Offset(5)), Ack(Offset(5))]
