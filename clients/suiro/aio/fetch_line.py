"""One consumer's line to one broker: a fetch stream for all the partitions that it leads."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from suiro._proto import broker_pb2 as pb
from suiro.cancellation import heed_cancellation
from suiro.model.error_base import SuiroError
from suiro.model.errors import Unavailable
from suiro.retry import Backoff
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from suiro._proto.common_pb2 import Isolation
    from suiro.connection import Connection
    from suiro.model.ids import Address
    from suiro.transport.api import Stream
    from suiro.transport.framing import Framed

    FetchStream = Stream[pb.FetchStreamRequest, Framed[pb.FetchStreamReply]]


class Reader(Protocol):
    """Who the line reads for: the consumer."""

    connection: Connection

    def on_reply(self, slot: int, reply: Framed[pb.FetchStreamReply]) -> None: ...
    def on_broken(self, line: FetchLine, error: SuiroError) -> None: ...


class FetchLine:
    """Runs until its stream breaks; the consumer then opens another."""

    def __init__(
        self, reader: Reader, address: Address, isolation: Isolation, rack: str = ""
    ) -> None:
        self.address = address
        self._reader = reader
        self._wake = asyncio.Event()
        self._next = pb.FetchStreamRequest(
            hello=reader.connection.hello(), isolation=isolation, rack=rack
        )

    def start(self, start: pb.FetchStart) -> None:
        self._next.start.append(start)
        self._wake.set()

    def grant(self, slot: int, size: int) -> None:
        self._next.credit.append(pb.FetchCredit(slot=slot, bytes=size))
        self._wake.set()

    def stop(self, slot: int) -> None:
        self._next.stop.append(slot)
        self._wake.set()

    async def run(self) -> None:
        connection = self._reader.connection
        stream = await connection.transport.open(self.address, BrokerMethods.FETCH_STREAM)
        error: SuiroError = Unavailable(f"{self.address} ended the stream")
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(self._send(stream), name="send fetch credit")
                while (reply := await stream.receive()) is not None:
                    self._reader.on_reply(reply.header.slot, reply)
                sending.cancel()
        except* SuiroError as failures:
            first = failures.exceptions[0]
            assert isinstance(first, SuiroError)
            error = first
        finally:
            stream.cancel()
        heed_cancellation()
        await asyncio.sleep(Backoff(connection.rng).next_s())
        self._reader.on_broken(self, error)

    async def _send(self, stream: FetchStream) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            message, self._next = self._next, pb.FetchStreamRequest()
            await stream.send(message)
