"""The log of one member: what it holds, how far it is stored, committed and applied.

Everything since the last compaction is in memory: the metadata log is short, and a core that never
waits for a disk is a core that can be simulated. The driver keeps the same on disk.

Invariant: base <= applied <= handed <= commit <= last, and stable <= last. Nothing at or below
commit is ever taken back.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from cluster.controller_quorum.conf import ConfState
from cluster.controller_quorum.messages import Entry, EntryKind, Snapshot, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable

ENTRY_OVERHEAD_BYTES = 24
"""Counted for every entry besides its data, so that empty entries fill a message too."""

APPLY_ENTRIES_MAX = 4096
"""Entries handed out by one Ready: a long catch-up must not hold the loop."""


class RaftLog:
    """Entries from `base + 1` to `last`; the term at `base` is known too."""

    __slots__ = (
        "_base_term",
        "_confs",
        "_entries",
        "applied",
        "base",
        "commit",
        "handed",
        "last",
        "pending_snapshot",
        "snapshot",
        "stable",
    )

    def __init__(self, stored: Stored) -> None:
        snapshot = stored.snapshot
        self.snapshot = snapshot
        """The last one made or received; what a follower gets that is too far behind."""
        self.pending_snapshot: Snapshot | None = None
        """Received, and not yet handed to the driver."""
        self.base = snapshot.index
        self._base_term = snapshot.term
        self._entries: list[Entry] = []
        self._confs: list[tuple[int, ConfState]] = [(snapshot.index, snapshot.conf)]
        self.last = self.base
        self.commit = self.base
        self.handed = self.base
        self.applied = self.base
        self._append(entry for entry in stored.entries if entry.index > snapshot.index)
        self.stable = self.last
        self.commit_to(max(stored.hard_state.commit, self.base))

    # -- reading ----------------------------------------------------------------------------------

    @property
    def last_term(self) -> int:
        return self._entries[-1].term if self._entries else self._base_term

    @property
    def conf(self) -> ConfState:
        """The newest configuration, committed or not: a member acts on it from its append on."""
        return self._confs[-1][1]

    @property
    def conf_index(self) -> int:
        return self._confs[-1][0]

    def conf_at(self, index: int) -> ConfState:
        assert index >= self._confs[0][0], "the configuration there is forgotten"
        return next(conf for at, conf in reversed(self._confs) if at <= index)

    def term(self, index: int) -> int | None:
        """The term of an entry, or None where this log has none or has forgotten it."""
        if index == self.base:
            return self._base_term
        if self.base < index <= self.last:
            return self._entries[index - self.base - 1].term
        return None

    def slice(self, first: int, bytes_max: int) -> tuple[Entry, ...]:
        """Entries from `first` on, at least one if there is one, as many as fit."""
        assert first > self.base, "these entries are forgotten"
        start = first - self.base - 1
        size = 0
        count = 0
        for entry in islice(self._entries, start, None):
            size += len(entry.data) + ENTRY_OVERHEAD_BYTES
            if size > bytes_max and count:
                break
            count += 1
        return tuple(self._entries[start : start + count])

    def unstable(self) -> tuple[Entry, ...]:
        return tuple(self._entries[self.stable - self.base :])

    def has_unapplied(self) -> bool:
        return self.handed < self.commit

    def hand_out(self) -> tuple[Entry, ...]:
        """The next committed entries for the machine; each entry is handed out once."""
        first = self.handed
        self.handed = min(self.commit, first + APPLY_ENTRIES_MAX)
        return tuple(self._entries[first - self.base : self.handed - self.base])

    def is_up_to_date(self, last: int, last_term: int) -> bool:
        """Whether a log that ends there holds at least as much as this one (section 5.4.1)."""
        return (last_term, last) >= (self.last_term, self.last)

    def find_conflict_hint(self, index: int, term: int) -> tuple[int, int]:
        """The last entry at or before `index` whose term is at most `term`: nothing after it can
        match a log that has `term` at `index`.
        """
        at = min(index, self.last)
        while at > self.base:
            here = self._entries[at - self.base - 1].term
            if here <= term:
                return at, here
            at -= 1
        return self.base, self._base_term

    # -- writing ----------------------------------------------------------------------------------

    def append_own(self, term: int, kind: EntryKind, datas: Iterable[bytes]) -> int:
        """A leader's own entries; returns the index of the first."""
        first = self.last + 1
        self._append([Entry(first + n, term, kind, data) for n, data in enumerate(datas)])
        return first

    def accept(self, previous: int, previous_term: int, entries: tuple[Entry, ...]) -> int | None:
        """A leader's entries, to stand right after `previous`; None if this log differs there.

        Returns the last index that is now known to equal the leader's. Entries that are here
        already stay, and so does what follows them: an old message must not shorten the log.
        """
        if self.term(previous) != previous_term:
            return None
        for position, entry in enumerate(entries):
            if self.term(entry.index) != entry.term:
                if entry.index <= self.last:
                    self._truncate(entry.index)
                self._append(entries[position:])
                break
        return previous + len(entries)

    def commit_to(self, index: int) -> None:
        assert index <= self.last, f"commit {index} is beyond the log's end {self.last}"
        self.commit = max(self.commit, index)

    def stable_to(self, index: int, term: int) -> None:
        """Stored up to `index`, unless those entries have been replaced in the meantime."""
        if self.term(index) == term:
            self.stable = max(self.stable, index)

    def applied_to(self, index: int) -> None:
        assert index <= self.handed, f"applied {index}, handed out {self.handed}"
        self.applied = max(self.applied, index)

    def compact(self, index: int, data: bytes, trailing: int) -> Snapshot:
        """Remember the machine's state at `index` and forget all but `trailing` entries before."""
        assert self.snapshot.index <= index <= self.applied, f"cannot compact to {index}"
        term = self.term(index)
        assert term is not None
        conf = self.conf_at(index)
        self.snapshot = Snapshot(index, term, conf, data)
        self._confs = [(index, conf)] + [pair for pair in self._confs if pair[0] > index]
        base = max(self.base, index - trailing)
        base_term = self.term(base)
        assert base_term is not None
        del self._entries[: base - self.base]
        self.base, self._base_term = base, base_term
        return self.snapshot

    def restore(self, snapshot: Snapshot) -> None:
        """Begin anew after a leader's snapshot, which is beyond everything committed here."""
        assert snapshot.index > self.commit
        self.snapshot = self.pending_snapshot = snapshot
        self._entries.clear()
        self._confs = [(snapshot.index, snapshot.conf)]
        self.base, self._base_term = snapshot.index, snapshot.term
        self.last = self.stable = self.commit = self.handed = snapshot.index

    def _append(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            assert entry.index == self.last + 1, f"entry {entry.index} after {self.last}"
            assert entry.term >= self.last_term, "terms never fall along a log"
            self._entries.append(entry)
            self.last = entry.index
            if entry.kind is EntryKind.CONF:
                self._confs.append((entry.index, ConfState.decode(entry.data)))

    def _truncate(self, index: int) -> None:
        """Take back everything from `index` on, and the configurations among it."""
        assert index > self.commit, f"truncation at {index}, committed up to {self.commit}"
        del self._entries[index - self.base - 1 :]
        self.last = index - 1
        self.stable = min(self.stable, self.last)
        while self._confs[-1][0] > self.last:
            self._confs.pop()
