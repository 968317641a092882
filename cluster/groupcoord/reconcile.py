"""Move members a step from what they hold towards their targets.

What always holds (G1): a partition is granted only when nobody owns it. A member owns a partition
from its grant until it says, at the epoch that took it away or later, that it gave it up; or until
it is fenced. A partition that stays is never touched, so its consumer does not notice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cluster.groupcoord.group import target_of
from cluster.groupcoord.records import NOT_REVOKED, Owned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.group import Draft
    from cluster.groupcoord.records import MemberState


def owners(members: Iterable[MemberState]) -> dict[TopicPartition, str]:
    """Who owns what, whatever it was told since; nothing has two owners."""
    found: dict[TopicPartition, str] = {}
    for member in members:
        for owned in member.owned:
            assert owned.partition not in found, f"{owned.partition} has two owners"
            found[owned.partition] = member.member_id
    return found


def without_given_up(
    member: MemberState, carried_out: int, held: frozenset[TopicPartition]
) -> MemberState:
    """The member once it has said that it carried out the assignment of that epoch."""
    kept = tuple(owned for owned in member.owned if not _is_given_up(owned, carried_out, held))
    return member if len(kept) == len(member.owned) else replace(member, owned=kept)


def _is_given_up(owned: Owned, carried_out: int, held: frozenset[TopicPartition]) -> bool:
    return owned.is_revoked and carried_out >= owned.revoked_epoch and owned.partition not in held


def step_all(draft: Draft) -> None:
    """Let every member take the step that it can take now."""
    taken = owners(draft.members.values())
    for member_id in sorted(draft.members):
        target = target_of(draft.targets, member_id)
        free = [partition for partition in target if partition not in taken]
        if free or _is_told_otherwise(draft.members[member_id], target):
            _step(draft, member_id, target, free)
            taken.update(dict.fromkeys(free, member_id))


def grant_freed(draft: Draft, freed: frozenset[TopicPartition]) -> None:
    """These have just been given up: whoever is to have them gets them. As everybody else has
    taken every step that it could before, this is all that can move.
    """
    for member_id in sorted(draft.targets.keys() & draft.members.keys()):
        target = draft.targets[member_id].partitions
        if not freed.isdisjoint(target):
            _step(draft, member_id, target, [p for p in target if p in freed])


def _is_told_otherwise(member: MemberState, target: tuple[TopicPartition, ...]) -> bool:
    """Whether it has to give up something, or to keep what it was told to give up."""
    wanted = frozenset(target)
    return any(owned.is_revoked == (owned.partition in wanted) for owned in member.owned)


def _step(
    draft: Draft,
    member_id: str,
    target: tuple[TopicPartition, ...],
    free: list[TopicPartition],
) -> None:
    draft.put_member(step(draft.members[member_id], target, free, draft.next_epoch()))
    draft.notify(member_id)


def step(
    member: MemberState,
    target: tuple[TopicPartition, ...],
    free: list[TopicPartition],
    epoch: int,
) -> MemberState:
    """The member at its next epoch: told to give up what it shall not have, granted what is free.

    What it was told to give up and shall have again stays its own: nobody had it meanwhile.
    """
    wanted = frozenset(target)
    owned = [
        replace(
            held,
            revoked_epoch=(
                NOT_REVOKED if held.partition in wanted else held.revoked_epoch or epoch
            ),
        )
        for held in member.owned
    ]
    owned += [Owned(partition, epoch) for partition in free]
    return replace(member, member_epoch=epoch, owned=tuple(sorted(owned)))
