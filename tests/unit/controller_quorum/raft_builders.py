"""Members for the unit tests of the core: built in a role, driven by hand, one Ready at a time."""

from __future__ import annotations

from random import Random

from suiro.model.ids import NodeId

from cluster.controller_quorum.conf import ConfState, DirectoryId, Member
from cluster.controller_quorum.messages import (
    Entry,
    EntryKind,
    HardState,
    Message,
    MessageKind,
    Ready,
    Snapshot,
    Stored,
)
from cluster.controller_quorum.raft import Raft
from cluster.controller_quorum.raft_state import RaftConfig, Role

ONE, TWO, THREE, FOUR, FIVE = (Member(NodeId(n), DirectoryId("a")) for n in range(1, 6))
TRIO = ConfState((ONE, TWO, THREE))
QUINTET = ConfState((ONE, TWO, THREE, FOUR, FIVE))
CONFIG = RaftConfig(election_ticks=10, heartbeat_ticks=2, trailing_entries=0)


def entries(*terms: int, first: int = 1) -> tuple[Entry, ...]:
    """Entries of these terms; an entry's data is its place, so that two logs can be compared."""
    return tuple(
        Entry(first + n, term, EntryKind.NORMAL, b"%d.%d" % (first + n, term))
        for n, term in enumerate(terms)
    )


def member(
    *terms: int,
    me: Member = ONE,
    conf: ConfState = TRIO,
    term: int | None = None,
    vote: Member | None = None,
    commit: int = 0,
    config: RaftConfig = CONFIG,
) -> Raft:
    """A member that wakes up with a log of these terms."""
    stored = Stored(
        HardState(max(terms, default=0) if term is None else term, vote, commit),
        Snapshot(conf=conf),
        entries(*terms),
    )
    return Raft(me, config, stored, Random(1))


def do(raft: Raft) -> list[Message]:
    """Carry out everything that is ready, as a perfect disk would; returns what was sent."""
    sent: list[Message] = []
    while raft.has_ready():
        ready = raft.take_ready()
        sent += ready.messages_early + ready.messages_late
        raft.advance(ready)
    return sent


def one_ready(raft: Raft) -> Ready:
    """Take one Ready and carry it out."""
    ready = raft.take_ready()
    raft.advance(ready)
    return ready


def leader(*terms: int, conf: ConfState = TRIO, config: RaftConfig = CONFIG) -> Raft:
    """A member that was just elected, in the term after these, by everyone."""
    raft = member(*terms, conf=conf, config=config)
    elect(raft)
    return raft


def elect(raft: Raft) -> list[Message]:
    """Stand, and be voted for by everyone; returns what the new leader sent first."""
    raft.campaign()
    sent = do(raft)
    term = raft.term + 1
    for kind in (MessageKind.PRE_VOTE_REPLY, MessageKind.VOTE_REPLY):
        for voter in raft.conf.voters:
            if voter != raft.me:
                raft.step(Message(kind, voter, raft.me, term))
        sent = do(raft)
    return sent


def ack(raft: Raft, follower: Member, index: int) -> list[Message]:
    """A follower says that it holds everything up to `index`."""
    raft.step(Message(MessageKind.APPEND_REPLY, follower, raft.me, raft.term, index))
    return do(raft)


def append(
    raft: Raft,
    source: Member,
    term: int,
    previous: tuple[int, int],
    new: tuple[Entry, ...] = (),
    commit: int = 0,
) -> list[Message]:
    raft.step(
        Message(MessageKind.APPEND, source, raft.me, term, previous[0], previous[1], new, commit)
    )
    return do(raft)


def ask(
    raft: Raft,
    source: Member,
    term: int,
    last: tuple[int, int],
    kind: MessageKind = MessageKind.VOTE,
) -> Message | None:
    """A request for the member's vote, and its answer."""
    raft.step(Message(kind, source, raft.me, term, last[0], last[1]))
    sent = [message for message in do(raft) if message.target == source]
    return sent[-1] if sent else None


def role(raft: Raft) -> Role:
    """The present role; a function, because a type checker believes that an attribute stays."""
    return raft.role


def terms_of(raft: Raft) -> list[int | None]:
    return [raft.log.term(index) for index in range(1, raft.log.last + 1)]
