"""Asks one broker directly, as a client with old metadata does: does it still act as a leader?

Each question is one that only a leader may answer: the latest offset, a read, and an append with
acks=1 and acks=all. What an appended record is called is noted, as it may be stored.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from suiro._proto import broker_pb2 as pb
from suiro.model.encode import encode_lists
from suiro.model.error_base import SuiroError
from suiro.transport.framing import Framed
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.methods import BrokerMethods
from suiro.transport.wire_errors import raise_if_error
from suiro.verify.history import Outcome, Send
from suiro.verify.payload import Payload

from tests.cluster.replication_load import TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from suiro.model.ids import Address

    from tests.cluster.replication_load import Load

PACE_S = 0.05
ANSWER_S = 8.0
FIRST_PRODUCER = 1_000


class Served(NamedTuple):
    """A question that was answered as only a leader may."""

    what: str
    asked_s: float
    answered_s: float


@dataclass
class Probe:
    """Questions to one broker about partition 0."""

    address: Address
    load: Load
    producer: int
    served: list[Served] = field(default_factory=list)
    asked: int = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Ask all the time, without waiting for answers; all are in when it returns."""
        transport = GrpcTransport()
        questions: dict[str, Callable[[GrpcTransport], Awaitable[None]]] = {
            "latest": self._latest,
            "read": self._read,
            "acks=1": lambda transport: self._append(transport, 1),
            "acks=all": lambda transport: self._append(transport, -1),
        }
        try:
            async with asyncio.TaskGroup() as tasks:
                while not stop.is_set():
                    for what, question in questions.items():
                        tasks.create_task(self._ask(what, question(transport)))
                    await asyncio.sleep(PACE_S)
        finally:
            await transport.close()

    async def _ask(self, what: str, answer: Awaitable[None]) -> None:
        asked_s = time.monotonic()
        self.asked += 1
        try:
            await answer
        except SuiroError:
            return
        self.served.append(Served(what, asked_s, time.monotonic()))

    async def _latest(self, transport: GrpcTransport) -> None:
        query = pb.OffsetQuery(topic=TOPIC, partition=0, bound=pb.OffsetQuery.LATEST)
        reply = await transport.call(
            self.address,
            BrokerMethods.LIST_OFFSETS,
            pb.ListOffsetsRequest(queries=[query]),
            timeout_s=ANSWER_S,
        )
        raise_if_error(reply.answers[0].error)

    async def _read(self, transport: GrpcTransport) -> None:
        part = pb.FetchPart(topic=TOPIC, partition=0, offset=0, max_bytes=1_000)
        reply = await transport.call(
            self.address,
            BrokerMethods.FETCH,
            pb.FetchRequest(max_bytes=1_000, parts=[part]),
            timeout_s=ANSWER_S,
        )
        raise_if_error(reply.header.results[0].error)

    async def _append(self, transport: GrpcTransport, acks: int) -> None:
        self.producer += 1  # each is a producer of its own: nothing orders these appends
        payload = Payload(self.load.run, TOPIC, 0, self.producer, 0)
        batch = encode_lists([None], [payload.encode()], timestamps_ms=[0])
        part = pb.ProducePart(topic=TOPIC, partition=0, size=len(batch))
        asked_s = time.monotonic()
        outcome, offset = Outcome.INFO, -1
        try:
            reply = await transport.call(
                self.address,
                BrokerMethods.PRODUCE,
                Framed(pb.ProduceRequest(acks=acks, timeout_ms=5_000, parts=[part]), [batch]),
                timeout_s=ANSWER_S,
            )
            raise_if_error(reply.results[0].error)
            if acks == -1:
                outcome, offset = Outcome.OK, reply.results[0].base_offset
        finally:
            send = Send(payload, outcome, offset, asked_s, time.monotonic())
            self.load.history.sends.append(send)
