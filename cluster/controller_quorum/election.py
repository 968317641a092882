"""Who leads: pre-vote, vote, the lease that protects a living leader, and its check of the quorum.

A member answers a request for its vote in this order: is it within the lease of a living leader
(then it ignores the request, unless that leader itself asked for the transfer); is the candidate
one that may stand; is the vote of this term free; is the candidate's log at least as good.

Invariant: a vote is given at most once per term, and only the votes of the voters of the
candidate's own newest configuration are counted, each by node id *and* directory id (M6, M7).
"""

from __future__ import annotations

from cluster.controller_quorum import quorum
from cluster.controller_quorum.messages import EntryKind, Message, MessageKind
from cluster.controller_quorum.quorum import VoteResult
from cluster.controller_quorum.raft_state import Role
from cluster.controller_quorum.replication import Replication


class Election(Replication):
    """Candidates, voters, and the leader's own doubts."""

    __slots__ = ()

    # -- standing for election --------------------------------------------------------------------

    def campaign(self, *, is_transfer: bool = False) -> None:
        """Ask for pre-votes; a transfer goes straight to the votes, its leader has agreed."""
        if self.role is Role.LEADER or not self.is_electable():
            return
        if is_transfer:
            self._stand(is_transfer=True)
            return
        self.become_pre_candidate()
        if self._result() is VoteResult.WON:
            self._stand(is_transfer=False)
        else:
            self._ask(MessageKind.PRE_VOTE, self.term + 1, is_transfer=False)

    def _stand(self, *, is_transfer: bool) -> None:
        self.become_candidate()
        if self._result() is VoteResult.WON:
            self._lead()
        else:
            self._ask(MessageKind.VOTE, self.term, is_transfer=is_transfer)

    def _ask(self, kind: MessageKind, term: int, *, is_transfer: bool) -> None:
        log = self.log
        for voter in self.conf.voters:
            if voter != self.me:
                self.outbox.append(
                    Message(
                        kind, self.me, voter, term, log.last, log.last_term, transfer=is_transfer
                    )
                )

    def _lead(self) -> None:
        """An empty entry of the own term lets everything before it be committed (section 8)."""
        self.become_leader()
        self.log.append_own(self.term, EntryKind.EMPTY, (b"",))
        self.is_dirty = True

    def _result(self) -> VoteResult:
        return quorum.vote_result(self.conf.voters, self.votes)

    def on_vote_reply(self, message: Message) -> None:
        if self._counts(Role.CANDIDATE, message):
            match self._result():
                case VoteResult.WON:
                    self._lead()
                case VoteResult.LOST:
                    self.become_follower(self.term, None)
                case VoteResult.PENDING:
                    pass

    def on_pre_vote_reply(self, message: Message) -> None:
        if self._counts(Role.PRE_CANDIDATE, message):
            match self._result():
                case VoteResult.WON:
                    self._stand(is_transfer=False)
                case VoteResult.LOST:
                    self.become_follower(self.term, None)
                case VoteResult.PENDING:
                    pass

    def _counts(self, role: Role, message: Message) -> bool:
        """Note a vote; False if nobody asked for it or the voter is not who the log says it is."""
        if self.role is not role or message.source not in self.conf.voters:
            return False
        self.votes.setdefault(message.source, not message.reject)
        return True

    # -- voting -----------------------------------------------------------------------------------

    def may_stand(self, message: Message) -> bool:
        """A candidate is a voter that we know, or its log is ahead of ours and so may hold the
        change that made it one. A wiped node has neither.
        """
        log = self.log
        is_ahead = (message.log_term, message.index) > (log.last_term, log.last)
        return is_ahead or message.source in self.conf.voters

    def has_vote_for(self, message: Message) -> bool:
        return self.vote == message.source or (self.vote is None and self.leader is None)

    def on_vote(self, message: Message) -> None:
        assert message.term == self.term
        is_granted = (
            self.has_vote_for(message)
            and self.may_stand(message)
            and self.log.is_up_to_date(message.index, message.log_term)
        )
        if is_granted:
            assert self.vote in (None, message.source)
            self.vote = message.source
            self.election_elapsed = 0
        self._answer(MessageKind.VOTE_REPLY, message, self.term, is_granted=is_granted)

    def on_pre_vote(self, message: Message) -> None:
        """Would we vote for it in the term it wants to open? Nothing changes here."""
        is_granted = (
            (message.term > self.term or self.has_vote_for(message))
            and self.may_stand(message)
            and self.log.is_up_to_date(message.index, message.log_term)
        )
        term = message.term if is_granted else self.term
        self._answer(MessageKind.PRE_VOTE_REPLY, message, term, is_granted=is_granted)

    def _answer(self, kind: MessageKind, request: Message, term: int, *, is_granted: bool) -> None:
        self.outbox.append(Message(kind, self.me, request.source, term, reject=not is_granted))

    def on_timeout_now(self, message: Message) -> None:
        """The leader hands over: do not wait for the timer (thesis 3.10)."""
        assert message.term == self.term
        self.campaign(is_transfer=True)

    # -- terms ------------------------------------------------------------------------------------

    def admits_higher_term(self, message: Message) -> bool:
        """Whether to go on with a message of a higher term; takes over the term where due."""
        kind = message.kind
        if kind in (MessageKind.VOTE, MessageKind.PRE_VOTE):
            if self.hears_leader() and not message.transfer:
                return False
            if not self.may_stand(message):
                return False
        if kind is MessageKind.PRE_VOTE:
            return True
        if kind is MessageKind.PRE_VOTE_REPLY and not message.reject:
            return message.term == self.term + 1  # the term that we asked about, not one that is
        self.become_follower(message.term, None)
        return True

    def answer_stale(self, message: Message) -> None:
        """Tell a leader or candidate of an older term that its time is over."""
        match message.kind:
            case MessageKind.APPEND | MessageKind.HEARTBEAT | MessageKind.SNAPSHOT:
                self._answer(MessageKind.APPEND_REPLY, message, self.term, is_granted=False)
            case MessageKind.VOTE:
                self._answer(MessageKind.VOTE_REPLY, message, self.term, is_granted=False)
            case MessageKind.PRE_VOTE:
                self._answer(MessageKind.PRE_VOTE_REPLY, message, self.term, is_granted=False)
            case _:
                pass

    # -- time -------------------------------------------------------------------------------------

    def tick_follower(self) -> None:
        self.election_elapsed += 1
        if self.election_elapsed >= self.election_timeout:
            self.restart_timer()
            self.campaign()

    def tick_leader(self) -> None:
        self.heartbeat_elapsed += 1
        self.election_elapsed += 1
        if self.election_elapsed >= self.config.election_ticks:
            self.election_elapsed = 0
            self.transfer_target = None  # it had its time; serve again
            if not self._has_quorum():
                self.become_follower(self.term, None)
                return
        if self.heartbeat_elapsed >= self.config.heartbeat_ticks:
            self.heartbeat_elapsed = 0
            self.send_heartbeats()

    def _has_quorum(self) -> bool:
        """Whether a majority was heard since the last time; forgets who was."""
        heard = {
            voter: voter == self.me or self.progress[voter.node].active
            for voter in self.conf.voters
        }
        for follower in self.progress.values():
            follower.active = False
        return quorum.vote_result(heard, heard) is VoteResult.WON
