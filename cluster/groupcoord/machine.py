"""The machine of a group coordinator: one shard's groups, their members and their offsets.

Each `decide_*` reads the groups and returns the records that would change them, the reply, and whom
to tell; it changes nothing. `apply` is the only mutator of what the log holds. Beside it there is
what no log needs to know, told by `on_*`: the topics, and who was heard when. The rules are in
the modules beside this one, by subject; this class is the list of what can be asked.

A shell calls `on_topics` with the metadata and again with every change, `on_heard` with every
message, `on_broken` when a session stream ends; after every decision, and after a load, it asks
`next_deadline_ms` and has `decide_expire` called by then. Times called `now_ms` are monotonic,
`wall_ms` is the time of day and decides nothing but the age of offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from suiro.model.errors import UnknownGroup

from cluster.groupcoord import members, offsets, rebalance
from cluster.groupcoord.group import Draft, Group
from cluster.groupcoord.records import Kind, Removed
from cluster.groupcoord.requests import GroupPhase, GroupView
from cluster.groupcoord.sessions import SWEEP_MS, Due, Sessions
from cluster.groupcoord.subscriptions import Topics
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.records import GroupRecord, MemberState
    from cluster.groupcoord.requests import (
        CommitOutcome,
        CommitRequest,
        FetchedOffset,
        Message,
        Settle,
        Standing,
    )
    from cluster.groupcoord.sessions import Deadline
    from cluster.groupcoord.subscriptions import TopicFact

OFFSETS_RETENTION_MS_DEFAULT: Final = 7 * 24 * 3600 * 1000

_ARMING: Final = {Kind.GROUP, Kind.MEMBER, Kind.TARGET}
"""The records that deadlines depend on; offsets, by far the most, are not among them."""

_SILENT: Final = {
    Due.SESSION: "was not heard within its session timeout",
    Due.GIVE_UP: "did not give up partitions within its rebalance timeout",
}


class GroupMachine:
    """The groups of one shard, at the coordinator that owns it."""

    def __init__(
        self,
        sessions: Sessions | None = None,
        offsets_retention_ms: int = OFFSETS_RETENTION_MS_DEFAULT,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.topics = Topics()
        self.sessions = Sessions() if sessions is None else sessions
        self.sessions.sweep_at(0)
        self.offsets_retention_ms = offsets_retention_ms
        self._touched: dict[str, None] = {}

    def apply(self, record: GroupRecord) -> None:
        key = record.key
        group = self.groups.get(key.group)
        if group is None:
            group = self.groups[key.group] = Group(key.group)
        group.apply(record)
        if isinstance(record, Removed) and group.is_forgotten:
            del self.groups[key.group]
        if key.kind in _ARMING:
            self._touched[key.group] = None

    # -- members ----------------------------------------------------------------------------------

    def decide_message(self, message: Message, wall_ms: int) -> Decision[Standing]:
        """A member joins, comes back, or says how it is doing."""
        draft = self._draft(message.group)
        members.speak(draft, message, self.topics, wall_ms)
        return _decision(draft, members.standing(draft, message.member_id, self.topics))

    def decide_leave(self, group: str, member_id: str, reason: str, wall_ms: int) -> Decision[None]:
        """A member goes by itself, for good, static or not."""
        draft = self._draft(group)
        members.leave(draft, member_id, reason, wall_ms)
        return _decision(draft, None)

    def decide_expire(self, now_ms: float, wall_ms: int) -> Decision[int]:
        """Do all that is due; replies how much that was."""
        due = self.sessions.due(now_ms)
        records: list[GroupRecord] = []
        effects: list[Any] = []
        for name in dict.fromkeys(deadline.group for deadline in due if deadline.group):
            draft = self._draft(name)
            self._expire(draft, [d for d in due if d.group == name], wall_ms)
            records += draft.records
            effects += draft.effects
        if any(deadline.kind is Due.SWEEP for deadline in due):
            records += self._swept(wall_ms, {record.key.group for record in records})
        return Decision(tuple(records), len(due), tuple(effects))

    def _expire(self, draft: Draft, due: list[Deadline], wall_ms: int) -> None:
        gone = [(d.member_id, _SILENT[d.kind]) for d in due if d.kind in _SILENT]
        if gone:
            members.fence(draft, gone, wall_ms)
        targets = any(d.kind in {Due.TARGETS, Due.COMPUTE} for d in due)
        if targets and rebalance.is_due(draft, self.topics):
            rebalance.rebalance(draft, self.topics, wall_ms)

    def _swept(self, wall_ms: int, busy: set[str]) -> Iterable[GroupRecord]:
        """What has outlived its use, in groups that this decision leaves alone."""
        for name in sorted(self.groups.keys() - busy):
            yield from offsets.expire(
                self.groups[name], self.topics, self.offsets_retention_ms, wall_ms
            )

    def standing(self, group: str, member_id: str) -> Standing:
        """How a member stands, to be pushed; raises UnknownMember if it is none."""
        return members.standing(self._group(group), member_id, self.topics)

    # -- offsets ----------------------------------------------------------------------------------

    def decide_commit(
        self, request: CommitRequest, wall_ms: int
    ) -> Decision[tuple[CommitOutcome, ...]]:
        return offsets.commit(self._group(request.group), request, self.topics, wall_ms)

    def decide_settle(self, end: Settle, wall_ms: int) -> Decision[None]:
        """A transaction has ended: its offsets count now, or never."""
        return offsets.settle(self._group(end.group), end, wall_ms)

    def fetch(
        self, group: str, partitions: Sequence[TopicPartition], *, require_stable: bool = False
    ) -> tuple[FetchedOffset, ...]:
        return offsets.fetch(
            self._group(group), partitions, self.topics, require_stable=require_stable
        )

    # -- administration ---------------------------------------------------------------------------

    def decide_delete(
        self, group: str, partitions: Sequence[TopicPartition] = ()
    ) -> Decision[None]:
        """Forget a group without members, or only these offsets of it."""
        return Decision(offsets.forget(self._known(group), partitions), None)

    def list_groups(self) -> list[tuple[str, GroupPhase, int]]:
        """Name, phase and number of members of every group that there is."""
        return [
            (name, group.phase, len(group.members))
            for name, group in sorted(self.groups.items())
            if not group.is_dead
        ]

    def describe(self, group: str) -> GroupView:
        found = self._known(group)
        return GroupView(
            group,
            found.phase,
            found.state.assignor,
            found.state.epoch,
            tuple(found.members[member_id] for member_id in sorted(found.members)),
            rebalance.targets_of(found),
            tuple(sorted(found.history.values(), key=lambda done: done.epoch)),
        )

    # -- facts ------------------------------------------------------------------------------------

    def on_topics(self, topics: Mapping[str, TopicFact]) -> None:
        """All topics that there are now."""
        self.topics.learn(topics)
        self._touched.update(dict.fromkeys(self.groups))

    def on_heard(self, group: str, member_id: str, stream: int, now_ms: float) -> None:
        """A member spoke on a session stream; streams are numbered as they were opened."""
        member = self._member(group, member_id)
        if member is not None:
            self.sessions.on_heard(member, stream, now_ms)

    def on_broken(self, group: str, member_id: str, stream: int, now_ms: float) -> None:
        member = self._member(group, member_id)
        if member is not None:
            self.sessions.on_broken(member, stream, now_ms)

    def on_stood_still(self, now_ms: float) -> None:
        """This process did not run for a while: nobody's silence counts until now."""
        everyone = [m for group in self.groups.values() for m in group.members.values()]
        self.sessions.excuse(everyone, now_ms)

    def on_swept(self, now_ms: float) -> None:
        """`decide_expire` was carried out."""
        if any(deadline.kind is Due.SWEEP for deadline in self.sessions.due(now_ms)):
            self.sessions.sweep_at(now_ms + SWEEP_MS)

    def next_deadline_ms(self, now_ms: float) -> float | None:
        """When `decide_expire` is wanted next, by the state as it is now."""
        for name in self._touched:
            self.sessions.arm(self._group(name), self.topics, now_ms)
        self._touched.clear()
        return self.sessions.next_deadline_ms()

    # -- groups -----------------------------------------------------------------------------------

    def _group(self, name: str) -> Group:
        """The group, or an empty one that is not there yet."""
        found = self.groups.get(name)
        return Group(name) if found is None else found

    def _known(self, name: str) -> Group:
        group = self._group(name)
        if group.is_dead:
            raise UnknownGroup(f"there is no group {name!r}")
        return group

    def _draft(self, name: str) -> Draft:
        return Draft(self._group(name))

    def _member(self, group: str, member_id: str) -> MemberState | None:
        return self._group(group).members.get(member_id)


def _decision(draft: Draft, reply: Any) -> Decision[Any]:
    return Decision(draft.records, reply, draft.effects)
