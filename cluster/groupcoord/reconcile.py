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
        member = draft.members[member_id]
        target = target_of(draft.targets, member_id)
        if not _can_step(member, target, taken):
            continue
        stepped = step(member, target, taken, draft.next_epoch())
        for owned in stepped.owned:
            taken[owned.partition] = member_id
        draft.put_member(stepped)
        draft.notify(member_id)


def _can_step(
    member: MemberState, target: tuple[TopicPartition, ...], taken: dict[TopicPartition, str]
) -> bool:
    """Whether what the member is told would change."""
    wanted = frozenset(target)
    if any(owned.is_revoked == (owned.partition in wanted) for owned in member.owned):
        return True
    return any(partition not in taken for partition in target)


def step(
    member: MemberState,
    target: tuple[TopicPartition, ...],
    taken: dict[TopicPartition, str],
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
    owned += [Owned(partition, epoch) for partition in target if partition not in taken]
    return replace(member, member_epoch=epoch, owned=tuple(sorted(owned)))
