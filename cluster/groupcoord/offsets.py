"""Committed offsets: who may commit what, transactions included, and what a reader is told.

What always holds:
- A commit of a member counts only for a partition that it owns, and only if it was made under the
  grant that it owns it by: `granted_epoch <= member_epoch` (G3). So a late commit of a former owner
  changes nothing, and one that crosses a change of the assignment elsewhere is not refused for it.
- A committed offset goes back only by a commit that says so (G2). A lower one is answered as done:
  commits may be repeated and overtake one another.
- What a transaction commits is pending until it is settled, once, by the outcome of that epoch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from suiro.model.errors import (
    ConcurrentTransaction,
    GroupNotEmpty,
    InvalidRequest,
    InvalidTransaction,
    ProducerFenced,
    StaleMemberEpoch,
    TopicIdMismatch,
    UnknownMember,
    UnstableOffset,
)
from suiro.model.limits import OFFSET_METADATA_LENGTH_MAX, OFFSETS_PER_COMMIT_MAX

from cluster.groupcoord.records import OffsetState, Outcome, ProducerState, Removed
from cluster.groupcoord.requests import CommitOutcome, FetchedOffset
from cluster.host.machine import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.group import Group
    from cluster.groupcoord.records import GroupRecord, MemberState
    from cluster.groupcoord.requests import Commit, CommitRequest, Settle
    from cluster.groupcoord.subscriptions import Topics

ENDS_KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""How long the end of a producer's last transaction is remembered."""

Outcomes = tuple[CommitOutcome, ...]


def commit(
    group: Group, request: CommitRequest, topics: Topics, wall_ms: int
) -> Decision[Outcomes]:
    """Each offset is accepted or refused by itself; who may not commit at all is refused."""
    member = _committer(group, request)
    if len(request.offsets) > OFFSETS_PER_COMMIT_MAX:
        raise InvalidRequest(f"at most {OFFSETS_PER_COMMIT_MAX} offsets fit one commit")
    if request.is_transactional:
        _check_producer(group, request)
    grants = {} if member is None else {o.partition: o.granted_epoch for o in member.owned}
    accepted: list[Commit] = []
    outcomes = []
    for wanted in request.offsets:
        error = _refusal(wanted, topics)
        if error is None and member is not None:
            error = _not_owned(wanted, grants, request.member_epoch)
        if error is None:
            accepted.append(wanted)
        outcomes.append(CommitOutcome(wanted.partition, error))
    if request.is_transactional:
        return Decision(_pended(group, request, accepted, wall_ms), tuple(outcomes))
    offsets = _moved(group.offsets, accepted, group.name, wall_ms)
    return Decision(tuple(offsets.values()), tuple(outcomes))


def _committer(group: Group, request: CommitRequest) -> MemberState | None:
    """The member that commits, or None for somebody outside, who may while there are no members."""
    if not request.member_id:
        if group.members:
            raise GroupNotEmpty(f"{group.name} has {len(group.members)} active members")
        return None
    member = group.members.get(request.member_id)
    if member is None:
        raise UnknownMember(f"{request.member_id} is no member of {request.group}")
    if request.member_epoch > member.member_epoch:
        raise StaleMemberEpoch(f"{request.member_id} is at epoch {member.member_epoch}")
    return member


def _refusal(wanted: Commit, topics: Topics) -> SuiroError | None:
    if wanted.offset < 0 or len(wanted.metadata) > OFFSET_METADATA_LENGTH_MAX:
        return InvalidRequest(f"{wanted.partition}: a negative offset or too much metadata")
    if topics.differs(wanted.partition.topic, wanted.topic_id):
        return TopicIdMismatch(f"{wanted.partition.topic} was deleted and made again")
    return None


def _not_owned(
    wanted: Commit, grants: dict[TopicPartition, int], member_epoch: int
) -> SuiroError | None:
    granted = grants.get(wanted.partition)
    if granted is None:
        return StaleMemberEpoch(f"{wanted.partition} is not the member's (any more)")
    if member_epoch < granted:
        return StaleMemberEpoch(f"{wanted.partition} was granted anew at epoch {granted}")
    return None


def _moved(
    committed: Mapping[TopicPartition, OffsetState],
    wanted: Iterable[Commit],
    group: str,
    wall_ms: int,
) -> dict[TopicPartition, OffsetState]:
    """The offsets that these commits change; one that would go back changes nothing."""
    changed: dict[TopicPartition, OffsetState] = {}
    for one in wanted:
        before = changed.get(one.partition, committed.get(one.partition))
        new = OffsetState(
            group, one.partition, one.offset, one.leader_epoch, one.metadata, one.topic_id, wall_ms
        )
        if one.reset or not _goes_back(before, new):
            changed[one.partition] = new
    return changed


def _goes_back(before: OffsetState | None, new: OffsetState) -> bool:
    """Offsets of a topic made anew under the same name cannot be compared."""
    if before is None or (before.topic_id and new.topic_id and before.topic_id != new.topic_id):
        return False
    return new.offset < before.offset


# -- transactions ---------------------------------------------------------------------------------


def _check_producer(group: Group, request: CommitRequest) -> None:
    known = group.producers.get(request.producer_id)
    if known is None or known.producer_epoch < request.producer_epoch:
        if known is not None and known.outcome is Outcome.PENDING:
            raise ConcurrentTransaction("the producer's last transaction is not settled yet")
        return
    if known.producer_epoch > request.producer_epoch:
        raise ProducerFenced(f"producer {request.producer_id} is at epoch {known.producer_epoch}")
    if known.outcome is not Outcome.PENDING:
        raise InvalidTransaction("the transaction has ended")


