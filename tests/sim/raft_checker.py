"""The invariants of the quorum, checked as it runs: M1 to M7 of RELIABILITY.md, and its reads.

The checker keeps its own books and believes nothing that a member says of itself: majorities are
counted on the members' disks. It sees what was sent, stored, applied and answered. Every check is
incremental, so that a simulation can afford all of them after every event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cluster.controller_quorum.messages import MessageKind
from cluster.controller_quorum.raft_state import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cluster.controller_quorum.conf import ConfState, Member
    from cluster.controller_quorum.messages import Entry, HardState, Message, Ready, Snapshot
    from cluster.controller_quorum.raft import Raft
    from tests.sim.raft_disk import Disk


class Violation(AssertionError):
    """An invariant does not hold; the text begins with its id."""


class Position(NamedTuple):
    """One place of the log, as a leader committed it."""

    at: int
    term: int


def require(holds: bool, invariant: str, story: str) -> None:
    if not holds:
        raise Violation(f"{invariant}: {story}")


class Watched:
    """What the checker remembers of one running process of one member."""

    __slots__ = ("commit", "led_term", "raft", "term")

    def __init__(self, raft: Raft) -> None:
        self.raft = raft
        self.term = raft.term
        self.commit = raft.log.commit
        self.led_term = 0


class RaftChecker:
    """One per run; `disks` also holds the last state of members that were wiped since."""

    def __init__(self, disks: Mapping[Member, Disk]) -> None:
        self._disks = disks
        self._leaders: dict[int, Member] = {}
        self._votes: dict[tuple[int, Member], Member] = {}
        self._entries: dict[tuple[int, int], tuple[int, bytes, int | None]] = {}
        self._committed_in: dict[int, Position] = {}
        self._told_terms: dict[Member, int] = {}
        self._applied: dict[int, tuple[int, int]] = {}
        self._floors: dict[bytes, int] = {}
        self.acknowledged = 0
        """The highest index that a client was told about."""
        self.acknowledged_count = 0
        self.reads_served = 0
        self.snapshots_installed = 0

    @property
    def elections(self) -> int:
        return len(self._leaders)

    # -- a process --------------------------------------------------------------------------------

    def on_start(self, raft: Raft) -> Watched:
        """M6: what was told before the crash is still known after it."""
        told = self._told_terms.get(raft.me, 0)
        require(raft.term >= told, "M6", f"{raft.me} spoke in term {told}, wakes in {raft.term}")
        return Watched(raft)

    def on_event(self, watched: Watched) -> None:
        """M5, and whatever follows from a new leader or a new commit index."""
        raft = watched.raft
        commit = raft.log.commit
        if raft.term < watched.term or commit < watched.commit:
            before, after = (watched.term, watched.commit), (raft.term, commit)
            raise Violation(f"M5: {raft.me}: term and commit went from {before} to {after}")
        watched.term = raft.term
        if raft.role is Role.LEADER and commit > watched.commit and raft.term == watched.led_term:
            self._on_leader_commit(raft)
        watched.commit = commit

    def on_stored(self, watched: Watched, ready: Ready) -> None:
        """The driver has carried out the write (and, if it was told to, the sync)."""
        if ready.hard_state is not None:
            self._on_promise(watched.raft.me, ready.hard_state)

    def on_leading(self, watched: Watched) -> None:
        """M1, M3, M7: one leader per term, elected by a majority, holding all that is committed."""
        raft = watched.raft
        if raft.role is not Role.LEADER or watched.led_term == raft.term:
            return
        watched.led_term = raft.term
        known = self._leaders.setdefault(raft.term, raft.me)
        require(known == raft.me, "M1", f"{known} and {raft.me} lead term {raft.term}")
        voters = raft.log.conf.voters
        given = [voter for voter in voters if self._votes.get((raft.term, voter)) == raft.me]
        require(
            _is_majority(len(given), raft.log.conf),
            "M7",
            f"{raft.me} leads term {raft.term} by the votes of {given} out of {voters}",
        )
        for term, position in self._committed_in.items():
            require(
                term >= raft.term or _holds(raft, position),
                "M3",
                f"{raft.me} leads term {raft.term} without {position}, committed in term {term}",
            )

    # -- what left a member -----------------------------------------------------------------------

    def on_sent(self, message: Message) -> None:
        kind = message.kind
        if kind is MessageKind.VOTE_REPLY:
            if not message.reject:
                self._on_vote(message.term, message.source, message.target)
        elif kind in (MessageKind.PRE_VOTE, MessageKind.PRE_VOTE_REPLY):
            return
        told = self._told_terms
        if message.term > told.get(message.source, 0):
            told[message.source] = message.term

    def on_entries(self, raft: Raft, entries: tuple[Entry, ...]) -> None:
        """M2: an index and a term name one entry with one past, on every member, for ever."""
        previous_term = raft.log.term(entries[0].index - 1)
        known = self._entries
        for entry in entries:
            key = (entry.index, entry.term)
            content = (entry.kind, entry.data, previous_term)
            if known.setdefault(key, content) != content:
                raise Violation(f"M2: {raft.me} has another entry at {key}: {content}")
            previous_term = entry.term

    # -- the machine ------------------------------------------------------------------------------

    def on_applied(self, member: Member, entry: Entry, state_hash: int) -> None:
        """M4: every machine goes through the same states."""
        content = (entry.term, state_hash)
        if self._applied.setdefault(entry.index, content) != content:
            known = self._applied[entry.index]
            raise Violation(f"M4: {member} applies {content} at {entry.index}, others {known}")

    def on_restored(self, member: Member, snapshot: Snapshot, state_hash: int) -> None:
        """M4 again: a snapshot equals the replay that it replaces."""
        self.snapshots_installed += 1
        known = self._applied.get(snapshot.index)
        require(
            known == (snapshot.term, state_hash),
            "M4",
            f"{member} loads a snapshot at {snapshot.index} that is not {known}",
        )

    def on_acknowledged(self, index: int) -> None:
        require(index in self._applied, "M10", f"{index} acknowledged, never applied")
        self.acknowledged_count += 1
        self.acknowledged = max(self.acknowledged, index)

    def on_read_asked(self, context: bytes) -> None:
        self._floors[context] = self.acknowledged

    def on_read_allowed(self, context: bytes, index: int) -> None:
        """A read sees every write that was acknowledged before it began."""
        floor = self._floors[context]
        require(index >= floor, "read", f"{context!r} may read at {index}, {floor} was told before")
        self.reads_served += 1

    # -- books ------------------------------------------------------------------------------------

    def _on_vote(self, term: int, voter: Member, candidate: Member) -> None:
        known = self._votes.setdefault((term, voter), candidate)
        require(known == candidate, "M6", f"{voter} votes for {known} and {candidate} in {term}")

    def _on_promise(self, voter: Member, hard_state: HardState) -> None:
        if hard_state.vote is not None:
            self._on_vote(hard_state.term, voter, hard_state.vote)

    def _on_leader_commit(self, raft: Raft) -> None:
        """M5: what a leader calls committed is of its term and on most of the voters' disks."""
        log = raft.log
        term = log.term(log.commit)
        assert term is not None
        require(term == raft.term, "M5", f"{raft.me} commits {log.commit} of term {term} by itself")
        position = Position(log.commit, term)
        holders = [voter for voter in log.conf.voters if self._disks[voter].holds(*position)]
        require(
            _is_majority(len(holders), log.conf),
            "M5",
            f"{raft.me} commits {position} held by {holders} of {log.conf.voters}",
        )
        self._committed_in[raft.term] = position


def _is_majority(count: int, conf: ConfState) -> bool:
    return 2 * count > len(conf.voters)


def _holds(raft: Raft, position: Position) -> bool:
    return raft.log.base > position.at or raft.log.term(position.at) == position.term
