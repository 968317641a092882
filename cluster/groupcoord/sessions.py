"""The soft half of groups: who was heard when, and what is due when. None of it is in the log.

A member that is silent for its session timeout is out; one whose stream broke has a short grace to
open another, unless it is static: then its process may be restarting. Who does not give partitions
up within its rebalance timeout is out as well. A new coordinator has heard nobody yet and gives
everyone a fresh session, so taking over moves nothing.

`arm` compares the deadlines of a group with its state; asking what is due changes nothing, a
deadline goes when the state says that it is no longer needed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from cluster.groupcoord.rebalance import is_due
from cluster.host.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Hashable

    from cluster.groupcoord.group import Group
    from cluster.groupcoord.records import MemberState
    from cluster.groupcoord.subscriptions import Topics

GRACE_MS: Final = 500
"""For a member whose stream broke: enough to open another, little enough to notice a dead process
within a second.
"""

GATHER_MS: Final = 50
"""From the first change of a group to its new targets: what arrives together moves together."""

COMPUTE_MS: Final = 5_000
"""How long a member may take to run a user's own assignor."""

SWEEP_MS: Final = 60_000
"""How often expired offsets are looked for."""

_NO_STREAM: Final = -1


class Due(IntEnum):
    """What a deadline is about."""

    SESSION = 0
    GIVE_UP = 1
    COMPUTE = 2
    TARGETS = 3
    SWEEP = 4


class Deadline(NamedTuple):
    kind: Due
    group: str = ""
    member_id: str = ""


class _Heard:
    """One member's session."""

    __slots__ = ("at_ms", "broken_ms", "stream")

    def __init__(self, at_ms: float) -> None:
        self.at_ms = at_ms
        self.stream = _NO_STREAM
        self.broken_ms: float | None = None


class Sessions:
    """All sessions and deadlines of a shard; times are monotonic."""

    def __init__(self, grace_ms: float = GRACE_MS, gather_ms: float = GATHER_MS) -> None:
        self._grace_ms = grace_ms
        self._gather_ms = gather_ms
        self._heard: dict[str, dict[str, _Heard]] = {}
        self._timers: Timers[Deadline] = Timers()
        self._at: dict[Deadline, float] = {}
        self._marks: dict[Deadline, Hashable] = {}
        """What exactly a deadline is about: it is not moved before that changes."""

    # -- facts ------------------------------------------------------------------------------------

    def on_heard(self, member: MemberState, stream: int, now_ms: float) -> None:
        """It said something on that stream, which takes the place of an earlier one."""
        heard = self._session(member, now_ms)
        heard.at_ms = max(heard.at_ms, now_ms)
        if stream >= heard.stream:
            heard.stream = stream
            heard.broken_ms = None
        self._set_session(member, heard)

    def on_broken(self, member: MemberState, stream: int, now_ms: float) -> None:
        """The stream broke; nothing follows from it if a newer one is open."""
        heard = self._session(member, now_ms)
        if heard.stream == stream and heard.broken_ms is None:
            heard.broken_ms = now_ms
            self._set_session(member, heard)

    def excuse(self, members: list[MemberState], now_ms: float) -> None:
        """This process stood still: the silence of others during that time proves nothing."""
        for member in members:
            heard = self._session(member, now_ms)
            heard.at_ms, heard.broken_ms = now_ms, None
            self._set_session(member, heard)

    def heard_ms(self, member: MemberState) -> float | None:
        heard = self._heard.get(member.group, {}).get(member.member_id)
        return None if heard is None else heard.at_ms

    def _session(self, member: MemberState, now_ms: float) -> _Heard:
        group = self._heard.setdefault(member.group, {})
        return group.setdefault(member.member_id, _Heard(now_ms))

    def _set_session(self, member: MemberState, heard: _Heard) -> None:
        ends_ms = heard.at_ms + member.session_timeout_ms
        if heard.broken_ms is not None and not member.instance_id:
            ends_ms = min(ends_ms, heard.broken_ms + self._grace_ms)
        self._set(Deadline(Due.SESSION, member.group, member.member_id), ends_ms)

    # -- deadlines --------------------------------------------------------------------------------

    def arm(self, group: Group, topics: Topics, now_ms: float) -> None:
        """Give the group the deadlines that its state asks for, and no others."""
        heard = self._heard.setdefault(group.name, {})
        for member_id in sorted(heard.keys() - group.members.keys()):
            del heard[member_id]
            self._cancel(Deadline(Due.SESSION, group.name, member_id))
            self._cancel(Deadline(Due.GIVE_UP, group.name, member_id))
        for member_id, member in group.members.items():
            if member_id not in heard:
                self._set_session(member, self._session(member, now_ms))
            self._arm_giving_up(member, now_ms)
        if not heard:
            del self._heard[group.name]
        is_wanted = is_due(group, topics)
        asked = group.state.asked
        self._want(
            Deadline(Due.TARGETS, group.name),
            mark="targets" if is_wanted and not asked else None,
            at_ms=now_ms + self._gather_ms,
        )
        self._want(
            Deadline(Due.COMPUTE, group.name),
            mark=(group.state.epoch, asked) if is_wanted and asked else None,
            at_ms=now_ms + COMPUTE_MS,
        )

    def _arm_giving_up(self, member: MemberState, now_ms: float) -> None:
        """The time runs from the oldest revocation: later ones do not extend it."""
        self._want(
            Deadline(Due.GIVE_UP, member.group, member.member_id),
            mark=min((o.revoked_epoch for o in member.owned if o.is_revoked), default=None),
            at_ms=now_ms + member.rebalance_timeout_ms,
        )

    def _want(self, deadline: Deadline, *, mark: Hashable | None, at_ms: float) -> None:
        """Set a deadline once for what it is about; without a mark there is nothing to wait for."""
        if mark is None:
            self._cancel(deadline)
        elif self._marks.get(deadline) != mark:
            self._set(deadline, at_ms)
            self._marks[deadline] = mark

    def sweep_at(self, at_ms: float) -> None:
        self._set(Deadline(Due.SWEEP), at_ms)

    def next_deadline_ms(self) -> float | None:
        return self._timers.next_deadline()

    def due(self, now_ms: float) -> list[Deadline]:
        """What is due, in order; it stays due until the state has changed."""
        found = sorted(self._timers.expired(now_ms))
        for deadline in found:
            self._timers.set(deadline, self._at[deadline])
        return found

    def _set(self, deadline: Deadline, at_ms: float) -> None:
        self._at[deadline] = at_ms
        self._timers.set(deadline, at_ms)

    def _cancel(self, deadline: Deadline) -> None:
        self._marks.pop(deadline, None)
        if self._at.pop(deadline, None) is not None:
            self._timers.cancel(deadline)
