"""Linearizable reads without a log entry (section 6.4 of the Raft thesis).

A read notes the commit index when it arrives and may be served there once a majority has answered a
heartbeat that was sent *after* it arrived: only then was the leader still the leader. All reads
between two Readys share one round.

Invariant: `confirm` releases a read only for a sequence number handed out after the read came in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster.controller_quorum.conf import Member


@dataclass(frozen=True, slots=True)
class PendingRead:
    """One read: who asked, and the index that was committed when the leader took it."""

    origin: Member
    context: bytes
    index: int
    sequence: int


class ReadQueue:
    """The reads that a leader has taken and not yet confirmed, in order of arrival."""

    __slots__ = ("_early", "_pending", "sequence")

    def __init__(self) -> None:
        self._early: list[tuple[Member, bytes]] = []
        self._pending: deque[PendingRead] = deque()
        self.sequence = 0
        """The number of the last round; heartbeats carry it and their answers return it."""

    def __len__(self) -> int:
        return len(self._early) + len(self._pending)

    def hold(self, origin: Member, context: bytes) -> None:
        """Keep a read until an entry of the leader's own term is committed: before that the leader
        does not know what is.
        """
        self._early.append((origin, context))

    def add(self, origin: Member, context: bytes, commit: int) -> None:
        self._pending.append(PendingRead(origin, context, commit, self.sequence + 1))

    def release_held(self, commit: int) -> None:
        for origin, context in self._early:
            self.add(origin, context, commit)
        self._early.clear()

    def needs_round(self) -> bool:
        return bool(self._pending) and self._pending[-1].sequence > self.sequence

    def start_round(self) -> None:
        assert self.needs_round()
        self.sequence += 1

    def confirm(self, sequence: int) -> list[PendingRead]:
        """A majority has answered the round `sequence`."""
        assert sequence <= self.sequence
        confirmed = []
        while self._pending and self._pending[0].sequence <= sequence:
            confirmed.append(self._pending.popleft())
        return confirmed

    def clear(self) -> None:
        """Forget the reads, keep the number: an answer to an older round must not fit a new one."""
        self._early.clear()
        self._pending.clear()
