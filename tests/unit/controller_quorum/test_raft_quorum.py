"""Majorities against a twin that is too dumb to be wrong: it looks at every group of voters."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cluster.controller_quorum.quorum import VoteResult, committed_index, majority, vote_result


def groups(count: int) -> list[tuple[int, ...]]:
    """Every group of voters that any other such group must meet: more than half of them."""
    return [
        g for size in range(count + 1) for g in combinations(range(count), size) if 2 * size > count
    ]


@given(st.integers(1, 9))
def test_majority_is_the_smallest_group_of_which_any_two_meet(voters: int) -> None:
    size = majority(voters)
    assert size == min(len(group) for group in groups(voters))
    assert 2 * size > voters
    assert 2 * (size - 1) <= voters


@given(st.lists(st.integers(0, 20), min_size=1, max_size=7))
def test_committed_index_is_what_some_majority_has_reached(matches: list[int]) -> None:
    twin = max(min(matches[voter] for voter in group) for group in groups(len(matches)))
    assert committed_index(matches) == twin


@given(st.lists(st.sampled_from((True, False, None)), min_size=1, max_size=7))
def test_vote_result_asks_every_majority(answers: list[bool | None]) -> None:
    votes = {voter: answer for voter, answer in enumerate(answers) if answer is not None}
    all_groups = groups(len(answers))
    if any(all(votes.get(voter) is True for voter in group) for group in all_groups):
        twin = VoteResult.WON
    elif all(any(votes.get(voter) is False for voter in group) for group in all_groups):
        twin = VoteResult.LOST
    else:
        twin = VoteResult.PENDING
    assert vote_result(range(len(answers)), votes) is twin


def test_a_stranger_has_no_vote() -> None:
    assert vote_result((1, 2, 3), {1: True, 7: True, 8: True}) is VoteResult.PENDING


def test_nobody_elects_nobody() -> None:
    assert vote_result((), {1: True}) is VoteResult.LOST
    assert committed_index([]) == 0
