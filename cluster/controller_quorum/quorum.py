"""Majorities: the only arithmetic on which agreement rests, so it stands alone and is checked
against a dumb twin.

Every function takes the voters' figures and nothing else; who is a voter is the caller's business.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Voter = TypeVar("Voter")


class VoteResult(Enum):
    """How an election stands."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"


def majority(voters: int) -> int:
    """The smallest number of voters of which any two such groups share one."""
    return voters // 2 + 1


def committed_index(matches: list[int]) -> int:
    """The highest index that a majority has reached; `matches` has one figure per voter."""
    count = len(matches)
    return sorted(matches)[count - majority(count)] if count else 0


def vote_result(voters: Iterable[Voter], votes: Mapping[Voter, bool]) -> VoteResult:
    """Count the votes of the voters; a vote of anyone else does not exist."""
    granted = refused = total = 0
    for voter in voters:
        total += 1
        vote = votes.get(voter)
        if vote is not None:
            granted += vote
            refused += not vote
    needed = majority(total)
    if total and granted >= needed:
        return VoteResult.WON
    return VoteResult.LOST if total - refused < needed else VoteResult.PENDING
