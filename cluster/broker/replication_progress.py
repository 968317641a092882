"""What a leader knows of one follower, and what it sends it next.

Nothing is known until the follower announces its position on a stream; from then on its log either
matches the leader's or is being cut until it does. Batches go only to a log that matches, at most
`PARTS_IN_FLIGHT_MAX` parts unacknowledged: what is appended meanwhile travels in the next part as
one. All transitions are methods of this class; nobody else writes its fields.

Invariant: `held` is what the incarnation `broker_epoch` of the follower has acknowledged in this
leader epoch; a new incarnation begins with nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from suiro.model.ids import NO_BROKER_EPOCH, Offset

from cluster.broker.replication_effects import Beat, Diverging, Push, Read

if TYPE_CHECKING:
    from suiro.model.ids import BrokerEpoch, PartitionEpoch

    from cluster.broker.replication_epochs import Divergence, LogView, Position

PARTS_IN_FLIGHT_MAX: Final = 2
"""One on its way and one being appended; a deeper window was measured to be slower."""

PART_BYTES_MAX: Final = 1 << 20
"""Measured: 1 MB is best for bulk, 4 MB is slower and delays everyone else on the stream."""

NO_STREAM: Final = -1


class Progress:
    """One follower as its leader sees it."""

    __slots__ = (
        "_caught_up_mark",
        "_divergence",
        "_in_flight",
        "_owes_part",
        "_sent_high_watermark",
        "_sent_log_start",
        "broker_epoch",
        "caught_up_ms",
        "held",
        "matches",
        "next",
        "since",
        "stream",
    )

    def __init__(self, now_ms: int, since: PartitionEpoch) -> None:
        self.since = since
        """The partition epoch that it has to know of to be believed: it may have been removed
        before, and delete its log when it hears of that.
        """
        self.stream = NO_STREAM
        self.broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
        self.matches = False
        self.held: Offset | None = None
        self.next = Offset(0)
        self.caught_up_ms = now_ms
        """When it last held all that the leader had."""
        self._caught_up_mark = (Offset(0), now_ms)
        self._divergence: Divergence | None = None
        self._owes_part = False
        self._in_flight: deque[Offset] = deque()
        self._sent_high_watermark = -1
        self._sent_log_start = -1

    # -- what the follower says -------------------------------------------------------------------

    def on_position(
        self,
        stream: int,
        broker_epoch: BrokerEpoch,
        position: Position,
        diverging: Divergence | None,
    ) -> None:
        """It announces its log, for the first time or again; `diverging` is the answer to it."""
        if broker_epoch != self.broker_epoch:
            self.held = None  # another incarnation may have lost what the former one held
            self.broker_epoch = broker_epoch
        self.stream = stream
        self._in_flight.clear()
        self._divergence = diverging
        self.matches = diverging is None
        self._owes_part = True
        self.next = position.log_end

    def on_ack(self, held_end: Offset, log_end: Offset, now_ms: int) -> None:
        """It holds everything below `held_end`."""
        self.held = held_end if self.held is None else max(self.held, held_end)
        while self._in_flight and self._in_flight[0] <= held_end:
            self._in_flight.popleft()
        self._note_caught_up(log_end, now_ms)

    def on_stream_closed(self) -> None:
        """What was under way is lost; it will announce itself again, perhaps on a stream that it
        had opened before this one.
        """
        self.stream = NO_STREAM
        self.matches = False
        self._divergence = None
        self._owes_part = False
        self._in_flight.clear()

    # -- whether it keeps up ----------------------------------------------------------------------

    def on_leader_append(self, log_end_before: Offset, now_ms: int) -> None:
        """Up to now it had everything, so its lag begins now."""
        if self.held is not None and self.held >= log_end_before:
            self.caught_up_ms = now_ms
            self._caught_up_mark = (log_end_before, now_ms)

    def lag_ms(self, log_end: Offset, now_ms: int) -> int:
        """How long it has not held all that the leader has; 0 if it does."""
        if self.held is not None and self.held >= log_end:
            return 0
        return now_ms - self.caught_up_ms

    def forgive(self, pause_ms: int, now_ms: int) -> None:
        """The leader itself did not run for so long: that is not the follower's lag."""
        self.caught_up_ms = min(now_ms, self.caught_up_ms + pause_ms)

    def _note_caught_up(self, log_end: Offset, now_ms: int) -> None:
        """Under steady load it never holds the very end. It keeps up if it holds now what the end
        was a moment ago; that moment counts.
        """
        assert self.held is not None
        marked_end, marked_ms = self._caught_up_mark
        if self.held >= log_end:
            self.caught_up_ms = now_ms
        elif self.held >= marked_end:
            self.caught_up_ms = max(self.caught_up_ms, marked_ms)
        else:
            return
        self._caught_up_mark = (log_end, now_ms)

    # -- what it is sent --------------------------------------------------------------------------

    def next_push(self, log: LogView) -> Push | None:
        """What to send now, if anything. Where what it needs is deleted it has to begin anew."""
        if self._divergence is not None:
            return Diverging(self._divergence)
        if not self.matches:
            return None
        start = max(self.next, log.log_start)
        if start < log.log_end and len(self._in_flight) < PARTS_IN_FLIGHT_MAX:
            return Read(start, PART_BYTES_MAX)
        return Beat(start) if self._owes_part else None

    def on_pushed(self, end: Offset, high_watermark: Offset, log_start: Offset) -> None:
        """What `next_push` said was sent; batches of it reach up to `end`."""
        self._owes_part = False
        self._sent_high_watermark = high_watermark
        self._sent_log_start = log_start
        if self._divergence is not None:
            self._divergence = None  # until it announces itself again there is nothing to send
        elif end > self.next:
            self.next = end
            self._in_flight.append(end)

    def owe_news(self, high_watermark: Offset, log_start: Offset) -> None:
        """An idle follower shall learn of them too."""
        if self.matches and (
            self._sent_high_watermark < high_watermark or self._sent_log_start < log_start
        ):
            self._owes_part = True
