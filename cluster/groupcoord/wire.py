"""The messages of groupcoord.proto to the values of `requests` and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import groupcoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.model.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    TopicId,
    TopicPartition,
)

from cluster.groupcoord.requests import (
    REBALANCE_TIMEOUT_MS_DEFAULT,
    SESSION_TIMEOUT_MS_DEFAULT,
    Commit,
    CommitRequest,
    Computed,
    Message,
    Settle,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cluster.groupcoord.records import MemberState, Rebalance
    from cluster.groupcoord.requests import ComputeRequest, FetchedOffset, Standing


def partition(message: WirePartition) -> TopicPartition:
    return TopicPartition(message.topic, message.partition)


def partitions(found: Iterable[TopicPartition]) -> list[WirePartition]:
    return [WirePartition(topic=p.topic, partition=p.partition) for p in found]


def member_message(message: pb.MemberMessage, host: str = "") -> Message:
    """What a member says; a timeout of 0 stands for the default."""
    computed = None
    if message.HasField("computed"):
        computed = Computed(
            message.computed.group_epoch,
            {
                view.member_id: tuple(partition(p) for p in view.owned)
                for view in message.computed.members
            },
        )
    return Message(
        group=message.group,
        member_id=message.member_id,
        member_epoch=message.member_epoch,
        owned=frozenset(partition(p) for p in message.owned),
        instance_id=message.instance_id,
        client_id=message.hello.client_id,
        host=host,
        rack=message.rack,
        topics=tuple(message.topics),
        pattern=message.pattern,
        assignors=tuple(message.assignors),
        session_timeout_ms=message.session_timeout_ms or SESSION_TIMEOUT_MS_DEFAULT,
        rebalance_timeout_ms=message.rebalance_timeout_ms or REBALANCE_TIMEOUT_MS_DEFAULT,
        subscription_version=message.subscription_version,
        computed=computed,
    )


def notice(standing: Standing, known_epoch: int, answers: int = 0) -> pb.MemberNotice:
    """A standing as a member hears it; its assignment only if it has another one."""
    changed = standing.member_epoch != known_epoch
    return pb.MemberNotice(
        member_id=standing.member_id,
        member_epoch=standing.member_epoch,
        joined_epoch=standing.joined_epoch,
        assigned=partitions(standing.assigned) if changed else (),
        has_assignment=changed,
        reason=standing.reason if changed else "",
        compute=None if standing.compute is None else _compute(standing.compute),
        answers=answers,
    )


def _compute(request: ComputeRequest) -> pb.ComputeAssignment:
    return pb.ComputeAssignment(
        group_epoch=request.group_epoch,
        assignor=request.assignor,
        members=[
            pb.MemberView(
                member_id=view.member_id,
                topics=view.topics,
                owned=partitions(view.owned),
                rack=view.rack,
            )
            for view in request.views
        ],
        partitions=partitions(request.partitions),
    )


def commit_request(request: pb.CommitOffsetsRequest) -> CommitRequest:
    """Only a transactional id makes the producer's fields count: 0 is a producer id too."""
    is_transactional = bool(request.transactional_id)
    return CommitRequest(
        group=request.group,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        offsets=tuple(
            Commit(
                partition(one.partition),
                Offset(one.offset),
                LeaderEpoch(one.leader_epoch),
                one.metadata,
                TopicId(one.topic_id),
                one.reset,
            )
            for one in request.offsets
        ),
        producer_id=ProducerId(request.producer_id) if is_transactional else NO_PRODUCER_ID,
        producer_epoch=(
            ProducerEpoch(request.producer_epoch) if is_transactional else NO_PRODUCER_EPOCH
        ),
    )


def settle(request: pb.SettleOffsetsRequest) -> Settle:
    return Settle(
        request.group,
        ProducerId(request.producer_id),
        ProducerEpoch(request.producer_epoch),
        request.commit,
    )


def committed_offset(found: FetchedOffset) -> pb.CommittedOffset:
    where = WirePartition(topic=found.partition.topic, partition=found.partition.partition)
    if found.committed is None:
        return pb.CommittedOffset(partition=where, offset=-1, leader_epoch=-1)
    return pb.CommittedOffset(
        partition=where,
        offset=found.committed.offset,
        leader_epoch=found.committed.leader_epoch,
        metadata=found.committed.metadata,
        committed_at_ms=found.committed.committed_at_ms,
        topic_id=found.committed.topic_id,
    )


def member_state(
    member: MemberState, target: tuple[TopicPartition, ...], heard_ms: int
) -> pb.MemberState:
    return pb.MemberState(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.host,
        member_epoch=member.member_epoch,
        assigned=partitions(member.assigned),
        target=partitions(target),
        last_heard_ms=heard_ms,
        revoking=partitions(member.revoking),
        topics=member.topics,
        pattern=member.pattern,
    )


def rebalance(done: Rebalance) -> pb.Rebalance:
    return pb.Rebalance(
        at_ms=done.at_ms,
        group_epoch=done.epoch,
        reason=done.reason,
        moved=done.moved,
        moves=[
            pb.Move(
                partition=WirePartition(topic=m.partition.topic, partition=m.partition.partition),
                source=m.source,
                destination=m.destination,
            )
            for m in done.moves
        ],
    )