def _pended(
    group: Group, request: CommitRequest, accepted: Sequence[Commit], wall_ms: int
) -> tuple[GroupRecord, ...]:
    if not accepted:
        return ()
    known = group.producers.get(request.producer_id)
    before = (
        {offset.partition: offset for offset in known.offsets}
        if known is not None and known.producer_epoch == request.producer_epoch
        else {}
    )
    pending = before | _moved(before, accepted, group.name, wall_ms)
    return (
        ProducerState(
            group.name,
            request.producer_id,
            request.producer_epoch,
            Outcome.PENDING,
            wall_ms,
            tuple(pending[partition] for partition in sorted(pending)),
        ),
    )


def settle(group: Group, end: Settle, wall_ms: int) -> Decision[None]:
    """A transaction has ended: its offsets count, or are forgotten. Repeating it changes nothing.

    The end is written down even if nothing was pending: a commit of that transaction that is still
    on its way must find it.
    """
    known = group.producers.get(end.producer_id)
    outcome = Outcome.COMMITTED if end.commit else Outcome.ABORTED
    offsets: tuple[OffsetState, ...] = ()
    if known is not None:
        if known.producer_epoch > end.producer_epoch:
            raise ProducerFenced(f"producer {end.producer_id} is at epoch {known.producer_epoch}")
        if known.outcome is not Outcome.PENDING and known.producer_epoch == end.producer_epoch:
            if known.outcome is not outcome:
                raise InvalidTransaction(f"the transaction has ended as {known.outcome.name}")
            return Decision((), None)
        if known.outcome is Outcome.PENDING:
            offsets = _settled(group, known, end, wall_ms)
    done = ProducerState(group.name, end.producer_id, end.producer_epoch, outcome, wall_ms)
    return Decision((*offsets, done), None)


def _settled(
    group: Group, known: ProducerState, end: Settle, wall_ms: int
) -> tuple[OffsetState, ...]:
    if not end.commit:
        return ()
    if known.producer_epoch != end.producer_epoch:
        raise InvalidTransaction(f"epoch {known.producer_epoch} was never settled")
    return tuple(
        replace(offset, committed_at_ms=wall_ms)
        for offset in known.offsets
        if not _goes_back(group.offsets.get(offset.partition), offset)
    )


# -- reading and forgetting -----------------------------------------------------------------------


def fetch(
    group: Group, partitions: Sequence[TopicPartition], topics: Topics, *, require_stable: bool
) -> tuple[FetchedOffset, ...]:
    """The committed offsets of these partitions, or of all. Offsets of a topic that was deleted and
    made again are not there. `require_stable`: an open transaction may still change some.
    """
    unstable = _undecided(group) if require_stable else frozenset()
    found = []
    for partition in partitions or sorted({*group.offsets, *unstable}):
        if partition in unstable:
            error = UnstableOffset(f"a transaction is open on the offset of {partition}")
            found.append(FetchedOffset(partition, error=error))
            continue
        committed = group.offsets.get(partition)
        if committed is not None and topics.differs(partition.topic, committed.topic_id):
            committed = None
        found.append(FetchedOffset(partition, committed))
    return tuple(found)


def _undecided(group: Group) -> frozenset[TopicPartition]:
    return frozenset(
        offset.partition
        for producer in group.producers.values()
        if producer.outcome is Outcome.PENDING
        for offset in producer.offsets
    )


def forget(group: Group, partitions: Sequence[TopicPartition]) -> tuple[GroupRecord, ...]:
    """Delete these offsets, or the whole group; refused while it has members or an open transaction
    on what is deleted. The ends of transactions stay remembered.
    """
    if group.members:
        raise GroupNotEmpty(f"{group.name} has {len(group.members)} active members")
    doomed = list(partitions) or sorted(group.offsets)
    undecided = _undecided(group)
    if any(partition in undecided for partition in doomed) or (not partitions and undecided):
        raise UnstableOffset(f"a transaction is open on offsets of {group.name}")
    removed = [group.offsets[p].key for p in doomed if p in group.offsets]
    if not partitions:
        removed += [group.history[slot].key for slot in sorted(group.history)]
        removed.append(group.state.key)
    return tuple(Removed(key) for key in removed)


def expire(
    group: Group, topics: Topics, retention_ms: int, wall_ms: int
) -> tuple[GroupRecord, ...]:
    """What has outlived its use: offsets of a group that has had no members for long, offsets of
    topics that were made anew, ends of old transactions, and in the end the group itself.
    """
    undecided = _undecided(group)
    stale = {
        partition
        for partition, offset in group.offsets.items()
        if partition not in undecided and topics.differs(partition.topic, offset.topic_id)
    }
    if not group.members:
        empty_ms = group.state.empty_since_ms
        stale |= {
            partition
            for partition, offset in group.offsets.items()
            if partition not in undecided
            and wall_ms - max(empty_ms, offset.committed_at_ms) >= retention_ms
        }
    ends = [
        producer.key
        for _, producer in sorted(group.producers.items())
        if producer.outcome is not Outcome.PENDING and wall_ms - producer.at_ms >= ENDS_KEPT_MS
    ]
    keys = [group.offsets[partition].key for partition in sorted(stale)] + ends
    if _is_over(group, stale, retention_ms, wall_ms):
        keys += [group.history[slot].key for slot in sorted(group.history)]
        keys.append(group.state.key)
    return tuple(Removed(key) for key in keys)


def _is_over(group: Group, stale: set[TopicPartition], retention_ms: int, wall_ms: int) -> bool:
    state = group.state
    return (
        not group.members
        and not group.has_pending
        and len(stale) == len(group.offsets)
        and state.epoch > 0
        and wall_ms - state.empty_since_ms >= retention_ms
    )
