"""A group as its records say it is, and the draft of what a decision would make of it.

`Group` changes only by `apply`. A `Draft` is a copy that a decision writes on; its records are what
differs, so a decision reads its own writes and still changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from suiro.model.limits import GROUP_HISTORY_MAX, GROUP_REASONS_MAX

from cluster.groupcoord.records import (
    NOT_EMPTY,
    GroupState,
    Key,
    Kind,
    MemberState,
    OffsetState,
    Outcome,
    ProducerState,
    Rebalance,
    Removed,
    TargetState,
)
from cluster.groupcoord.requests import Fenced, GroupPhase, Notify

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError
    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.records import GroupRecord, PartitionMove


class Group:
    """One group's hard state. While a log is replayed it may be torn; at its end it is not."""

    __slots__ = ("history", "members", "offsets", "producers", "state", "targets")

    def __init__(self, name: str) -> None:
        self.state = GroupState(name)
        self.members: dict[str, MemberState] = {}
        self.targets: dict[str, TargetState] = {}
        self.offsets: dict[TopicPartition, OffsetState] = {}
        self.producers: dict[int, ProducerState] = {}
        self.history: dict[int, Rebalance] = {}

    @property
    def name(self) -> str:
        return self.state.group

    def apply(self, record: GroupRecord) -> None:
        match record:
            case GroupState():
                self.state = record
            case MemberState():
                self.members[record.member_id] = record
            case TargetState():
                self.targets[record.member_id] = record
            case OffsetState():
                self.offsets[record.partition] = record
            case ProducerState():
                self.producers[record.producer_id] = record
            case Rebalance():
                self.history[record.slot] = record
            case Removed(key):
                self._remove(key)
            case _:
                assert_never(record)

    def _remove(self, key: Key) -> None:
        if key.kind is Kind.GROUP:
            self.state = GroupState(key.group)
            return
        table, name = self._place(key)
        table.pop(name, None)

    def _place(self, key: Key) -> tuple[dict[Any, Any], Any]:
        match key.kind:
            case Kind.MEMBER:
                return self.members, key.member_id
            case Kind.TARGET:
                return self.targets, key.member_id
            case Kind.OFFSET:
                return self.offsets, key.partition
            case Kind.PRODUCER:
                return self.producers, key.number
            case _:
                return self.history, key.number

    @property
    def is_forgotten(self) -> bool:
        """Nothing of it is left in the log."""
        return not (
            self.members
            or self.targets
            or self.offsets
            or self.producers
            or self.history
            or self.state != GroupState(self.name)
        )

    @property
    def is_dead(self) -> bool:
        """To its users it does not exist; ends of transactions may still be remembered."""
        return not self.members and not self.offsets and self.state == GroupState(self.name)

    @property
    def has_pending(self) -> bool:
        return any(p.outcome is Outcome.PENDING for p in self.producers.values())

    @property
    def is_settled(self) -> bool:
        """Everyone has what it shall have, and nobody is giving anything up."""
        return self.state.epoch == self.state.target_epoch and all(
            not member.revoking and member.assigned == target_of(self.targets, member_id)
            for member_id, member in self.members.items()
        )

    @property
    def phase(self) -> GroupPhase:
        if self.is_dead:
            return GroupPhase.DEAD
        if not self.members:
            return GroupPhase.EMPTY
        return GroupPhase.STABLE if self.is_settled else GroupPhase.RECONCILING

    def member_of(self, instance_id: str) -> MemberState | None:
        """The static member with this instance id."""
        if not instance_id:
            return None
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)


def target_of(targets: dict[str, TargetState], member_id: str) -> tuple[TopicPartition, ...]:
    found = targets.get(member_id)
    return () if found is None else found.partitions


class Draft:
    """What a decision makes of a group: the members, targets and state that it reads and writes."""

    __slots__ = ("_fenced", "_notify", "_written", "group", "members", "state", "targets")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.state = group.state
        self.members = dict(group.members)
        self.targets = dict(group.targets)
        self._written: dict[Key, GroupRecord] = {}
        self._notify: dict[str, None] = {}
        self._fenced: list[Fenced] = []

    @property
    def name(self) -> str:
        return self.state.group

    @property
    def history(self) -> dict[int, Rebalance]:
        return self.group.history

    @property
    def records(self) -> tuple[GroupRecord, ...]:
        if self.state == self.group.state:
            return tuple(self._written.values())
        return (*self._written.values(), self.state)

    @property
    def effects(self) -> tuple[Any, ...]:
        notify = [Notify(self.state.group, name) for name in self._notify if name in self.members]
        return (*self._fenced, *notify)

    # -- members ----------------------------------------------------------------------------------

    def next_epoch(self) -> int:
        """A member epoch that was never given out in this group."""
        self.state = replace(self.state, given_epoch=self.state.given_epoch + 1)
        return self.state.given_epoch

    def put_member(self, member: MemberState) -> None:
        self.members[member.member_id] = member
        self._written[member.key] = member

    def remove_member(self, member_id: str, error: SuiroError | None = None) -> None:
        """It owns nothing from here on; with an error, because it was fenced."""
        key = self.members.pop(member_id).key
        self._written[key] = Removed(key)
        self.put_target(member_id, ())
        if error is not None:
            self._fenced.append(Fenced(self.state.group, member_id, error))

    def put_target(self, member_id: str, partitions: tuple[TopicPartition, ...]) -> None:
        target = TargetState(self.state.group, member_id, partitions)
        if target_of(self.targets, member_id) == partitions:
            return
        if partitions:
            self.targets[member_id] = target
            self._written[target.key] = target
        else:
            del self.targets[member_id]
            self._written[target.key] = Removed(target.key)

    def notify(self, member_id: str) -> None:
        self._notify[member_id] = None

    # -- the group --------------------------------------------------------------------------------

    def change(self, reason: str) -> None:
        """Something happened that may ask for another assignment."""
        reasons = self.state.reasons
        if len(reasons) < GROUP_REASONS_MAX:
            reasons = (*reasons, reason)
        self.state = replace(self.state, epoch=self.state.epoch + 1, reasons=reasons, asked="")

    def set_state(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)

    def close_rebalance(self, at_ms: int, moves: list[PartitionMove], shown: int) -> None:
        """The targets are those of the present epoch: write down why, and what moved."""
        done = Rebalance(
            self.state.group,
            self.state.epoch % GROUP_HISTORY_MAX,
            at_ms,
            self.state.epoch,
            "; ".join(self.state.reasons),
            len(moves),
            tuple(moves[:shown]),
        )
        self._written[done.key] = done
        self.set_state(target_epoch=self.state.epoch, reasons=(), asked="")

    def close_if_empty(self, at_ms: int) -> None:
        """A group that has just lost its last member has nothing to reconcile."""
        if self.members or self.state.empty_since_ms != NOT_EMPTY:
            return
        self.set_state(empty_since_ms=at_ms)
        self.close_rebalance(at_ms, [], 0)
