"""The log between a leader and its followers: appends, acknowledgements, commit, snapshots, reads.

A leader sends only in `flush`, once per Ready, so that everything proposed since the last one
travels in one append. It counts its own copy like any other: once stored, not before.

Invariant: the commit index moves only to an entry of the leader's own term that a majority of the
voters of its newest configuration has stored (section 5.4.2, M5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.controller_quorum import quorum
from cluster.controller_quorum.messages import (
    Message,
    MessageKind,
    ReadState,
    Snapshot,
    SnapshotChunk,
)
from cluster.controller_quorum.progress import Progress, ProgressState
from cluster.controller_quorum.raft_state import RaftConfig, RaftState, Role

if TYPE_CHECKING:
    from random import Random

    from cluster.controller_quorum.conf import Member
    from cluster.controller_quorum.messages import Stored


class Replication(RaftState):
    """Both ends of replication."""

    __slots__ = ("_incoming", "_incoming_bytes", "_incoming_key")

    def __init__(self, me: Member, config: RaftConfig, stored: Stored, random: Random) -> None:
        RaftState.__init__(self, me, config, stored, random)
        self._incoming: list[bytes] = []
        self._incoming_bytes = 0
        self._incoming_key = (0, 0)
        """The leader's term and the index of the snapshot whose chunks are being collected."""

    # -- the leader sends -------------------------------------------------------------------------

    def flush(self) -> None:
        """Send each follower what it may have now."""
        assert self.role is Role.LEADER
        self.is_dirty = False
        for follower in self.progress.values():
            self._send_to(follower)
        if self.reads.needs_round():
            self.reads.start_round()
            self.send_heartbeats()
            self.confirm_reads()

    def _send_to(self, follower: Progress) -> None:
        log = self.log
        while follower.can_send():
            if follower.state is ProgressState.SNAPSHOT:
                self._send_chunk(follower)
                continue
            has_news = follower.next <= log.last or (
                self.config.announce_commits and follower.commit_sent < log.commit
            )
            if follower.state is ProgressState.REPLICATE and not has_news:
                return
            previous = follower.next - 1
            previous_term = log.term(previous)
            if previous_term is None:
                follower.start_snapshot(log.snapshot)
                continue
            entries = (
                log.slice(follower.next, self.config.append_bytes_max)
                if follower.next <= log.last
                else ()
            )
            self.outbox.append(
                Message(
                    MessageKind.APPEND,
                    self.me,
                    follower.member,
                    self.term,
                    previous,
                    previous_term,
                    entries,
                    log.commit,
                )
            )
            follower.on_sent(previous + len(entries), log.commit)

    def _send_chunk(self, follower: Progress) -> None:
        snapshot = follower.snapshot
        assert snapshot is not None
        offset = follower.chunk_offset
        chunk = SnapshotChunk(
            snapshot.index,
            snapshot.term,
            snapshot.conf,
            offset,
            snapshot.data[offset : offset + self.config.chunk_bytes_max],
            len(snapshot.data),
        )
        self.outbox.append(
            Message(MessageKind.SNAPSHOT, self.me, follower.member, self.term, snapshot=chunk)
        )
        follower.on_chunk_sent()

    def send_heartbeats(self) -> None:
        for follower in self.progress.values():
            self.outbox.append(
                Message(
                    MessageKind.HEARTBEAT,
                    self.me,
                    follower.member,
                    self.term,
                    commit=min(follower.match, self.log.commit),
                    read_sequence=self.reads.sequence,
                )
            )

    # -- the leader hears -------------------------------------------------------------------------

    def _follower_of(self, message: Message) -> Progress | None:
        """The follower that speaks; None if this is no leader or that is no member of it (M7)."""
        if self.role is not Role.LEADER:
            return None
        follower = self.progress.get(message.source.node)
        if follower is None or follower.member != message.source:
            return None
        follower.active = True
        return follower

    def on_append_reply(self, message: Message) -> None:
        follower = self._follower_of(message)
        if follower is None:
            return
        if message.reject:
            retry_after, _ = self.log.find_conflict_hint(message.hint, message.log_term)
            self.is_dirty |= follower.on_reject(message.index, retry_after)
            return
        assert message.index <= self.log.last, "a follower holds more than its leader"
        follower.on_ack(message.index)
        self.is_dirty = True
        self.advance_commit()
        self.hand_over()

    def on_heartbeat_reply(self, message: Message) -> None:
        follower = self._follower_of(message)
        if follower is None:
            return
        self.is_dirty |= follower.on_beat(self.log.last)
        if message.read_sequence > follower.read_sequence:
            follower.read_sequence = message.read_sequence
            self.confirm_reads()

    def on_snapshot_reply(self, message: Message) -> None:
        follower = self._follower_of(message)
        if follower is not None:
            self.is_dirty |= follower.on_chunk_ack(message.index, message.hint)

    def advance_commit(self) -> None:
        """Commit what a majority has stored, if it is of this term; older entries follow along."""
        log = self.log
        stored = [
            log.stable if voter == self.me else self.progress[voter.node].match
            for voter in self.conf.voters
        ]
        index = quorum.committed_index(stored)
        if index <= log.commit or log.term(index) != self.term:
            return
        log.commit_to(index)
        self.is_dirty = True
        self.reads.release_held(log.commit)
        if self.me not in self.conf.voters and log.conf_index <= log.commit:
            self.become_follower(self.term, None)  # its own removal is done (thesis 4.2.2)

    def has_committed_in_term(self) -> bool:
        return self.log.term(self.log.commit) == self.term

    def hand_over(self) -> None:
        """Tell the transfer's target to stand for election, once it holds everything."""
        target = self.transfer_target
        if target is None:
            return
        follower = self.progress.get(target.node)
        if follower is not None and follower.match == self.log.last:
            self.outbox.append(Message(MessageKind.TIMEOUT_NOW, self.me, target, self.term))

    # -- reads ------------------------------------------------------------------------------------

    def take_read(self, origin: Member, context: bytes) -> None:
        if self.has_committed_in_term():
            self.reads.add(origin, context, self.log.commit)
        else:
            self.reads.hold(origin, context)
        self.is_dirty = True

    def confirm_reads(self) -> None:
        answered = [
            self.reads.sequence if voter == self.me else self.progress[voter.node].read_sequence
            for voter in self.conf.voters
        ]
        for read in self.reads.confirm(quorum.committed_index(answered)):
            if read.origin == self.me:
                self.reads_ready.append(ReadState(read.context, read.index))
            else:
                self.outbox.append(
                    Message(
                        MessageKind.READ_INDEX_REPLY,
                        self.me,
                        read.origin,
                        self.term,
                        read.index,
                        context=read.context,
                    )
                )

    def on_read_index(self, message: Message) -> None:
        if self.role is Role.LEADER and len(self.reads) < self.config.reads_max:
            self.take_read(message.source, message.context)

    def on_read_index_reply(self, message: Message) -> None:
        self.reads_ready.append(ReadState(message.context, message.index))

    # -- the follower -----------------------------------------------------------------------------

    def _heed(self, leader: Member) -> None:
        """The term has a leader and it is alive."""
        assert self.role is not Role.LEADER, f"{leader} also leads term {self.term}"
        assert self.leader in (None, leader), f"{leader} and {self.leader} lead term {self.term}"
        if self.role is Role.FOLLOWER and self.leader is not None:
            self.election_elapsed = 0
        else:
            self.become_follower(self.term, leader)

    def on_append(self, message: Message) -> None:
        self._heed(message.source)
        log = self.log
        if message.index < log.commit:
            self._acknowledge(message.source, log.commit)
            return
        held = log.accept(message.index, message.log_term, message.entries)
        if held is None:
            hint, hint_term = log.find_conflict_hint(message.index, message.log_term)
            self.outbox.append(
                Message(
                    MessageKind.APPEND_REPLY,
                    self.me,
                    message.source,
                    self.term,
                    message.index,
                    hint_term,
                    reject=True,
                    hint=hint,
                )
            )
            return
        log.commit_to(min(message.commit, held))
        self.adopt_conf()
        self._acknowledge(message.source, held)

    def on_heartbeat(self, message: Message) -> None:
        self._heed(message.source)
        self.log.commit_to(message.commit)
        self.outbox.append(
            Message(
                MessageKind.HEARTBEAT_REPLY,
                self.me,
                message.source,
                self.term,
                read_sequence=message.read_sequence,
            )
        )

    def on_snapshot(self, message: Message) -> None:
        """Collect the chunks in order; the answer to each says which one is wanted next."""
        self._heed(message.source)
        chunk = message.snapshot
        assert chunk is not None
        if chunk.index <= self.log.commit:
            self._acknowledge(message.source, self.log.commit)
            return
        if self._incoming_key != (message.term, chunk.index):
            self._forget_incoming()
            self._incoming_key = (message.term, chunk.index)
        if chunk.offset == self._incoming_bytes:
            self._incoming.append(chunk.data)
            self._incoming_bytes += len(chunk.data)
            if chunk.is_last:
                self._install(chunk)
                self._acknowledge(message.source, chunk.index)
                return
        self.outbox.append(
            Message(
                MessageKind.SNAPSHOT_REPLY,
                self.me,
                message.source,
                self.term,
                chunk.index,
                hint=self._incoming_bytes,
            )
        )

    def _install(self, last_chunk: SnapshotChunk) -> None:
        data = b"".join(self._incoming)
        assert len(data) == last_chunk.bytes_total
        self._forget_incoming()
        if self.log.term(last_chunk.index) == last_chunk.term:
            # The log already has all that the snapshot covers, and perhaps acknowledged entries
            # after it: those must stay.
            self.log.commit_to(last_chunk.index)
            return
        self.log.restore(Snapshot(last_chunk.index, last_chunk.term, last_chunk.conf, data))
        self.adopt_conf()

    def _forget_incoming(self) -> None:
        self._incoming = []
        self._incoming_bytes = 0
        self._incoming_key = (0, 0)

    def _acknowledge(self, leader: Member, index: int) -> None:
        self.outbox.append(Message(MessageKind.APPEND_REPLY, self.me, leader, self.term, index))
