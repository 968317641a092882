"""The broker's own streams, driven without the SDK: what a node can do with ready batches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro._proto import broker_pb2 as pb
from suiro.transport.framing import Framed
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from suiro.model.ids import Address

IN_FLIGHT = 5


async def produce(address: Address, topic: str, batch: bytes, count: int) -> None:
    """Send a batch `count` times to partition 0 with acks=all, five at most unanswered."""
    transport = GrpcTransport()
    stream = await transport.open(address, BrokerMethods.PRODUCE_STREAM)
    room = asyncio.Semaphore(IN_FLIGHT)
    part = pb.ProducePart(topic=topic, partition=0, size=len(batch))
    request = Framed(pb.ProduceRequest(acks=-1, parts=[part]), (batch,))

    async def answers() -> None:
        for _ in range(count):
            reply = await stream.receive()
            assert reply is not None
            assert not reply.results[0].error.code, reply
            room.release()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(answers())
        for _ in range(count):
            await room.acquire()
            await stream.send(request)
    await stream.finish()
    await transport.close()


async def fetch(address: Address, topic: str, size: int) -> None:
    """Read so many bytes of partition 0."""
    transport = GrpcTransport()
    stream = await transport.open(address, BrokerMethods.FETCH_STREAM)
    start = pb.FetchStart(slot=1, topic=topic, last_epoch=-1, credit=2 * size)
    await stream.send(pb.FetchStreamRequest(start=[start]))
    got = 0
    while got < size:
        reply = await stream.receive()
        assert reply is not None
        assert not reply.header.result.error.code, reply
        got += len(reply.body)
    await stream.finish()
    await transport.close()
