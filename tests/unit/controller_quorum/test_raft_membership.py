"""Members, identities and changes (section 6 of the paper, chapter 4 of the thesis, M7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suiro.model.errors import InvalidRequest, MembershipChangePending
from suiro.model.ids import NodeId

from cluster.controller_quorum.conf import (
    NOBODY,
    ConfChange,
    ConfChangeKind,
    ConfState,
    DirectoryId,
    Member,
)
from cluster.controller_quorum.messages import Entry, EntryKind, Message, MessageKind
from cluster.controller_quorum.raft_state import Role
from tests.unit.controller_quorum.raft_builders import (
    FOUR,
    ONE,
    THREE,
    TRIO,
    TWO,
    ack,
    append,
    ask,
    do,
    leader,
    member,
    role,
)

WIPED_TWO = Member(NodeId(2), DirectoryId("b"))

MEMBERS = st.lists(
    st.tuples(st.integers(0, 2**40), st.text(max_size=20)),
    unique_by=lambda pair: pair[0],
    max_size=7,
)


def change(kind: ConfChangeKind, who: Member) -> ConfChange:
    return ConfChange(kind, who)


@given(MEMBERS, st.integers(0, 7))
def test_a_configuration_survives_encoding(pairs: list[tuple[int, str]], voters: int) -> None:
    members = tuple(Member(NodeId(node), DirectoryId(name)) for node, name in pairs)
    conf = ConfState(members[:voters], members[voters:])
    assert ConfState.decode(conf.encode()) == conf


def test_a_node_id_is_in_the_quorum_once() -> None:
    with pytest.raises(InvalidRequest, match="remove it first"):
        TRIO.changed(change(ConfChangeKind.ADD_LEARNER, WIPED_TWO))
    with pytest.raises(AssertionError, match="twice"):
        ConfState((TWO,), (WIPED_TWO,))


def test_neighbouring_configurations_share_a_majority() -> None:
    """Every majority of one meets every majority of the next; so a change needs no second phase."""
    with_learner = TRIO.changed(change(ConfChangeKind.ADD_LEARNER, FOUR))
    assert with_learner.voters == TRIO.voters
    promoted = with_learner.changed(change(ConfChangeKind.PROMOTE, FOUR))
    removed = promoted.changed(change(ConfChangeKind.REMOVE, ONE))
    assert set(promoted.voters) - set(TRIO.voters) == {FOUR}
    assert set(promoted.voters) - set(removed.voters) == {ONE}


@pytest.mark.parametrize(
    ("kind", "who"),
    [
        (ConfChangeKind.PROMOTE, TWO),
        (ConfChangeKind.PROMOTE, FOUR),
        (ConfChangeKind.REMOVE, FOUR),
        (ConfChangeKind.REMOVE, WIPED_TWO),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(kind: ConfChangeKind, who: Member) -> None:
    with pytest.raises(InvalidRequest):
        TRIO.changed(change(kind, who))


def test_the_last_voter_stays() -> None:
    with pytest.raises(InvalidRequest, match="last voter"):
        ConfState((ONE,), (TWO,)).changed(change(ConfChangeKind.REMOVE, ONE))


def test_one_change_at_a_time() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.propose_conf(change(ConfChangeKind.ADD_LEARNER, FOUR))
    do(raft)
    with pytest.raises(MembershipChangePending, match="before this one"):
        raft.propose_conf(change(ConfChangeKind.REMOVE, THREE))
    ack(raft, TWO, 2)
    raft.propose_conf(change(ConfChangeKind.REMOVE, THREE))


def test_no_change_before_an_entry_of_the_leaders_term_is_committed() -> None:
    """The bug that single-server changes had as first published."""
    raft = leader(1)
    with pytest.raises(MembershipChangePending, match="in its term"):
        raft.propose_conf(change(ConfChangeKind.REMOVE, THREE))
    ack(raft, TWO, 2)
    raft.propose_conf(change(ConfChangeKind.REMOVE, THREE))


def test_a_learner_that_has_not_caught_up_is_not_promoted() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.propose_conf(change(ConfChangeKind.ADD_LEARNER, FOUR))
    do(raft)
    ack(raft, TWO, 2)
    with pytest.raises(MembershipChangePending, match="caught up"):
        raft.propose_conf(change(ConfChangeKind.PROMOTE, FOUR))
    ack(raft, FOUR, 2)
    raft.propose_conf(change(ConfChangeKind.PROMOTE, FOUR))
    assert raft.conf.voters == (ONE, TWO, THREE, FOUR)


def test_a_configuration_counts_from_its_entry_on_and_goes_with_it() -> None:
    raft = member()
    bigger = ConfState((ONE, TWO, THREE, FOUR))
    append(raft, TWO, 1, (0, 0), (Entry(1, 1, EntryKind.CONF, bigger.encode()),))
    assert raft.conf == bigger
    append(raft, THREE, 2, (0, 0), (Entry(1, 2, EntryKind.EMPTY),))
    assert raft.conf == TRIO


def test_the_commit_of_a_change_needs_a_majority_of_the_new_configuration() -> None:
    raft = leader(conf=ConfState((ONE, TWO, THREE), (FOUR,)))
    ack(raft, TWO, 1)
    ack(raft, FOUR, 1)
    raft.propose_conf(change(ConfChangeKind.PROMOTE, FOUR))
    do(raft)
    ack(raft, FOUR, 2)
    assert raft.log.commit == 1, "two of four"
    ack(raft, THREE, 2)
    assert raft.log.commit == 2


def test_a_learner_counts_for_nothing() -> None:
    raft = leader(conf=ConfState((ONE, TWO, THREE), (FOUR,)))
    ack(raft, FOUR, 1)
    assert raft.log.commit == 0
    learner = member(me=FOUR, conf=ConfState((ONE, TWO, THREE), (FOUR,)))
    for _ in range(100):
        learner.tick()
    assert learner.role is Role.FOLLOWER
    assert do(learner) == []


def test_a_leader_leads_until_its_own_removal_is_committed() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    ack(raft, THREE, 1)
    raft.propose_conf(change(ConfChangeKind.REMOVE, ONE))
    do(raft)
    ack(raft, TWO, 2)
    assert role(raft) is Role.LEADER, "one of two; its own copy no longer counts"
    ack(raft, THREE, 2)
    assert role(raft) is Role.FOLLOWER
    assert raft.log.commit == 2
    assert not raft.is_electable()


def test_whoever_holds_the_only_copy_of_its_own_removal_may_stand() -> None:
    """Thesis 4.2.2: of two members, one stored the removal of itself and crashed. The other cannot
    win against its log, so it must be able to win.
    """
    pair = ConfState((ONE, TWO))
    raft = member(conf=pair, term=1)
    append(raft, TWO, 1, (0, 0), (Entry(1, 1, EntryKind.CONF, ConfState((TWO,)).encode()),))
    assert raft.conf.voters == (TWO,)
    assert raft.is_electable()


# -- identities -----------------------------------------------------------------------------------


def test_a_message_for_an_earlier_directory_is_not_for_this_one() -> None:
    raft = member(me=WIPED_TWO, conf=NOBODY)
    raft.step(Message(MessageKind.VOTE, ONE, TWO, 5, 0, 0))
    assert raft.term == 0
    assert do(raft) == []


def test_the_vote_of_another_directory_is_not_counted() -> None:
    raft = member(1)
    raft.campaign(is_transfer=True)
    do(raft)
    raft.step(Message(MessageKind.VOTE_REPLY, WIPED_TWO, ONE, 2))
    assert role(raft) is Role.CANDIDATE
    raft.step(Message(MessageKind.VOTE_REPLY, TWO, ONE, 2))
    assert role(raft) is Role.LEADER


def test_the_copy_of_another_directory_is_not_counted() -> None:
    raft = leader()
    ack(raft, WIPED_TWO, 1)
    assert raft.log.commit == 0
    raft.step(Message(MessageKind.HEARTBEAT_REPLY, WIPED_TWO, ONE, raft.term, read_sequence=9))
    assert raft.progress[TWO.node].read_sequence == 0


@pytest.mark.parametrize("kind", [MessageKind.VOTE, MessageKind.PRE_VOTE])
def test_a_wiped_node_is_not_voted_for(kind: MessageKind) -> None:
    raft = member(1, 1)
    assert ask(raft, WIPED_TWO, 9, (0, 0), kind) is None
    assert ask(raft, WIPED_TWO, 9, (2, 1), kind) is None, "as good as ours: then we would know it"
    assert raft.term == 1


def test_a_member_we_do_not_know_yet_is_voted_for_if_its_log_is_ahead() -> None:
    """Our log may end before the change that let it in; a quorum must not wedge on that."""
    answer = ask(member(1, 1), WIPED_TWO, 9, (3, 1))
    assert answer is not None
    assert not answer.reject


def test_a_member_without_a_configuration_never_stands() -> None:
    raft = member(conf=NOBODY, me=FOUR)
    for _ in range(100):
        raft.tick()
    assert raft.term == 0
    assert do(raft) == []
