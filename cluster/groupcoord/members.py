"""How members come, speak and go.

A member chooses its id, new with every join, so a join that is repeated because its answer got lost
joins once. A static member is known by its instance id: a new process with that id takes over what
the old one had, nothing moves, and the old process is fenced. A member that is removed owns nothing
from that moment; whatever it still says is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from suiro.model.errors import FencedInstance, InvalidRequest, Overloaded, UnknownMember
from suiro.model.limits import GROUP_MEMBERS_MAX, GROUP_NAME_LENGTH_MAX, GROUP_TOPICS_MAX

from cluster.groupcoord.group import Draft, target_of
from cluster.groupcoord.rebalance import choose_assignor, compute_request, take_computed
from cluster.groupcoord.reconcile import grant_freed, step_all, without_given_up
from cluster.groupcoord.records import NOT_EMPTY, MemberState
from cluster.groupcoord.requests import JOINING, Standing
from cluster.groupcoord.subscriptions import check_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cluster.groupcoord.group import Group
    from cluster.groupcoord.requests import Message
    from cluster.groupcoord.subscriptions import Topics

TIMEOUT_MS_MIN: Final = 100
TIMEOUT_MS_MAX: Final = 3_600_000


def speak(draft: Draft, message: Message, topics: Topics, wall_ms: int) -> None:
    """A member says how it is doing; one that is not known yet joins."""
    member = draft.members.get(message.member_id)
    if member is None:
        _check_may_join(draft, message)
        _join(draft, message)
        return
    if message.member_epoch > member.member_epoch:
        raise UnknownMember(f"{message.member_id} has an epoch that nobody gave out")
    _resubscribe(draft, member, message)
    _give_up(draft, message)
    if message.computed is not None:
        take_computed(draft, message.member_id, message.computed, topics, wall_ms)


def standing(group: Group | Draft, member_id: str, topics: Topics) -> Standing:
    """How a member stands now; raises UnknownMember if it is none."""
    member = group.members.get(member_id)
    if member is None:
        raise UnknownMember(f"{member_id} is no member of {group.name}")
    last = max(group.history.values(), key=lambda done: done.epoch, default=None)
    return Standing(
        member_id,
        member.member_epoch,
        member.joined_epoch,
        member.assigned,
        "" if last is None else last.reason,
        compute_request(group, member_id, topics),
    )


# -- coming ---------------------------------------------------------------------------------------


def _check_may_join(draft: Draft, message: Message) -> None:
    if message.member_epoch != JOINING:
        if draft.group.member_of(message.instance_id) is not None:
            raise FencedInstance(f"another process is {message.instance_id!r} now")
        raise UnknownMember(f"{message.member_id} is no member of {message.group}: join again")
    if not message.member_id or not message.group:
        raise InvalidRequest("a member needs an id, and a group a name")
    if max(len(message.group), len(message.member_id)) > GROUP_NAME_LENGTH_MAX:
        raise InvalidRequest(f"a name has at most {GROUP_NAME_LENGTH_MAX} characters")
    if len(draft.members) >= GROUP_MEMBERS_MAX:
        raise Overloaded(f"a group has at most {GROUP_MEMBERS_MAX} members")
    for timeout_ms in (message.session_timeout_ms, message.rebalance_timeout_ms):
        if not TIMEOUT_MS_MIN <= timeout_ms <= TIMEOUT_MS_MAX:
            raise InvalidRequest(f"a timeout is {TIMEOUT_MS_MIN} to {TIMEOUT_MS_MAX} ms")
    _check_subscription(message)


def _check_subscription(message: Message) -> None:
    if len(message.topics) > GROUP_TOPICS_MAX:
        raise InvalidRequest(f"a member names at most {GROUP_TOPICS_MAX} topics")
    if message.pattern:
        check_pattern(message.pattern)


def _join(draft: Draft, message: Message) -> None:
    former = draft.group.member_of(message.instance_id)
    joined_epoch = draft.next_epoch()
    member = MemberState(
        group=message.group,
        member_id=message.member_id,
        member_epoch=joined_epoch,
        joined_epoch=joined_epoch,
        instance_id=message.instance_id,
        client_id=message.client_id,
        host=message.host,
        rack=message.rack,
        topics=tuple(sorted(set(message.topics))),
        pattern=message.pattern,
        assignors=message.assignors,
        session_timeout_ms=message.session_timeout_ms,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        subscription_version=message.subscription_version,
    )
    others = [m for m in draft.members.values() if m is not former]
    choose_assignor([*others, member])  # it may not join if they share none
    draft.set_state(empty_since_ms=NOT_EMPTY)
    if former is None:
        draft.put_member(member)
        draft.change(f"{_name(member)} joined")
    else:
        _take_over(draft, former, member)


def _take_over(draft: Draft, former: MemberState, member: MemberState) -> None:
    """The same instance in a new process: its place, its target and what it holds stay."""
    target = target_of(draft.targets, former.member_id)
    error = FencedInstance(f"another process has joined as {former.instance_id!r}")
    draft.remove_member(former.member_id, error)
    kept = tuple(
        replace(owned, granted_epoch=member.member_epoch)
        for owned in former.owned
        if not owned.is_revoked
    )
    draft.put_member(replace(member, owned=kept))
    draft.put_target(member.member_id, target)
    if _wants(former) != _wants(member):
        draft.change(f"{_name(member)} came back and wants something else")
    step_all(draft)  # what the old process was giving up is free now


def _wants(member: MemberState) -> tuple[object, ...]:
    return member.topics, member.pattern, member.assignors


def _name(member: MemberState) -> str:
    return f"{member.instance_id or member.client_id or 'member'} ({member.member_id})"


# -- speaking -------------------------------------------------------------------------------------


def _resubscribe(draft: Draft, member: MemberState, message: Message) -> None:
    if message.subscription_version <= member.subscription_version:
        return
    _check_subscription(message)
    changed = replace(
        member,
        topics=tuple(sorted(set(message.topics))),
        pattern=message.pattern,
        subscription_version=message.subscription_version,
    )
    draft.put_member(changed)
    if _wants(changed) != _wants(member):
        draft.change(f"{_name(member)} subscribed to something else")


def _give_up(draft: Draft, message: Message) -> None:
    member = draft.members[message.member_id]
    left = without_given_up(member, message.member_epoch, message.owned)
    if left is not member:
        draft.put_member(left)
        kept = {owned.partition for owned in left.owned}
        grant_freed(draft, frozenset(p for p in member.revoking if p not in kept))


# -- going ----------------------------------------------------------------------------------------


def leave(draft: Draft, member_id: str, reason: str, wall_ms: int) -> None:
    """It goes by itself, and has given everything up; fine if it is gone already."""
    member = draft.members.get(member_id)
    if member is None:
        return
    draft.remove_member(member_id)
    draft.change(f"{_name(member)} left" + (f": {reason}" if reason else ""))
    _after_removal(draft, wall_ms)


def fence(draft: Draft, gone: Iterable[tuple[str, str]], wall_ms: int) -> None:
    """These are out, each for its reason, whether they know it or not."""
    for member_id, reason in gone:
        member = draft.members.get(member_id)
        if member is not None:
            draft.remove_member(member_id, UnknownMember(f"{member_id} {reason}"))
            draft.change(f"{_name(member)} {reason}")
    _after_removal(draft, wall_ms)


def _after_removal(draft: Draft, wall_ms: int) -> None:
    """What is free now may be granted at once, where it is somebody's target already."""
    draft.close_if_empty(wall_ms)
    step_all(draft)
