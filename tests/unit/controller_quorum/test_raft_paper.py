"""The core against the sentences of the Raft paper (extended version) and of Ongaro's thesis.

Each test quotes the rule by its place: figure 2, section 5.2 and so on.
"""

from __future__ import annotations

import pytest
from suiro.model.errors import NotController

from cluster.controller_quorum.conf import ConfState
from cluster.controller_quorum.messages import EntryKind, HardState, Message, MessageKind
from cluster.controller_quorum.raft_state import Role
from tests.unit.controller_quorum.raft_builders import (
    FIVE,
    FOUR,
    ONE,
    QUINTET,
    THREE,
    TWO,
    ack,
    append,
    ask,
    do,
    elect,
    entries,
    leader,
    member,
    one_ready,
    role,
    terms_of,
)

# -- figure 2, all servers ------------------------------------------------------------------------


def test_a_higher_term_makes_a_follower() -> None:
    for raft in (member(1, 1), leader(1, 1)):
        term = raft.term + 3
        append(raft, TWO, term, (2, 1))
        assert (raft.role, raft.term, raft.leader) == (Role.FOLLOWER, term, TWO)


def test_committed_entries_are_applied_in_order_and_once() -> None:
    raft = member(1, 1, 1)
    raft.step(Message(MessageKind.HEARTBEAT, TWO, ONE, 1, commit=2))
    assert [entry.index for entry in one_ready(raft).committed] == [1, 2]
    raft.step(Message(MessageKind.HEARTBEAT, TWO, ONE, 1, commit=2))
    raft.step(Message(MessageKind.HEARTBEAT, TWO, ONE, 1, commit=3))
    assert [entry.index for entry in one_ready(raft).committed] == [3]


# -- figure 2, AppendEntries ----------------------------------------------------------------------


def test_an_append_of_an_older_term_is_refused() -> None:
    raft = member(1, term=3)
    (answer,) = append(raft, TWO, 2, (1, 1), entries(2, first=2))
    assert answer.reject
    assert answer.term == 3
    assert terms_of(raft) == [1]


def test_an_append_is_refused_where_the_entry_before_it_does_not_match() -> None:
    raft = member(1, 1, 2)
    (answer,) = append(raft, TWO, 3, (3, 3), entries(3, first=4))
    assert answer.reject
    assert (answer.index, answer.hint, answer.log_term) == (3, 3, 2)
    assert terms_of(raft) == [1, 1, 2]


def test_a_conflicting_entry_and_all_after_it_are_deleted() -> None:
    raft = member(1, 1, 2, 2)
    (answer,) = append(raft, TWO, 3, (2, 1), entries(3, first=3))
    assert not answer.reject
    assert answer.index == 3
    assert terms_of(raft) == [1, 1, 3]


def test_entries_that_match_are_kept_with_what_follows_them() -> None:
    """An append that was overtaken by a later one must not shorten the log."""
    raft = member(1, 1, 1, 1)
    (answer,) = append(raft, TWO, 1, (1, 1), entries(1, first=2))
    assert answer.index == 2
    assert terms_of(raft) == [1, 1, 1, 1]


def test_commit_is_the_lesser_of_the_leaders_and_the_last_new_entry() -> None:
    """What follows the last new entry may be another leader's: it is not known to match."""
    raft = member(1, 1, 1)
    append(raft, TWO, 2, (1, 1), entries(1, first=2), commit=3)
    assert raft.log.commit == 2
    append(raft, TWO, 2, (2, 1), commit=3)
    assert raft.log.commit == 2


# -- figure 2 and section 5.4.1, RequestVote ------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "is_granted"),
    [((3, 2), True), ((9, 2), True), ((1, 3), True), ((2, 2), False), ((9, 1), False)],
)
def test_a_vote_goes_to_a_log_at_least_as_good(last: tuple[int, int], is_granted: bool) -> None:
    raft = member(1, 1, 2)
    answer = ask(raft, TWO, 4, last)
    assert answer is not None
    assert answer.reject is not is_granted
    pre = ask(member(1, 1, 2), TWO, 4, last, MessageKind.PRE_VOTE)
    assert pre is not None
    assert pre.reject is not is_granted


def test_a_vote_of_an_older_term_is_refused() -> None:
    answer = ask(member(1, term=5), TWO, 4, (9, 4))
    assert answer is not None
    assert answer.reject
    assert answer.term == 5


# -- section 5.2, elections -----------------------------------------------------------------------


def test_one_vote_per_term_first_come_first_served() -> None:
    raft = member(1)
    first, second, again = (ask(raft, who, 2, (1, 1)) for who in (TWO, THREE, TWO))
    assert [a is not None and not a.reject for a in (first, second, again)] == [True, False, True]


def test_the_vote_survives_a_restart() -> None:
    raft = member(1)
    ask(raft, TWO, 2, (1, 1))
    stored = raft.saved
    assert stored == HardState(2, TWO, 0)
    again = member(1, term=stored.term, vote=stored.vote)
    answer = ask(again, THREE, 2, (1, 1))
    assert answer is not None
    assert answer.reject


