"""What must hold of consumer groups, whatever happens: G1 to G6 of RELIABILITY.md.

The checker keeps its own copy of the committed records, by key, and knows nothing of the machine.
It also sees what the processes of the members do: what they hold, process, commit and read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from cluster.groupcoord.records import (
    GroupState,
    Key,
    Kind,
    MemberState,
    OffsetState,
    Outcome,
    ProducerState,
    Rebalance,
    Removed,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.records import GroupRecord
    from tests.sim.group_member import Process


class Violation(AssertionError):
    """A promise was broken."""


def leader_epoch_of(offset: int) -> int:
    """In this world the record before an offset was written in this leader epoch."""
    return offset // 50


class GroupChecker:
    """One group; `state` is what a coordinator that begins now must rebuild."""

    def __init__(self) -> None:
        self.state: dict[Key, GroupRecord] = {}
        self.counts: Counter[str] = Counter()
        self.holders: dict[TopicPartition, list[Process]] = defaultdict(list)
        self.processed: dict[TopicPartition, int] = defaultdict(int)
        self.floor: dict[TopicPartition, int] = defaultdict(lambda: -1)
        """What a reader must find at least: the highest commit that was acknowledged."""
        self.ends: dict[tuple[int, int], bool] = {}
        """How a transaction ended, by producer and epoch."""
        self.resets = 0
        self._rebalanced = 0
        self._changed = 0

    # -- the log ----------------------------------------------------------------------------------

    def members(self) -> dict[str, MemberState]:
        return {r.member_id: r for r in self.state.values() if isinstance(r, MemberState)}

    def grant(self, member_id: str, partition: TopicPartition) -> int | None:
        """The epoch of the grant by which the member owns the partition, if it does."""
        member = self.state.get(Key(Kind.MEMBER, "g", member_id))
        if not isinstance(member, MemberState):
            return None
        found = (o.granted_epoch for o in member.owned if o.partition == partition)
        return next(found, None)

    def on_committed(
        self, records: Sequence[GroupRecord], resets: Iterable[TopicPartition]
    ) -> None:
        """A decision is durable: what it says is now the truth."""
        allowed = frozenset(resets)
        touches_members = False
        for record in records:
            touches_members |= record.key.kind is Kind.MEMBER
            before = self.state.get(record.key)
            self._check_record(before, record, allowed)
            if isinstance(record, Removed):
                self.state.pop(record.key, None)
            else:
                self.state[record.key] = record
        if touches_members:
            self._check_members()

    def _check_record(
        self, before: GroupRecord | None, record: GroupRecord, resets: frozenset[TopicPartition]
    ) -> None:
        match record:
            case OffsetState():
                self._check_offset(before, record, resets)
            case Rebalance():
                self.counts["rebalances"] += 1
                if record.epoch <= self._rebalanced:
                    raise Violation(f"G4: epoch {record.epoch} was assigned a second time")
                self._rebalanced = record.epoch
            case GroupState():
                if record.epoch < self._changed or record.target_epoch > record.epoch:
                    raise Violation(f"G4: the group went back: {record}")
                self._changed = record.epoch
                if isinstance(before, GroupState) and record.given_epoch < before.given_epoch:
                    raise Violation(f"G3: member epochs went back: {record}")
            case ProducerState() if isinstance(before, ProducerState):
                self._check_producer(before, record)
            case Removed(key) if key.kind is Kind.GROUP:
                self._rebalanced = self._changed = 0

    def _check_offset(
        self, before: GroupRecord | None, record: OffsetState, resets: frozenset[TopicPartition]
    ) -> None:
        at = record.partition
        if isinstance(before, OffsetState) and record.offset < before.offset:
            if at not in resets:
                raise Violation(f"G2: {at} goes back from {before.offset} to {record.offset}")
            self.floor[at] = record.offset
            self.resets += 1
        if record.metadata.startswith("txn "):
            _, producer, epoch = record.metadata.split()
            if self.ends.get((int(producer), int(epoch))) is not True:
                raise Violation(f"G2: {record.metadata} did not commit, and its offset counts")
        if record.leader_epoch != leader_epoch_of(record.offset):
            raise Violation(f"G6: {at} {record.offset} with leader epoch {record.leader_epoch}")

    def _check_producer(self, before: ProducerState, record: ProducerState) -> None:
        if record.producer_epoch < before.producer_epoch:
            raise Violation(f"G3: producer {record.producer_id} went back")
        same = record.producer_epoch == before.producer_epoch
        if same and before.outcome is not Outcome.PENDING and record.outcome is not before.outcome:
            raise Violation(f"G2: a settled transaction became {record.outcome.name}")

    def _check_members(self) -> None:
        """G1 as the log has it; and one process per static instance."""
        owners: dict[TopicPartition, str] = {}
        instances: dict[str, str] = {}
        for member_id, member in self.members().items():
            for owned in member.owned:
                if owners.setdefault(owned.partition, member_id) != member_id:
                    raise Violation(
                        f"G1: {owned.partition} is {member_id}'s and {owners[owned.partition]}'s"
                    )
            if member.instance_id and instances.setdefault(member.instance_id, member_id) != (
                member_id
            ):
                raise Violation(f"G1: two members are {member.instance_id}")

    # -- processes --------------------------------------------------------------------------------

    def on_hold(self, process: Process, partition: TopicPartition) -> None:
        """G1 as the world sees it: whoever else holds it has been fenced, or it has been itself."""
        is_member = self._is_member(process)
        for other in self.holders[partition]:
            if is_member and other is not process and self._is_member(other):
                raise Violation(
                    f"G1: {process.membership.member_id} is given {partition}, which "
                    f"{other.membership.member_id} still holds"
                )
        self.holders[partition].append(process)
        self.counts["grants"] += 1

    def _is_member(self, process: Process) -> bool:
        """Whether the life that this process leads is a membership, and not an earlier one."""
        member = self.members().get(process.membership.member_id)
        return member is not None and member.joined_epoch == process.membership.joined_epoch

    def on_release(self, process: Process, partition: TopicPartition) -> None:
        if process in self.holders[partition]:
            self.holders[partition].remove(process)

    def on_start(self, partition: TopicPartition, offset: int) -> None:
        """G5: a consumer begins there, so all before it has been processed by somebody."""
        if offset > self.processed[partition]:
            raise Violation(
                f"G5: {partition} begins at {offset}, processed up to {self.processed[partition]}"
            )

    def on_processed(self, partition: TopicPartition, end: int) -> None:
        self.processed[partition] = max(self.processed[partition], end)

    # -- offsets ----------------------------------------------------------------------------------

    def on_accepted(
        self, member_id: str, partition: TopicPartition, sent: int | None, owned: int | None
    ) -> None:
        """G3: what is accepted from a member was sent under the grant that it owns it by now."""
        if owned is None or owned != sent:
            raise Violation(
                f"G3: {member_id} commits {partition} under the grant of {sent}, it is {owned}"
            )

    def on_acked(self, partition: TopicPartition, offset: int, resets: int) -> None:
        """`resets`: how many there had been when it was sent; a later one may have undone it."""
        if resets == self.resets:
            self.floor[partition] = max(self.floor[partition], offset)
        self.counts["commits"] += 1

    def on_read(
        self, partition: TopicPartition, offset: int, leader_epoch: int, floor: int
    ) -> None:
        """G2, G6: at least what was acknowledged when the question was asked."""
        if offset < min(floor, self.floor[partition]):
            raise Violation(f"G2: {partition} reads {offset}, acknowledged was {floor}")
        if offset >= 0 and leader_epoch != leader_epoch_of(offset):
            raise Violation(f"G6: {partition} {offset} reads leader epoch {leader_epoch}")
        self.counts["reads"] += 1
