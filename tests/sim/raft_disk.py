"""A member's disk that forgets what was not synced.

Writes take effect in order. A write without sync stays in the operating system's cache: it survives
the process for sure only after a later synced one. A batch is atomic, as a RocksDB batch is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.controller_quorum.messages import Entry, Ready, Snapshot, Stored

if TYPE_CHECKING:
    from random import Random


class Disk:
    """What one directory holds, durable and cached."""

    __slots__ = ("_cached", "_entries", "_hard_state", "_snapshot", "syncs")

    def __init__(self, stored: Stored) -> None:
        self._snapshot = stored.snapshot
        self._hard_state = stored.hard_state
        self._entries: list[Entry] = list(stored.entries)
        self._cached: list[Ready] = []
        self.syncs = 0

    def write(self, ready: Ready) -> None:
        self._cached.append(ready)
        if ready.must_sync:
            self.sync()

    def sync(self) -> None:
        self.syncs += 1
        for ready in self._cached:
            self._apply(ready)
        self._cached.clear()

    def compact(self, snapshot: Snapshot) -> None:
        """The driver's batch of a compaction: synced, like everything that deletes."""
        self.sync()
        del self._entries[: snapshot.index - self._snapshot.index]
        self._snapshot = snapshot

    def crash(self, random: Random) -> None:
        """Power goes: some of the cached writes, in order, happened to be on the platter."""
        if self._cached:
            for ready in self._cached[: random.randrange(len(self._cached) + 1)]:
                self._apply(ready)
            self._cached.clear()

    def forget(self) -> None:
        """Nothing of what is cached will survive; for a story that leaves no room for luck."""
        self._cached.clear()

    def stored(self) -> Stored:
        assert not self._cached, "read back before a crash or a sync"
        return Stored(self._hard_state, self._snapshot, tuple(self._entries))

    def holds(self, index: int, term: int) -> bool:
        """Whether the entry is durable here."""
        position = index - self._snapshot.index - 1
        if position < 0:
            return True
        return position < len(self._entries) and self._entries[position].term == term

    def _apply(self, ready: Ready) -> None:
        if ready.snapshot is not None:
            self._snapshot = ready.snapshot
            self._entries.clear()
        if ready.entries:
            position = ready.entries[0].index - self._snapshot.index - 1
            assert 0 <= position <= len(self._entries), "a hole in the stored log"
            del self._entries[position:]
            self._entries.extend(ready.entries)
        if ready.hard_state is not None:
            self._hard_state = ready.hard_state
