"""Requests that nobody should send, to every rpc of a real node: A2 of the reliability document.

    python -m tests.fuzz.rpcs --count 100000

Each is answered with a reply or with an error of ours, never with an internal one; the node goes
on, and what was stored and committed before is there as it was, and nothing besides.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suiro import aio
from suiro._proto.common_pb2 import Error
from suiro.aio.group_offsets import OffsetAndMetadata
from suiro.model.error_registry import error_from_wire
from suiro.model.errors import InternalError
from suiro.model.ids import TopicPartition
from suiro.transport.api import Kind
from suiro.transport.grpc_transport import ERROR_KEY

import grpc  # isort: skip - grpc_transport has tuned the process before this import
from grpc import aio as grpc_aio  # isort: skip

from tests.cluster.harness import SingleNode
from tests.fuzz.messages import Drawer, all_methods

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from suiro.transport.api import Method

KEPT = TopicPartition("kept", 0)
GROUP = "kept-group"
RECORDS = 20
COMMITTED = 7
STREAM_MESSAGES_MAX = 3
TIMEOUT_S = 0.15
OVERSIZED_BYTES = (64 << 20) + 1
BROKEN_OFF = "Internal error from Core"
"""What gRPC's own client says when the other side ends a stream that is being written to."""
HARMFUL = {
    "/suiro.v1.Admin/RemoveController", "/suiro.v1.Admin/AddController",
    "/suiro.v1.Admin/UnregisterNode", "/suiro.v1.Controller/RegisterNode",
    "/suiro.v1.Controller/NodeSession", "/suiro.v1.Raft/Step",
}  # fmt: skip
"""What a well-formed one may do to a cluster of one node, by right: they get malformed ones only.
(Nobody is authenticated yet, so whoever reaches these may use them.)"""
KEEPS = {
    "/suiro.v1.Admin/DeleteTopics", "/suiro.v1.Broker/DeleteRecords",
    "/suiro.v1.Admin/AlterConfigs",
    "/suiro.v1.GroupCoordinator/DeleteGroup", "/suiro.v1.GroupCoordinator/CommitOffsets",
    "/suiro.v1.Broker/WriteTxnMarkers",
}  # fmt: skip
"""These would be right to change what is looked at in the end, so they do not hear of it."""


@dataclass
class Fuzzed:
    """What came of it."""

    answers: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def table(self) -> str:
        lines = [f"{count:8,}  {name}" for name, count in sorted(self.answers.items())]
        kinds = Counter(self.wrong)
        wrong = [f"{count:8,}  {line}" for line, count in kinds.most_common(40)]
        return "\n".join([*lines, f"wrong: {len(self.wrong)}", *wrong])


class Fuzzer:
    """One node, and a channel to it that takes any bytes."""

    def __init__(self, bootstrap: str, address: str, seed: int) -> None:
        self.result = Fuzzed()
        self._bootstrap = bootstrap
        self._rng = random.Random(seed)
        self._address = address
        self._channel: Any = None
        self._knowing = Drawer(self._rng, (KEPT.topic, GROUP))
        self._ignorant = Drawer(self._rng, ("other",))

    async def run(self, count: int) -> None:
        self._channel = grpc_aio.insecure_channel(
            self._address, options=(("grpc.max_send_message_length", -1),)
        )
        await self._prepare()
        methods = all_methods()
        for number in range(count):
            await self._ask(methods[number % len(methods)])
        for method in methods:
            if method.kind is Kind.UNARY:
                await self._send(method, "oversized", bytes(OVERSIZED_BYTES))
                break  # the limit is the server's, and the same for all
        await self._check()
        await self._channel.close()

    async def _ask(self, method: Method[Any, Any]) -> None:
        drawer = self._ignorant if method.name in KEEPS else self._knowing
        kind, data = drawer.draw(method)
        if method.name in HARMFUL:
            kind, data = "garbage", self._rng.randbytes(61)
        await self._send(method, kind, data)

    async def _send(self, method: Method[Any, Any], kind: str, data: bytes) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S if kind != "oversized" else 30):
                await self._call(method, data)
            answer = "answered"
        except TimeoutError:
            answer = "waits"
        except grpc_aio.AioRpcError as error:
            answer = self._read_error(method, kind, error)
        self.result.answers[f"{kind:10} {answer}"] += 1

    async def _call(self, method: Method[Any, Any], data: bytes) -> None:
        if method.kind is Kind.UNARY:
            await self._channel.unary_unary(method.name)(data)
        elif method.kind is Kind.SERVER_STREAM:
            async for _ in self._channel.unary_stream(method.name)(data):
                return
        else:

            async def messages() -> AsyncIterator[bytes]:
                for _ in range(self._rng.randint(1, STREAM_MESSAGES_MAX)):
                    yield data

            async for _ in self._channel.stream_stream(method.name)(messages()):
                pass

    def _read_error(self, method: Method[Any, Any], kind: str, error: Any) -> str:
        for key, value in error.trailing_metadata() or ():
            if key == ERROR_KEY:
                said = Error.FromString(value)
                ours = error_from_wire(said.code, said.message, said.hints)
                if isinstance(ours, InternalError):
                    self.result.wrong.append(f"{method} {kind}: {ours.message[:200]}")
                return "refused by an error of ours"
        if kind == "oversized" and error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
            return "refused by gRPC"
        if error.details() == BROKEN_OFF:
            return "broken off while it was sent"
        self.result.wrong.append(f"{method} {kind}: {error.code()} {error.details()}"[:250])
        return "no error of ours"

    async def _prepare(self) -> None:
        async with aio.Admin(self._bootstrap) as admin:
            await admin.create_topic(KEPT.topic, partitions=1)
            await admin.create_topic("other", partitions=1)
        async with aio.Producer(self._bootstrap) as producer:
            for number in range(RECORDS):
                await producer.send(KEPT.topic, b"%d" % number, partition=0)
        async with aio.Consumer(self._bootstrap, group_id=GROUP) as consumer:
            await consumer.commit({KEPT: OffsetAndMetadata(COMMITTED)})

    async def _check(self) -> None:
        async with aio.Consumer(
            self._bootstrap, group_id=GROUP, auto_offset_reset="earliest"
        ) as consumer:
            committed = (await consumer.committed([KEPT]))[KEPT]
            if committed is None or committed.offset != COMMITTED:
                self.result.wrong.append(f"the group is at {committed}")
            await consumer.assign({KEPT: 0})
            found: list[bytes | None] = []
            while polled := await consumer.poll(1.0):
                found += [record.value for record in polled]
        if found != [b"%d" % number for number in range(RECORDS)]:
            self.result.wrong.append(f"{len(found)} records are there, {RECORDS} were stored")


def fuzz(folder: Path, count: int, seed: int) -> Fuzzed:
    with SingleNode(folder) as node:
        fuzzer = Fuzzer(node.bootstrap, str(node.address), seed)
        asyncio.run(fuzzer.run(count))
    return fuzzer.result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = fuzz(Path(folder), options.count, options.seed)
    print(result.table())
    return bool(result.wrong)


if __name__ == "__main__":
    sys.exit(main())
