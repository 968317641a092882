"""From a position that a person means to an offset."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro.attempts import until_done
from suiro.model.batch import walk
from suiro.model.columns import decode
from suiro.model.errors import LeaderNotAvailable
from suiro.retry import Backoff
from suiro.transport.methods import BrokerMethods
from suiro.transport.wire_errors import raise_if_error

if TYPE_CHECKING:
    from suiro._proto.common_pb2 import Isolation
    from suiro.connection import Connection
    from suiro.model.ids import Address, TopicPartition

FETCH_S: Final = 5.0


class Bound(StrEnum):
    """An end of the log.

    >>> consumer.offset_of(suiro.TopicPartition("fruit", 0), suiro.Bound.EARLIEST)
    0
    """

    EARLIEST = "earliest"
    LATEST = "latest"


_BOUNDS = {Bound.EARLIEST: pb.OffsetQuery.EARLIEST, Bound.LATEST: pb.OffsetQuery.LATEST}


async def find_offset(
    connection: Connection,
    partition: TopicPartition,
    bound: Bound | int,
    *,
    isolation: Isolation,
    timeout_s: float,
) -> int:
    """The offset of an end of the log, or of the first record at or after a timestamp (ms).

    With a timestamp later than every record, the end of the log.
    """
    query = pb.OffsetQuery(topic=partition.topic, partition=partition.partition)
    if isinstance(bound, Bound):
        query.bound = _BOUNDS[bound]
    else:
        query.timestamp_ms = bound
    is_fresh = True

    async def ask() -> int:
        nonlocal is_fresh
        if not is_fresh:
            await connection.refresh([partition.topic], timeout_s=timeout_s)
        is_fresh = False
        return await _ask(connection, partition, query, isolation)

    return await until_done(
        ask,
        timeout_s=timeout_s,
        backoff=Backoff(connection.rng),
        late=f"{partition}: no answer within {timeout_s:g} s",
    )


async def _ask(
    connection: Connection, partition: TopicPartition, query: pb.OffsetQuery, isolation: Isolation
) -> int:
    leader = connection.leader(partition)
    if leader is None:
        raise LeaderNotAvailable(f"{partition} has no leader")
    request = pb.ListOffsetsRequest(isolation=isolation, queries=[query])
    reply = await connection.transport.call(
        leader[1], BrokerMethods.LIST_OFFSETS, request, timeout_s=FETCH_S
    )
    answer = reply.answers[0]
    raise_if_error(answer.error)
    if query.WhichOneof("position") == "bound":
        return answer.offset
    if answer.offset < 0:
        latest = pb.OffsetQuery(
            topic=query.topic, partition=query.partition, bound=pb.OffsetQuery.LATEST
        )
        return await _ask(connection, partition, latest, isolation)
    return await _inside_batch(connection, leader[1], query, answer.offset)


async def _inside_batch(
    connection: Connection, leader: Address, query: pb.OffsetQuery, offset: int
) -> int:
    """The broker knows the batch; which record of it, only who opens it can tell."""
    part = pb.FetchPart(
        topic=query.topic, partition=query.partition, offset=offset, max_bytes=1, last_epoch=-1
    )
    request = pb.FetchRequest(hello=connection.hello(), parts=[part], max_bytes=1)
    reply = await connection.transport.call(leader, BrokerMethods.FETCH, request, timeout_s=FETCH_S)
    raise_if_error(reply.header.results[0].error)
    for position, _header in walk(reply.body):
        columns = decode(reply.body, position)
        late = (columns.timestamps_ms() >= query.timestamp_ms).nonzero()[0]
        if len(late):
            return int(columns.offsets()[late[0]])
    return offset


async def first_record(
    connection: Connection,
    partition: TopicPartition,
    offset: int,
    end: int,
    *,
    isolation: Isolation,
) -> tuple[int, int] | None:
    """Offset and timestamp (ms) of the first record from `offset` on that a reader is given."""
    while offset < end:
        leader = connection.leader(partition)
        if leader is None:
            raise LeaderNotAvailable(f"{partition} has no leader")
        part = pb.FetchPart(
            topic=partition.topic,
            partition=partition.partition,
            offset=offset,
            max_bytes=1,
            last_epoch=-1,
        )
        request = pb.FetchRequest(
            hello=connection.hello(), isolation=isolation, parts=[part], max_bytes=1
        )
        reply = await connection.transport.call(
            leader[1], BrokerMethods.FETCH, request, timeout_s=FETCH_S
        )
        result = reply.header.results[0]
        raise_if_error(result.error)
        for position, _header in walk(reply.body):
            columns = decode(reply.body, position)
            index = columns.index_of(offset)
            if index < len(columns):
                return columns.offset_at(index), int(columns.timestamps_ms()[index])
        if result.next_offset <= offset:
            return None
        offset = result.next_offset
    return None
