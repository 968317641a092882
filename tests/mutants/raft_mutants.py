"""Planted bugs of the Raft core. Each breaks one rule that the paper or RELIABILITY.md states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.controller_quorum import quorum
from cluster.controller_quorum.election import Election
from cluster.controller_quorum.raft import Raft
from cluster.controller_quorum.raft_log import RaftLog
from cluster.controller_quorum.raft_state import RaftState
from cluster.controller_quorum.replication import Replication
from tests.mutants.registry import Edit, Mutant

if TYPE_CHECKING:
    from collections.abc import Callable


def _one(name: str, breaks: str, function: Callable[..., Any], before: str, after: str) -> Mutant:
    return Mutant(name, breaks, (Edit(function, before, after),))


RAFT_MUTANTS: tuple[Mutant, ...] = (
    _one(
        "a second vote in the same term",
        "M6",
        Election.has_vote_for,
        "self.vote == message.source or (self.vote is None and self.leader is None)",
        "self.leader is None",
    ),
    _one(
        "the vote is reset within its term",
        "M6",
        RaftState.enter_term,
        "if term > self.term:",
        "if True:",
    ),
    _one(
        "row 35: the vote is not synced",
        "M6",
        Raft.take_ready,
        "is_promise or bool(entries) or snapshot is not None,",
        "bool(entries) or snapshot is not None,",
    ),
    _one(
        "row 35: acknowledgements and votes leave before the sync",
        "M5",
        Raft._sorted_outbox,
        "early = tuple(message for message in outbox if message.kind in EARLY)",
        "early = tuple(outbox)",
    ),
    _one(
        "a new leader speaks before its term is stored",
        "M6",
        Raft._sorted_outbox,
        "if hold_all or not outbox:",
        "if not outbox:",
    ),
    _one(
        "the leader counts its own copy before it is stored",
        "M5",
        Replication.advance_commit,
        "log.stable if voter == self.me",
        "log.last if voter == self.me",
    ),
    _one(
        "an older term's entry is committed by counting (figure 8)",
        "M5",
        Replication.advance_commit,
        "if index <= log.commit or log.term(index) != self.term:",
        "if index <= log.commit:",
    ),
    _one(
        "a majority of an even set is half of it",
        "M1",
        quorum.majority,
        "voters // 2 + 1",
        "(voters + 1) // 2",
    ),
    _one(
        "votes go to any log",
        "M3",
        RaftLog.is_up_to_date,
        "return (last_term, last) >= (self.last_term, self.last)",
        "return True",
    ),
    _one(
        "logs are compared by length alone",
        "M3",
        RaftLog.is_up_to_date,
        "return (last_term, last) >= (self.last_term, self.last)",
        "return last >= self.last",
    ),
    _one(
        "an append is taken without the check of the term before it",
        "M2",
        RaftLog.accept,
        "if self.term(previous) != previous_term:",
        "if self.term(previous) is None:",
    ),
    _one(
        "an old append cuts off what was acknowledged since",
        "M5",
        RaftLog.accept,
        "if self.term(entry.index) != entry.term:",
        "if True:",
    ),
    _one(
        "a follower commits beyond what the leader has checked",
        "M4",
        Replication.on_append,
        "log.commit_to(min(message.commit, held))",
        "log.commit_to(min(message.commit, log.last))",
    ),
    _one(
        "a snapshot drops the acknowledged entries after it",
        "M5",
        Replication._install,
        "if self.log.term(last_chunk.index) == last_chunk.term:",
        "if False:",
    ),
    _one(
        "a snapshot chunk is taken at any offset",
        "M4",
        Replication.on_snapshot,
        "if chunk.offset == self._incoming_bytes:",
        "if True:",
    ),
    _one(
        "messages of an older term are heeded",
        "M1",
        Raft.step,
        "elif message.term < self.term:",
        "elif False:",
    ),
    _one(
        "a learner counts towards the majority",
        "M5",
        Replication.advance_commit,
        "for voter in self.conf.voters",
        "for voter in self.conf.members",
    ),
    _one(
        "row 38: two membership changes at once",
        "M7",
        Raft._must_be_settled,
        "if self.log.conf_index > self.log.commit:",
        "if False:",
    ),
    _one(
        "row 30: a membership change before the term has committed anything",
        "M7",
        Raft._must_be_settled,
        "if not self.has_committed_in_term():",
        "if False:",
    ),
    _one(
        "row 30: a membership change that was taken back still counts",
        "M7",
        RaftLog._truncate,
        "while self._confs[-1][0] > self.last:",
        "while False:",
    ),
    _one(
        "a read without asking the quorum",
        "read",
        Replication.confirm_reads,
        "self.reads.confirm(quorum.committed_index(answered))",
        "self.reads.confirm(self.reads.sequence)",
    ),
    _one(
        "a read before the leader knows what is committed",
        "read",
        Replication.take_read,
        "if self.has_committed_in_term():",
        "if True:",
    ),
    _one(
        "a pre-vote raises the term",
        "pre-vote",
        Election.admits_higher_term,
        "if kind is MessageKind.PRE_VOTE:",
        "if False:",
    ),
    _one(
        "a vote is given although a leader is alive",
        "lease",
        RaftState.hears_leader,
        "return self.leader is not None and",
        "return False and",
    ),
    Mutant(
        "row 31: a wiped node votes and acknowledges in the old one's place",
        "M7",
        (
            Edit(Raft.step, "message.target != self.me", "message.target.node != self.me.node"),
            Edit(
                Replication._follower_of,
                "if follower is None or follower.member != message.source:",
                "if follower is None:",
            ),
            Edit(
                Election._counts,
                "if self.role is not role or message.source not in self.conf.voters:",
                "if self.role is not role:",
            ),
            Edit(
                Election._counts,
                "self.votes.setdefault(message.source, not message.reject)",
                "[self.votes.setdefault(v, not message.reject) for v in self.conf.voters"
                " if v.node == message.source.node]",
            ),
        ),
    ),
)

CANARY = Mutant(
    "canary: the same majority, written otherwise",
    "nothing",
    (Edit(quorum.majority, "voters // 2 + 1", "(voters + 2) // 2"),),
)
