"""What an operator asks of one partition's leader, whoever that is at the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_UNCOMMITTED
from suiro.aio.offsets import find_offset
from suiro.attempts import until_done
from suiro.model.errors import LeaderNotAvailable, UnknownTopicOrPartition
from suiro.retry import Backoff
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from suiro.connection import Connection
    from suiro.model.ids import TopicPartition
    from suiro.transport.api import Method

Q = TypeVar("Q")
R = TypeVar("R")

EVERYTHING = -1
CALL_TIMEOUT_S = 5.0


async def delete_records(
    connection: Connection, partition: TopicPartition, before: int, *, timeout_s: float
) -> int:
    """Delete what is below an offset, or EVERYTHING that is committed; returns the new start of
    the log.
    """
    request = pb.DeleteRecordsRequest(
        topic=partition.topic, partition=partition.partition, before=before
    )
    method = BrokerMethods.DELETE_RECORDS
    reply = await at_leader(connection, partition, method, request, timeout_s=timeout_s)
    return reply.log_start


async def delete_records_before_time(
    connection: Connection, partition: TopicPartition, before_ms: int, *, timeout_s: float
) -> int:
    """Delete what is before the first record at or after a point in time; returns the new start.
    Where no record is that late, everything goes that is committed.
    """
    await connection.topic(partition.topic, timeout_s=timeout_s)
    offset = await find_offset(
        connection, partition, before_ms, isolation=READ_UNCOMMITTED, timeout_s=timeout_s
    )
    return await delete_records(connection, partition, offset, timeout_s=timeout_s)


async def at_leader(
    connection: Connection,
    partition: TopicPartition,
    method: Method[Q, R],
    request: Q,
    *,
    timeout_s: float,
) -> R:
    """One call of the leader; asked again, perhaps of another broker, while that can help."""

    async def ask() -> R:
        await connection.refresh([partition.topic], timeout_s=timeout_s)
        return await _ask(connection, partition, method, request)

    return await until_done(
        ask,
        timeout_s=timeout_s,
        backoff=Backoff(connection.rng),
        late=f"{partition}: no answer within {timeout_s:g} s",
    )


async def _ask(
    connection: Connection, partition: TopicPartition, method: Method[Q, R], request: Q
) -> R:
    if partition.partition >= len(connection.topics[partition.topic].partitions):
        raise UnknownTopicOrPartition(f"{partition} does not exist")
    leader = connection.leader(partition)
    if leader is None:
        raise LeaderNotAvailable(f"{partition} has no leader")
    return await connection.transport.call(leader[1], method, request, timeout_s=CALL_TIMEOUT_S)
