"""Raft without input or output: facts go in, a `Ready` says what to do.

    tick, step, propose, read_index, propose_conf, transfer, compact  ->  take_ready  ->  advance

One task owns the object and carries each Ready out in the order it names, one at a time; facts may
come in between `take_ready` and `advance`. There is no clock but `tick` and no randomness but the
Random handed in, so that the same facts give the same decisions, bit for bit.

What it leaves to others: the disk, the wire, the machine, sending proposals to the leader, moving
leadership away before the leader's own removal, and telling a removed member to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro.model.errors import InvalidRequest, MembershipChangePending, NotController, Overloaded

from cluster.controller_quorum.conf import ConfChange, ConfChangeKind, ConfState, Member
from cluster.controller_quorum.election import Election
from cluster.controller_quorum.messages import (
    EntryKind,
    HardState,
    Message,
    MessageKind,
    Ready,
    Snapshot,
    Stored,
)
from cluster.controller_quorum.progress import ProgressState
from cluster.controller_quorum.raft_state import RaftConfig, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

EARLY: Final = frozenset(
    {
        MessageKind.APPEND,
        MessageKind.HEARTBEAT,
        MessageKind.SNAPSHOT,
        MessageKind.TIMEOUT_NOW,
        MessageKind.READ_INDEX,
        MessageKind.READ_INDEX_REPLY,
    }
)
"""What may leave before this Ready is stored: nothing of it speaks of the sender's own disk."""


@dataclass(frozen=True, slots=True)
class FollowerStatus:
    member: Member
    state: ProgressState
    match: int
    next: int


@dataclass(frozen=True, slots=True)
class RaftStatus:
    """A look from outside, for metrics and `suiro quorum status`."""

    me: Member
    role: Role
    term: int
    leader: Member | None
    conf: ConfState
    commit: int
    applied: int
    first: int
    last: int
    snapshot_index: int
    followers: tuple[FollowerStatus, ...]


