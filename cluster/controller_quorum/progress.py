"""What a leader knows of one follower, and what it may send it next.

PROBE: the leader does not know where the logs part; one append at a time, each answer moves `next`.
REPLICATE: the logs are known to match at `match`; appends are pipelined up to a window.
SNAPSHOT: the follower needs entries that are gone; chunks go one at a time.

Invariant: `match < next`; everything up to `match` is on the follower's disk.
All transitions are methods of this class; nobody else writes its fields.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster.controller_quorum.conf import Member
    from cluster.controller_quorum.messages import Snapshot

STALLED_BEATS = 2
"""Heartbeats answered without one acknowledgement between them: by then something was lost."""


class ProgressState(Enum):
    PROBE = "probe"
    REPLICATE = "replicate"
    SNAPSHOT = "snapshot"


class Progress:
    """One follower as its leader sees it."""

    __slots__ = (
        "active",
        "chunk_offset",
        "commit_sent",
        "in_flight",
        "in_flight_max",
        "is_waiting",
        "match",
        "member",
        "next",
        "quiet_beats",
        "read_sequence",
        "snapshot",
        "state",
    )

    def __init__(self, member: Member, next_index: int, in_flight_max: int) -> None:
        self.member = member
        self.match = 0
        self.next = next_index
        self.state = ProgressState.PROBE
        self.active = False
        """Heard from since the last check of the quorum."""
        self.is_waiting = False
        """A probe or a chunk is under way and must be answered before the next one."""
        self.in_flight: deque[int] = deque()
        """The last index of each append that is under way."""
        self.in_flight_max = in_flight_max
        self.commit_sent = 0
        self.read_sequence = 0
        self.quiet_beats = 0
        self.snapshot: Snapshot | None = None
        self.chunk_offset = 0

    def can_send(self) -> bool:
        if self.state is ProgressState.REPLICATE:
            return len(self.in_flight) < self.in_flight_max
        return not self.is_waiting

    def on_sent(self, last: int, commit: int) -> None:
        """An append up to `last` has left; `last` is `next - 1` if it carried no entries."""
        self.commit_sent = commit
        if self.state is ProgressState.PROBE:
            self.is_waiting = True
        elif last >= self.next:
            self.next = last + 1
            self.in_flight.append(last)

    def on_ack(self, index: int) -> None:
        """The follower holds everything up to `index`, durably."""
        self.quiet_beats = 0
        self.match = max(self.match, index)
        self.next = max(self.next, self.match + 1)
        while self.in_flight and self.in_flight[0] <= index:
            self.in_flight.popleft()
        if self.state is ProgressState.PROBE or (
            self.snapshot is not None and self.match >= self.snapshot.index
        ):
            self._become(ProgressState.REPLICATE, self.match + 1)

    def on_reject(self, refused: int, retry_after: int) -> bool:
        """The follower has not the entry at `refused`; go back. False if the answer is an old one.

        Raft never goes below `match`: that part is known.
        """
        if self.state is ProgressState.SNAPSHOT or refused <= self.match:
            return False
        if self.state is ProgressState.PROBE and refused != self.next - 1:
            return False
        self._become(ProgressState.PROBE, max(self.match, min(refused - 1, retry_after)) + 1)
        return True

    def on_beat(self, last: int) -> bool:
        """A heartbeat was answered. True if the follower is behind and quiet: send again."""
        if self.match >= last:
            return False
        self.quiet_beats += 1
        if self.quiet_beats < STALLED_BEATS:
            return False
        self.quiet_beats = 0
        if self.state is ProgressState.REPLICATE:
            self._become(ProgressState.PROBE, self.match + 1)
        self.is_waiting = False
        return True

    def start_snapshot(self, snapshot: Snapshot) -> None:
        self._become(ProgressState.SNAPSHOT, snapshot.index + 1)
        self.snapshot = snapshot

    def on_chunk_sent(self) -> None:
        assert self.state is ProgressState.SNAPSHOT
        self.is_waiting = True

    def on_chunk_ack(self, index: int, bytes_held: int) -> bool:
        """The follower wants the chunk at `bytes_held`; False if that one is under way."""
        if self.snapshot is None or self.snapshot.index != index:
            return False
        self.quiet_beats = 0
        if bytes_held == self.chunk_offset and self.is_waiting:
            return False
        self.chunk_offset = bytes_held
        self.is_waiting = False
        return True

    def _become(self, state: ProgressState, next_index: int) -> None:
        self.state = state
        self.next = next_index
        self.is_waiting = False
        self.in_flight.clear()
        self.snapshot = None
        self.chunk_offset = 0
        self.commit_sent = 0
        assert self.match < self.next
