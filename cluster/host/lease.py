"""How long a node may act for the cluster without having heard from the controller.

The controller fences a node that it has not heard for the session timeout. So a node may serve for
that long, less a margin for clocks of different speed, counted from when it *sent* the heartbeat
that was answered; not a moment longer, however it spent the time: cut off, paused or starved. And
the answer counts only once the node's image has caught up with what the controller had committed
when it answered: a node that is heard but hears nothing must stop as well.

Epochs and the maximal ISR alone keep acknowledged records safe. The lease is for what they
cannot see: a deposed leader that answers a reader with yesterday's latest offset, or, alone in an
ISR, acknowledges what an unclean election elsewhere has already given up; a deposed coordinator
that tells yesterday's committed offset.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from suiro.model.errors import NotLeader

if TYPE_CHECKING:
    from suiro.model.ids import TopicPartition


class Lease:
    """One per node, for all the partitions it leads and all the shards it owns."""

    def __init__(self, margin_ms: int) -> None:
        self.until_ms = 0
        self._margin_ms = margin_ms
        self._image_index = 0
        self._waiting: deque[tuple[int, int]] = deque()

    def holds(self, now_ms: int) -> bool:
        return now_ms < self.until_ms

    def check(self, partition: TopicPartition, now_ms: int) -> None:
        """Refuse to lead: somebody else may, by now."""
        if not self.holds(now_ms):
            raise NotLeader(partition, None)

    def on_notice(
        self, *, sent_ms: int, session_timeout_ms: int, committed_index: int, fenced: bool
    ) -> None:
        """The controller has answered the heartbeat that was sent at `sent_ms`."""
        if fenced:
            self.end()
            return
        self._waiting.append((committed_index, sent_ms + session_timeout_ms - self._margin_ms))
        self._settle()

    def on_image(self, index: int) -> None:
        """The image of this node has reached `index`."""
        self._image_index = index
        self._settle()

    def end(self) -> None:
        """It is over, and what was answered before counts no more."""
        self.until_ms = 0
        self._waiting.clear()

    def _settle(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._image_index:
            self.until_ms = max(self.until_ms, self._waiting.popleft()[1])
