"""The committed offsets of one group: commit them, read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro._proto import groupcoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.attempts import until_done
from suiro.model.errors import UnstableOffset
from suiro.model.ids import TopicPartition
from suiro.retry import Backoff
from suiro.transport.methods import GroupCoordinatorMethods
from suiro.transport.wire_errors import error_from_proto, raise_if_error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from suiro.aio.coordinators import Coordinators
    from suiro.connection import Connection


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """Where a group is in a partition: the next offset to read, and a note of the application's."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
    """Of the record before it; lets a later reader notice that the log was cut there."""


@dataclass(frozen=True, slots=True)
class GroupMembership:
    """Who commits: a member at the epoch of its assignment, or somebody from outside."""

    group: str
    member_id: str = ""
    member_epoch: int = 0


class GroupOffsets:
    """For one group, from one consumer or an administrator."""

    def __init__(self, connection: Connection, coordinators: Coordinators, group: str) -> None:
        self._connection = connection
        self._coordinators = coordinators
        self.group = group

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        member_id: str = "",
        member_epoch: int = 0,
        resets: Collection[TopicPartition] = (),
        timeout_s: float,
    ) -> None:
        """Raises the first partition's error, if there is one; the others are committed then."""
        if not offsets:
            return
        request = pb.CommitOffsetsRequest(
            group=self.group,
            member_id=member_id,
            member_epoch=member_epoch,
            producer_id=-1,
            producer_epoch=-1,
            offsets=[
                self.wire_commit(partition, offsets[partition], reset=partition in resets)
                for partition in sorted(offsets)
            ],
        )
        reply = await self._coordinators.call(
            self.group, GroupCoordinatorMethods.COMMIT_OFFSETS, request, timeout_s=timeout_s
        )
        for result in reply.results:
            raise_if_error(result.error)

    def wire_commit(
        self, partition: TopicPartition, at: OffsetAndMetadata, *, reset: bool = False
    ) -> pb.OffsetCommit:
        topic = self._connection.topics.get(partition.topic)
        return pb.OffsetCommit(
            partition=WirePartition(topic=partition.topic, partition=partition.partition),
            offset=at.offset,
            leader_epoch=at.leader_epoch,
            metadata=at.metadata,
            topic_id=b"" if topic is None else topic.topic_id,
            reset=reset,
        )

    async def fetch(
        self,
        partitions: Iterable[TopicPartition] = (),
        *,
        require_stable: bool = True,
        timeout_s: float,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of these partitions, or of all; those without one are left out.

        With `require_stable` it waits for transactions that are about to decide some of them.
        """
        wanted = [WirePartition(topic=p.topic, partition=p.partition) for p in partitions]
        request = pb.FetchOffsetsRequest(
            group=self.group, partitions=wanted, require_stable=require_stable
        )

        async def ask() -> dict[TopicPartition, OffsetAndMetadata]:
            method = GroupCoordinatorMethods.FETCH_OFFSETS
            return _found(
                await self._coordinators.call(self.group, method, request, timeout_s=timeout_s)
            )

        return await until_done(
            ask,
            timeout_s=timeout_s,
            backoff=Backoff(self._connection.rng),
            late=f"the offsets of group {self.group} did not come",
            is_worth_it=lambda error: isinstance(error, UnstableOffset),
        )


def _found(reply: pb.FetchOffsetsReply) -> dict[TopicPartition, OffsetAndMetadata]:
    found = {}
    for each in reply.offsets:
        if each.error.code:
            raise error_from_proto(each.error)
        if each.offset >= 0:
            where = TopicPartition(each.partition.topic, each.partition.partition)
            found[where] = OffsetAndMetadata(each.offset, each.metadata, each.leader_epoch)
    return found
