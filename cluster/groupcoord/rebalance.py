"""Compute the targets of a group: when it is due, by which assignor, and what is written down.

However many changes came since the last time, there is one computation (G4). Moves that are under
way count as done, and what was to go to somebody who has left stays where it is: a change that is
taken back moves nothing. A user's own assignor runs on a member: the group remembers whom it asked,
so the next coordinator goes on asking; who does not answer in time, or with nonsense, is passed
over, and after the last of them the default assignor decides.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from suiro.model.errors import UnsupportedAssignor
from suiro.model.limits import GROUP_MOVES_MAX

from cluster.groupcoord.assignor import BUILT_IN, DEFAULT
from cluster.groupcoord.group import target_of
from cluster.groupcoord.reconcile import owners, step_all
from cluster.groupcoord.records import PartitionMove
from cluster.groupcoord.requests import ComputeRequest, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.group import Draft, Group
    from cluster.groupcoord.records import MemberState
    from cluster.groupcoord.requests import Computed
    from cluster.groupcoord.subscriptions import Topics

    Assignment = Mapping[str, tuple[TopicPartition, ...]]


def is_due(group: Group | Draft, topics: Topics) -> bool:
    """Whether the targets are not those of the present members and topics."""
    if not group.members or not topics.are_known:
        return False
    if group.state.epoch != group.state.target_epoch:
        return True
    return _covered(group) != topics.counts(group.members.values())


def _covered(group: Group | Draft) -> dict[str, int]:
    """How many partitions of each topic are somebody's target. The numbers tell everything: targets
    are only ever set for all partitions that a topic has.
    """
    return Counter(p.topic for target in group.targets.values() for p in target.partitions)


def choose_assignor(members: Iterable[MemberState]) -> str:
    """Of the assignors that all know, the one that most prefer to the others."""
    preferences = Counter(member.assignors or (DEFAULT,) for member in members)
    common = set.intersection(*map(set, preferences))
    if not common:
        raise UnsupportedAssignor(f"no assignor is known to all members: {sorted(preferences)}")
    votes: Counter[str] = Counter()
    for names, count in preferences.items():
        votes[next(name for name in names if name in common)] += count
    return min(votes, key=lambda name: (-votes[name], name))


def rebalance(draft: Draft, topics: Topics, wall_ms: int) -> None:
    """Compute new targets and let everyone take a step; or ask a member to compute them."""
    if draft.state.epoch == draft.state.target_epoch:
        draft.change("the subscribed topics have other partitions")
    assignor = choose_assignor(draft.members.values())
    draft.set_state(assignor=assignor)
    if assignor in BUILT_IN:
        _install(draft, _computed(draft, topics, assignor), wall_ms)
    else:
        _ask(draft, topics, wall_ms)


def _computed(draft: Draft, topics: Topics, assignor: str) -> Assignment:
    wanted = topics.wanted(draft.members.values())
    return BUILT_IN[assignor](_views(draft, topics), wanted)


def _views(group: Group | Draft, topics: Topics) -> list[View]:
    """What each member is to have; what nobody is to have counts for the one who owns it."""
    whose = owners(group.members.values())
    for member_id in sorted(group.members.keys() & group.targets.keys()):
        whose.update(dict.fromkeys(group.targets[member_id].partitions, member_id))
    has: dict[str, list[TopicPartition]] = {member_id: [] for member_id in group.members}
    for partition in sorted(whose):
        has[whose[partition]].append(partition)
    return [
        View(member_id, topics.of(m), tuple(has[member_id]), m.instance_id, m.rack)
        for member_id, m in sorted(group.members.items())
    ]


def _install(draft: Draft, assignment: Assignment, wall_ms: int) -> None:
    before = {p: m for m, target in draft.targets.items() for p in target.partitions}
    after = {p: m for m, partitions in assignment.items() for p in partitions}
    moves = [
        PartitionMove(partition, before.get(partition, ""), after[partition])
        for partition in sorted(after)
        if before.get(partition) != after[partition]
    ]
    for member_id in sorted(draft.members):
        draft.put_target(member_id, tuple(sorted(assignment.get(member_id, ()))))
    draft.close_rebalance(wall_ms, moves, GROUP_MOVES_MAX)
    step_all(draft)


# -- a user's own assignor ------------------------------------------------------------------------


def _ask(draft: Draft, topics: Topics, wall_ms: int) -> None:
    """Ask the next member in order; after the last there is nobody left to ask."""
    nobody_yet = draft.state.asked not in draft.members
    later = [m for m in sorted(draft.members) if nobody_yet or m > draft.state.asked]
    if not later:
        draft.change(f"no member computed {draft.state.assignor!r}, so {DEFAULT!r} did")
        _install(draft, _computed(draft, topics, DEFAULT), wall_ms)
        return
    draft.set_state(asked=later[0])
    draft.notify(later[0])


def is_asked(group: Group | Draft, member_id: str) -> bool:
    return group.state.asked == member_id and group.state.epoch != group.state.target_epoch


def compute_request(group: Group | Draft, member_id: str, topics: Topics) -> ComputeRequest | None:
    """What this member has to compute, if it is the one that is asked."""
    if not is_asked(group, member_id) or not topics.are_known:
        return None
    return ComputeRequest(
        group.state.epoch,
        group.state.assignor,
        tuple(_views(group, topics)),
        tuple(topics.wanted(group.members.values())),
    )


def take_computed(
    draft: Draft, member_id: str, computed: Computed, topics: Topics, wall_ms: int
) -> None:
    """Install what a member computed, if it is still asked for and gives everything to someone."""
    if not is_asked(draft, member_id) or computed.group_epoch != draft.state.epoch:
        return
    if not topics.are_known:
        return
    if _is_complete(draft, computed.assignment, topics):
        _install(draft, computed.assignment, wall_ms)
    else:
        _ask(draft, topics, wall_ms)


def _is_complete(draft: Draft, assignment: Assignment, topics: Topics) -> bool:
    if not assignment.keys() <= draft.members.keys():
        return False
    given = sorted(p for partitions in assignment.values() for p in partitions)
    if given != topics.wanted(draft.members.values()):
        return False
    return all(
        {p.topic for p in partitions} <= set(topics.of(draft.members[member_id]))
        for member_id, partitions in assignment.items()
    )


def targets_of(group: Group) -> dict[str, tuple[TopicPartition, ...]]:
    return {member_id: target_of(group.targets, member_id) for member_id in sorted(group.members)}