def test_the_vote_stays_given_when_a_leader_of_the_same_term_shows_up_or_steps_back() -> None:
    """A member becomes a follower of its own term in several ways; none of them frees the vote."""
    raft = member(1)
    ask(raft, TWO, 2, (1, 1))
    append(raft, TWO, 2, (1, 1))
    assert raft.vote == TWO
    candidate = member(1)
    candidate.campaign(is_transfer=True)
    do(candidate)
    for voter in (TWO, THREE):
        candidate.step(Message(MessageKind.VOTE_REPLY, voter, ONE, 2, reject=True))
    assert candidate.role is Role.FOLLOWER
    assert candidate.vote == ONE


def test_the_vote_is_stored_before_it_is_told() -> None:
    raft = member(1)
    raft.step(Message(MessageKind.VOTE, TWO, ONE, 2, 1, 1))
    ready = raft.take_ready()
    assert ready.must_sync
    assert ready.hard_state == HardState(2, TWO, 0)
    assert not ready.messages_early
    assert [message.kind for message in ready.messages_late] == [MessageKind.VOTE_REPLY]


def test_a_candidate_wins_by_a_majority_and_opens_its_term_with_an_empty_entry() -> None:
    raft = member(1, conf=QUINTET)
    raft.campaign(is_transfer=True)
    do(raft)
    raft.step(Message(MessageKind.VOTE_REPLY, TWO, ONE, 2))
    assert role(raft) is Role.CANDIDATE
    raft.step(Message(MessageKind.VOTE_REPLY, TWO, ONE, 2))
    assert role(raft) is Role.CANDIDATE, "the same voter counts once"
    raft.step(Message(MessageKind.VOTE_REPLY, THREE, ONE, 2))
    assert role(raft) is Role.LEADER
    assert raft.log.slice(2, 100)[0].kind is EntryKind.EMPTY


def test_a_candidate_yields_to_a_leader_of_its_term() -> None:
    raft = member(1)
    raft.campaign(is_transfer=True)
    do(raft)
    append(raft, THREE, 2, (1, 1))
    assert (raft.role, raft.leader) == (Role.FOLLOWER, THREE)


def test_timeouts_are_random_between_one_and_two_election_timeouts() -> None:
    raft = member(1)
    seen = set()
    for _ in range(500):
        raft.restart_timer()
        seen.add(raft.election_timeout)
    assert seen == set(range(10, 20))


# -- section 5.3, replication ---------------------------------------------------------------------


def test_an_entry_is_committed_once_a_majority_has_stored_it() -> None:
    raft = leader(conf=QUINTET)
    for follower in (TWO, THREE, FOUR, FIVE):
        ack(raft, follower, 1)
    raft.propose([b"x"])
    do(raft)
    ack(raft, TWO, 2)
    assert raft.log.commit == 1
    ack(raft, FOUR, 2)
    assert raft.log.commit == 2


def test_the_leaders_own_copy_counts_only_when_stored() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.propose([b"x"])
    ready = raft.take_ready()
    raft.step(Message(MessageKind.APPEND_REPLY, TWO, ONE, raft.term, 2))
    assert raft.log.commit == 1, "one copy of three is durable so far"
    raft.advance(ready)
    assert raft.log.commit == 2


def test_proposals_between_two_readys_share_one_append() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    ack(raft, THREE, 1)
    for data in (b"a", b"b", b"c"):
        raft.propose([data])
    appends = [message for message in do(raft) if message.kind is MessageKind.APPEND]
    assert [(m.target, len(m.entries)) for m in appends] == [(TWO, 3), (THREE, 3)]


def test_a_follower_far_astray_is_found_in_a_round_per_term() -> None:
    """The hint skips a whole term of conflicting entries at once."""
    raft = member(1, 1, 4, 4, 5, 5, 6, 6, 6)
    astray = member(1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, me=TWO, term=6)
    probes = [message for message in elect(raft) if message.target == TWO]
    rounds = 0
    while terms_of(astray) != terms_of(raft):
        rounds += 1
        astray.step(probes[-1])
        (answer,) = do(astray)
        raft.step(answer)
        probes = [message for message in do(raft) if message.target == TWO]
    assert rounds <= 3


# -- section 5.4.2 and figure 8 -------------------------------------------------------------------


def test_an_entry_of_an_older_term_is_never_committed_by_counting() -> None:
    """Figure 8 (c): the entry of term 2 is on a majority, and may still be overwritten."""
    raft = leader(1, 2)
    assert raft.term == 3
    ack(raft, TWO, 2)
    assert raft.log.commit == 0
    ack(raft, TWO, 3)
    assert raft.log.commit == 3, "the leader's own entry takes the older ones along"


# -- section 6.4 of the thesis, reads -------------------------------------------------------------


