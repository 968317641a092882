"""What a member of the quorum is: its identity, term, vote, role and log, and how roles change.

The core is one object in layers, each in its own file and each using only those beneath it:
RaftState, Replication (leading and following), Election, Raft (the public face).

Invariant: the term never falls; within a term the vote is given once and never taken back; a leader
is a leader for one term only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from suiro.model.limits import (
    QUORUM_APPEND_BYTES_MAX,
    QUORUM_APPENDS_IN_FLIGHT_MAX,
    QUORUM_CHUNK_BYTES_MAX,
    QUORUM_READS_MAX,
    QUORUM_TRAILING_ENTRIES,
    QUORUM_UNCOMMITTED_ENTRIES_MAX,
)

from cluster.controller_quorum.progress import Progress
from cluster.controller_quorum.raft_log import RaftLog
from cluster.controller_quorum.reads import ReadQueue

if TYPE_CHECKING:
    from random import Random

    from suiro.model.ids import NodeId

    from cluster.controller_quorum.conf import ConfState, Member
    from cluster.controller_quorum.messages import Message, ReadState, Stored


class Role(Enum):
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """Times are in ticks; what a tick is, the driver decides."""

    election_ticks: int = 10
    heartbeat_ticks: int = 2
    append_bytes_max: int = QUORUM_APPEND_BYTES_MAX
    appends_in_flight_max: int = QUORUM_APPENDS_IN_FLIGHT_MAX
    chunk_bytes_max: int = QUORUM_CHUNK_BYTES_MAX
    reads_max: int = QUORUM_READS_MAX
    uncommitted_entries_max: int = QUORUM_UNCOMMITTED_ENTRIES_MAX
    trailing_entries: int = QUORUM_TRAILING_ENTRIES
    announce_commits: bool = True
    """Tell followers of a commit at once, by an append of its own if there is nothing else to send;
    otherwise they hear of it with the next entries or heartbeat.
    """

    def __post_init__(self) -> None:
        assert 0 < self.heartbeat_ticks < self.election_ticks


class RaftState:
    """The fields that all layers share."""

    __slots__ = (
        "_random",
        "conf",
        "config",
        "election_elapsed",
        "election_timeout",
        "heartbeat_elapsed",
        "is_dirty",
        "leader",
        "log",
        "me",
        "outbox",
        "progress",
        "reads",
        "reads_ready",
        "role",
        "saved",
        "term",
        "transfer_target",
        "vote",
        "votes",
    )

    def __init__(self, me: Member, config: RaftConfig, stored: Stored, random: Random) -> None:
        self.me = me
        self.config = config
        self._random = random
        self.log = RaftLog(stored)
        self.conf: ConfState = self.log.conf
        self.saved = stored.hard_state
        """What the driver has been told to store; the rest is news."""
        self.term = stored.hard_state.term
        self.vote = stored.hard_state.vote
        assert self.term >= self.log.last_term, "the log is ahead of the stored term"
        self.role = Role.FOLLOWER
        self.leader: Member | None = None
        self.votes: dict[Member, bool] = {}
        self.progress: dict[NodeId, Progress] = {}
        """A leader's view of every other member, learners included; empty on all others."""
        self.reads = ReadQueue()
        self.transfer_target: Member | None = None
        self.is_dirty = False
        """A leader may have something to send; the next Ready looks."""
        self.outbox: list[Message] = []
        self.reads_ready: list[ReadState] = []
        self.heartbeat_elapsed = 0
        self.election_elapsed = 0
        self.election_timeout = 0
        self.restart_timer()

    def restart_timer(self) -> None:
        """Wait a random time between one and two election timeouts, so that ties break."""
        ticks = self.config.election_ticks
        self.election_elapsed = 0
        self.election_timeout = ticks + self._random.randrange(ticks)

    def enter_term(self, term: int) -> None:
        """A higher term makes the vote free; the same term never does."""
        assert term >= self.term, f"term {term} after {self.term}"
        if term > self.term:
            self.term = term
            self.vote = None

    def become_follower(self, term: int, leader: Member | None) -> None:
        self.enter_term(term)
        self._leave_role(Role.FOLLOWER)
        self.leader = leader

    def become_pre_candidate(self) -> None:
        """Ask before disturbing anyone: the term stays (section 9.6)."""
        assert self.role is not Role.LEADER
        self._leave_role(Role.PRE_CANDIDATE)
        self.votes[self.me] = True

    def become_candidate(self) -> None:
        assert self.role is not Role.LEADER
        self.enter_term(self.term + 1)
        self._leave_role(Role.CANDIDATE)
        self.vote = self.me
        self.votes[self.me] = True

    def become_leader(self) -> None:
        assert self.role is Role.CANDIDATE
        assert self.vote == self.me
        self._leave_role(Role.LEADER)
        self.leader = self.me
        self.track_members()

    def track_members(self) -> None:
        """As a leader: follow everyone in the configuration and nobody else."""
        known = self.progress
        self.progress = {}
        for member in self.conf.members:
            if member == self.me:
                continue
            followed = known.get(member.node)
            if followed is None or followed.member != member:
                followed = Progress(member, self.log.last + 1, self.config.appends_in_flight_max)
            self.progress[member.node] = followed

    def adopt_conf(self) -> None:
        """The newest configuration in the log counts at once, committed or not (section 6)."""
        conf = self.log.conf
        if conf is not self.conf:
            self.conf = conf
            if self.role is Role.LEADER:
                self.track_members()

    def is_electable(self) -> bool:
        """A voter of the newest configuration; or one that a change not yet committed would drop:
        it may hold the only copy of that change.
        """
        return self.me in self.conf.voters or self.me in self.log.conf_at(self.log.commit).voters

    def hears_leader(self) -> bool:
        """Within the lease: a leader was heard less than an election timeout ago."""
        return self.leader is not None and self.election_elapsed < self.config.election_ticks

    def _leave_role(self, role: Role) -> None:
        self.role = role
        self.leader = None
        self.votes = {}
        self.progress = {}
        self.reads.clear()
        self.transfer_target = None
        self.is_dirty = False
        self.heartbeat_elapsed = 0
        self.restart_timer()