class Raft(Election):
    """One member of the quorum."""

    __slots__ = ("_taken",)

    def __init__(self, me: Member, config: RaftConfig, stored: Stored, random: Random) -> None:
        Election.__init__(self, me, config, stored, random)
        self._taken: Ready | None = None

    # -- facts ------------------------------------------------------------------------------------

    def tick(self) -> None:
        """One unit of time has passed."""
        if self.role is Role.LEADER:
            self.tick_leader()
        else:
            self.tick_follower()

    def step(self, message: Message) -> None:
        """A message has arrived; it may be late, doubled, or meant for an earlier directory."""
        if message.target != self.me:
            return
        if message.term > self.term:
            if not self.admits_higher_term(message):
                return
        elif message.term < self.term:
            self.answer_stale(message)
            return
        HANDLERS[message.kind](self, message)

    def propose(self, datas: Sequence[bytes]) -> int:
        """Append entries for the machine; returns the index of the first. They are committed when
        they are applied at that index *in the present term*, and lost if another term's are.
        """
        self._must_lead()
        if self.log.last - self.log.commit + len(datas) > self.config.uncommitted_entries_max:
            raise Overloaded("the quorum has too many uncommitted changes")
        self.is_dirty = True
        return self.log.append_own(self.term, EntryKind.NORMAL, datas)

    def read_index(self, context: bytes) -> None:
        """Ask for the index at which a read that starts now is linearizable; a ReadState with the
        same context answers, or nothing does if the leader changes: then ask again.
        """
        if self.role is Role.LEADER:
            if len(self.reads) >= self.config.reads_max:
                raise Overloaded("the quorum has too many waiting reads")
            self.take_read(self.me, context)
        elif self.leader is None:
            raise NotController(None)
        else:
            self.outbox.append(
                Message(MessageKind.READ_INDEX, self.me, self.leader, self.term, context=context)
            )

    def propose_conf(self, change: ConfChange) -> int:
        """Change the quorum by one member; returns the entry's index. The change counts at once.

        Refused until the change before it is committed (two at once need not share a majority) and
        until an entry of this term is (an older leader's change may still be alive; thesis 4.1).
        """
        self._must_lead()
        self._must_be_settled()
        conf = self.conf.changed(change)
        if change.kind is ConfChangeKind.PROMOTE:
            self._must_keep_up(change.member)
        index = self.log.append_own(self.term, EntryKind.CONF, (conf.encode(),))
        self.adopt_conf()
        assert self.conf == conf
        self.is_dirty = True
        return index

    def transfer(self, to: Member) -> None:
        """Hand leadership to a voter; proposals are refused until it is done or given up."""
        self._must_lead()
        if to == self.me or to not in self.conf.voters:
            raise InvalidRequest(f"{to} is no other voter of the quorum")
        self.transfer_target = to
        self.election_elapsed = 0
        self.hand_over()

    def compact(self, index: int, data: bytes) -> Snapshot:
        """The machine's state at an applied index replaces the log before it. The driver stores the
        returned snapshot and drops the entries up to its index in one batch.
        """
        return self.log.compact(index, data, self.config.trailing_entries)

    def _must_lead(self) -> None:
        if self.role is not Role.LEADER:
            raise NotController(None if self.leader is None else self.leader.node)
        if self.transfer_target is not None:
            raise NotController(self.transfer_target.node)

    def _must_be_settled(self) -> None:
        if self.log.conf_index > self.log.commit:
            raise MembershipChangePending("the change before this one is not committed")
        if not self.has_committed_in_term():
            raise MembershipChangePending("the leader has not committed anything in its term")

    def _must_keep_up(self, learner: Member) -> None:
        if self.progress[learner.node].state is not ProgressState.REPLICATE:
            raise MembershipChangePending(f"{learner} has not caught up")

    # -- decisions --------------------------------------------------------------------------------

    def has_ready(self) -> bool:
        log = self.log
        return bool(
            self.is_dirty
            or self.outbox
            or self.reads_ready
            or log.stable < log.last
            or log.handed < log.commit
            or log.pending_snapshot is not None
            or self.saved.commit != log.commit
            or self.saved.term != self.term
            or self.saved.vote != self.vote
        )

    def take_ready(self) -> Ready:
        """Everything that is to be done now; the next one only after `advance`."""
        assert self._taken is None, "the Ready before this one is not done"
        if self.is_dirty and self.role is Role.LEADER:
            self.flush()
        self.is_dirty = False
        log = self.log
        hard_state, is_promise = self._news()
        early, late = self._sorted_outbox(hold_all=is_promise)
        entries = log.unstable()
        snapshot, log.pending_snapshot = log.pending_snapshot, None
        ready = Ready(
            early,
            snapshot,
            entries,
            hard_state,
            is_promise or bool(entries) or snapshot is not None,
            late,
            log.hand_out() if log.has_unapplied() else (),
            tuple(self.reads_ready),
        )
        self.reads_ready.clear()
        self._taken = ready
        return ready

    def advance(self, ready: Ready) -> None:
        """The Ready has been carried out, all of it."""
        assert ready is self._taken, "not the Ready that was taken"
        self._taken = None
        if ready.snapshot is not None:
            self.log.applied_to(ready.snapshot.index)
        if ready.committed:
            self.log.applied_to(ready.committed[-1].index)
        if ready.entries:
            self.log.stable_to(ready.entries[-1].index, ready.entries[-1].term)
            if self.role is Role.LEADER:
                self.advance_commit()

    def status(self) -> RaftStatus:
        log = self.log
        return RaftStatus(
            self.me,
            self.role,
            self.term,
            self.leader,
            self.conf,
            log.commit,
            log.applied,
            log.base + 1,
            log.last,
            log.snapshot.index,
            tuple(
                FollowerStatus(p.member, p.state, p.match, p.next) for p in self.progress.values()
            ),
        )

    def _news(self) -> tuple[HardState | None, bool]:
        """The hard state if it changed, and whether term or vote did: a promise to be kept."""
        saved, commit = self.saved, self.log.commit
        is_promise = saved.term != self.term or saved.vote != self.vote
        if not is_promise and saved.commit == commit:
            return None, False
        self.saved = HardState(self.term, self.vote, commit)
        return self.saved, is_promise

    def _sorted_outbox(self, *, hold_all: bool) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
        """Early and late messages. While a new term or vote is not stored, nothing leaves early:
        a leader that forgets its term could lead the same one twice.
        """
        outbox, self.outbox = self.outbox, []
        if hold_all or not outbox:
            return (), tuple(outbox)
        early = tuple(message for message in outbox if message.kind in EARLY)
        if len(early) == len(outbox):
            return early, ()
        return early, tuple(message for message in outbox if message.kind not in EARLY)


HANDLERS: Final[dict[MessageKind, Callable[[Raft, Message], None]]] = {
    MessageKind.APPEND: Raft.on_append,
    MessageKind.APPEND_REPLY: Raft.on_append_reply,
    MessageKind.HEARTBEAT: Raft.on_heartbeat,
    MessageKind.HEARTBEAT_REPLY: Raft.on_heartbeat_reply,
    MessageKind.VOTE: Raft.on_vote,
    MessageKind.VOTE_REPLY: Raft.on_vote_reply,
    MessageKind.PRE_VOTE: Raft.on_pre_vote,
    MessageKind.PRE_VOTE_REPLY: Raft.on_pre_vote_reply,
    MessageKind.SNAPSHOT: Raft.on_snapshot,
    MessageKind.SNAPSHOT_REPLY: Raft.on_snapshot_reply,
    MessageKind.TIMEOUT_NOW: Raft.on_timeout_now,
    MessageKind.READ_INDEX: Raft.on_read_index,
    MessageKind.READ_INDEX_REPLY: Raft.on_read_index_reply,
}
assert HANDLERS.keys() == set(MessageKind)
