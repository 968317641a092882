"""One replica that follows one leader epoch: announce, cut until the logs match, then append.

Pure: the parts that the leader sends come in, effects go out. The leader decides whether the logs
match (`replication_epochs`); the first part that is not a divergence says that they do. From there
on, in this epoch, the follower only appends: so a divergence that still arrives is an old one.

Always: nothing of another leader epoch is heeded. Nothing is acknowledged before the logs match.
Nothing is cut below the high watermark this replica knew, unless the leader has lost it, which is
an event of its own (P14). What `on_held` reports must be what the log says *now*: a sync that began
before a truncation proves nothing about what was appended after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro.model.errors import OffsetNotAvailable

from cluster.broker.replication_effects import (
    Ack,
    Announce,
    Append,
    FollowerEffect,
    HighWatermark,
    RestartAt,
    TrimTo,
    TruncateReason,
    TruncateTo,
)
from cluster.broker.replication_epochs import Position, truncation_point

if TYPE_CHECKING:
    from suiro.model.ids import LeaderEpoch, Offset, PartitionEpoch

    from cluster.broker.replication_epochs import Divergence, LogView

ANNOUNCE_RETRY_MS: Final = 500
"""A leader that refused may have lagged behind in the metadata; ask again."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a leader sends of one partition; `end` is `base_offset` if it brings no batches."""

    leader_epoch: LeaderEpoch
    base_offset: Offset
    end: Offset
    high_watermark: Offset
    log_start: Offset
    diverging: Divergence | None = None


class Follower:
    """One partition, following in one leader epoch. `log` is looked at and never touched."""

    def __init__(
        self, leader_epoch: LeaderEpoch, log: LogView, *, held_end: Offset, high_watermark: Offset
    ) -> None:
        self.leader_epoch = leader_epoch
        self.partition_epoch: PartitionEpoch | None = None
        """Of the newest state of the partition that this broker knows; the shell keeps it so."""
        self.high_watermark = min(high_watermark, log.log_end)
        self.matches = False
        self._log = log
        self._held_end = held_end
        self._leader_high_watermark = self.high_watermark
        self._announced_ms: int | None = None

    def check_high_watermark(self) -> None:
        """Refuse to serve readers. Until the logs match, what this replica takes for committed may
        be what an unclean election has given up.
        """
        if not self.matches:
            raise OffsetNotAvailable(f"leader epoch {self.leader_epoch} has not been heard yet")

    def announce(self, now_ms: int) -> list[FollowerEffect]:
        """A stream to the leader is open, or something did not fit: say where this log is."""
        self._announced_ms = now_ms
        log = self._log
        ends = (log.log_start, log.log_end, log.last_epoch)
        return [Announce(Position(self.leader_epoch, *ends, self.partition_epoch))]

    def on_stream_closed(self) -> None:
        """Wait for the next stream; `announce` goes first on it."""
        self._announced_ms = None

    def on_refused(self, now_ms: int) -> None:
        """The leader answered with an error: the metadata of one side lag. `tick` asks again."""
        self._announced_ms = now_ms

    def on_part(self, part: Part, now_ms: int) -> list[FollowerEffect]:
        """The leader has sent something."""
        if part.leader_epoch != self.leader_epoch:
            return []
        if part.diverging is not None:
            return [] if self.matches else self._cut(part.diverging)
        if part.base_offset > self._log.log_end and part.base_offset == part.log_start:
            return [RestartAt(self._log.log_end, part.log_start, TruncateReason.DELETED)]
        if part.base_offset != self._log.log_end:
            return self._misfit(part, now_ms)
        self.matches = True
        self._announced_ms = None
        if part.end > part.base_offset:
            return [*self._hear(part), Append()]
        return [*self._hear(part), *self._learn(), Ack(self._held_end)]

    def on_appended(self) -> list[FollowerEffect]:
        """The batches of the part are in the log."""
        return self._learn()

    def on_held(self, held_end: Offset) -> list[FollowerEffect]:
        """This replica holds its log up to `held_end`."""
        assert held_end <= self._log.log_end
        self._held_end = held_end
        return [Ack(held_end)] if self.matches else []

    def on_truncated(self, now_ms: int) -> list[FollowerEffect]:
        """The log was cut, or begins anew: ask the leader again whether it matches."""
        kept = min(self._held_end, self._log.log_end)
        self._held_end = max(kept, self._log.log_start)  # below it there is nothing left to hold
        self.high_watermark = min(self.high_watermark, self._log.log_end)
        return self.announce(now_ms)

    def tick(self, now_ms: int) -> list[FollowerEffect]:
        """Announce again if the leader has not answered for a while."""
        if self._announced_ms is None or now_ms - self._announced_ms < ANNOUNCE_RETRY_MS:
            return []
        return self.announce(now_ms)

    def _misfit(self, part: Part, now_ms: int) -> list[FollowerEffect]:
        """What is there already is acknowledged again; its news count, the leader sends them once.
        A gap is announced, once: while the answer is under way, what was sent before it cannot fit,
        and announcing for each such part would multiply them.
        """
        if self._announced_ms is not None:
            return []
        if self.matches and part.end <= self._log.log_end:
            return [*self._hear(part), *self._learn(), Ack(self._held_end)]
        return self.announce(now_ms)

    def _cut(self, diverging: Divergence) -> list[FollowerEffect]:
        offset = truncation_point(self._log, diverging)
        is_lost = offset < self.high_watermark
        reason = TruncateReason.LOST if is_lost else TruncateReason.DIVERGED
        if offset < self._log.log_start:
            return [RestartAt(self._log.log_end, offset, reason)]
        return [TruncateTo(self._log.log_end, offset, reason)]

    def _hear(self, part: Part) -> list[FollowerEffect]:
        """What a part says beside its batches. To trim comes first of all: below the leader's start
        the two logs may differ, and what is learnt is about the rest.
        """
        self._leader_high_watermark = part.high_watermark
        return [TrimTo(part.log_start)] if part.log_start > self._log.log_start else []

    def _learn(self) -> list[FollowerEffect]:
        """The leader's high watermark, as far as this log goes: up to there the two are equal."""
        high_watermark = min(self._leader_high_watermark, self._log.log_end)
        if high_watermark <= self.high_watermark:
            return []
        self.high_watermark = high_watermark
        return [HighWatermark(high_watermark)]