def test_a_read_waits_for_an_entry_of_the_leaders_own_term() -> None:
    raft = leader(1)
    raft.read_index(b"r")
    assert not any(message.read_sequence for message in do(raft))
    raft.step(Message(MessageKind.APPEND_REPLY, TWO, ONE, raft.term, 2))
    ready = one_ready(raft)
    assert {m.read_sequence for m in ready.messages_early if m.kind is MessageKind.HEARTBEAT} == {1}
    raft.step(Message(MessageKind.HEARTBEAT_REPLY, TWO, ONE, raft.term, read_sequence=1))
    assert [(read.context, read.index) for read in one_ready(raft).reads] == [(b"r", 2)]


def test_a_read_is_not_confirmed_by_a_heartbeat_sent_before_it() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.read_index(b"first")
    do(raft)
    raft.step(Message(MessageKind.HEARTBEAT_REPLY, TWO, ONE, raft.term, read_sequence=1))
    assert len(one_ready(raft).reads) == 1
    raft.read_index(b"second")
    raft.step(Message(MessageKind.HEARTBEAT_REPLY, THREE, ONE, raft.term, read_sequence=1))
    assert one_ready(raft).reads == ()


def test_a_deposed_leader_answers_no_read() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.read_index(b"r")
    do(raft)
    append(raft, THREE, raft.term + 1, (1, 1))
    raft.step(Message(MessageKind.HEARTBEAT_REPLY, TWO, ONE, raft.term, read_sequence=1))
    assert raft.reads_ready == []
    assert len(raft.reads) == 0


# -- thesis 3.10 transfer, 9.6 pre-vote, check-quorum ---------------------------------------------


def test_a_transfer_waits_until_the_target_holds_everything() -> None:
    raft = leader()
    ack(raft, TWO, 1)
    raft.propose([b"x"])
    do(raft)
    raft.transfer(TWO)
    assert all(message.kind is not MessageKind.TIMEOUT_NOW for message in do(raft))
    with pytest.raises(NotController):
        raft.propose([b"y"])
    sent = ack(raft, TWO, 2)
    assert [m.target for m in sent if m.kind is MessageKind.TIMEOUT_NOW] == [TWO]


def test_the_target_of_a_transfer_stands_at_once_and_breaks_the_lease() -> None:
    raft = member(1)
    append(raft, TWO, 1, (1, 1))
    raft.step(Message(MessageKind.TIMEOUT_NOW, TWO, ONE, 1))
    votes = [message for message in do(raft) if message.kind is MessageKind.VOTE]
    assert [message.target for message in votes] == [TWO, THREE]
    voter = member(1, me=THREE)
    append(voter, TWO, 1, (1, 1))
    voter.step(votes[1])
    assert [message.reject for message in do(voter)] == [False]


def test_a_pre_vote_changes_neither_term_nor_vote_nor_timer() -> None:
    raft = member(1)
    raft.tick()
    before = (raft.term, raft.vote, raft.election_elapsed)
    answer = ask(raft, TWO, 9, (1, 1), MessageKind.PRE_VOTE)
    assert answer is not None
    assert not answer.reject
    assert (raft.term, raft.vote, raft.election_elapsed) == before
    refused = ask(member(1, 1), TWO, 9, (1, 1), MessageKind.PRE_VOTE)
    assert refused is not None
    assert refused.reject
    assert refused.term == 1


@pytest.mark.parametrize("kind", [MessageKind.VOTE, MessageKind.PRE_VOTE])
def test_whoever_hears_a_leader_ignores_candidates(kind: MessageKind) -> None:
    raft = member(1)
    append(raft, TWO, 1, (1, 1))
    assert ask(raft, THREE, 2, (1, 1), kind) is None
    assert raft.term == 1
    raft.election_elapsed = raft.config.election_ticks
    answer = ask(raft, THREE, 2, (1, 1), kind)
    assert answer is not None
    assert not answer.reject


def test_a_leader_without_a_quorum_steps_down_within_an_election_timeout() -> None:
    raft = leader(conf=QUINTET)
    ack(raft, TWO, 1)
    for _ in range(2 * raft.config.election_ticks):
        raft.tick()
        raft.step(Message(MessageKind.HEARTBEAT_REPLY, TWO, ONE, raft.term))
    assert raft.role is Role.FOLLOWER


def test_a_leader_with_a_quorum_stays() -> None:
    raft = leader()
    for _ in range(50):
        raft.tick()
        raft.step(Message(MessageKind.HEARTBEAT_REPLY, TWO, ONE, raft.term))
        do(raft)
    assert raft.role is Role.LEADER


def test_an_old_leader_is_told_the_new_term_even_by_a_member_it_cannot_lead() -> None:
    """Without the answer a member of a higher term could stay outside for ever."""
    raft = member(1, term=5)
    (answer,) = append(raft, TWO, 4, (1, 1))
    old = leader(1)
    old.step(Message(answer.kind, TWO, ONE, answer.term, reject=True))
    assert (old.role, old.term) == (Role.FOLLOWER, 5)


def test_a_single_member_elects_itself_and_commits_at_once() -> None:
    raft = member(conf=ConfState((ONE,)))
    elect(raft)
    assert raft.role is Role.LEADER
    raft.propose([b"x"])
    do(raft)
    assert raft.log.applied == 2
