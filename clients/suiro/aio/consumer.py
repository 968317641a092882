"""The consumer on asyncio: keeps a buffer full per assigned partition, and polls from it."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_COMMITTED, READ_UNCOMMITTED
from suiro.aio.fetch_line import FetchLine
from suiro.aio.offsets import Bound, find_offset
from suiro.aio.tasks import TaskScope
from suiro.connection import Connection
from suiro.fetch_buffer import FetchBuffer
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest, NoPosition, OffsetOutOfRange
from suiro.model.ids import TopicPartition
from suiro.retry import Backoff
from suiro.settings import ConsumerSettings, build_settings, parse_bootstrap
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.wire_errors import error_from_proto

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from suiro.model.ids import Address
    from suiro.model.record import Record
    from suiro.transport.framing import Framed


@dataclass(slots=True)
class _Assigned:
    """One assigned partition: its buffer, and the slot under which it is being fetched."""

    partition: TopicPartition
    buffer: FetchBuffer | None = None
    slot: int = -1
    line: FetchLine | None = None
    high_watermark: int = -1

    @property
    def is_fetching(self) -> bool:
        return self.line is not None


class Consumer:
    """Reads records of partitions that it is told to read.

    ```python
    async with Consumer("suiro://localhost", auto_offset_reset="earliest") as consumer:
        await consumer.assign([TopicPartition("clicks", 0)])
        for record in await consumer.poll():
            print(record.offset, record.value)
    ```
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ConsumerSettings | None = None,
        **given: Any,
    ) -> None:
        self.settings = settings or build_settings(ConsumerSettings, given)
        self.connection = Connection(
            parse_bootstrap(bootstrap), GrpcTransport(), client_id=self.settings.client_id
        )
        self._isolation = (
            READ_COMMITTED if self.settings.isolation == "read_committed" else READ_UNCOMMITTED
        )
        self._assigned: dict[TopicPartition, _Assigned] = {}
        self._slots: dict[int, _Assigned] = {}
        self._slot_numbers = itertools.count(1)
        self._lines: dict[Address, FetchLine] = {}
        self._failure: SuiroError | None = None
        self._scope = TaskScope("consumer")

    async def __aenter__(self) -> Self:
        self._arrived = asyncio.Event()
        await self.connection.refresh([], timeout_s=self._timeout_s)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop fetching and let go of everything."""
        await self._scope.close()
        await self.connection.transport.close()

    # -- what to read -----------------------------------------------------------------------------

    async def assign(
        self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int]
    ) -> None:
        """Read these partitions, and no others; a mapping says at which offsets to begin.

        Without an offset, `auto_offset_reset` decides.
        """
        for assigned in list(self._assigned.values()):
            self._forget(assigned)
        self._assigned.clear()
        await self.connection.refresh({p.topic for p in partitions}, timeout_s=self._timeout_s)
        for partition in partitions:
            self._check_exists(partition)
            self._assigned[partition] = _Assigned(partition)
        if isinstance(partitions, dict):
            for partition, offset in partitions.items():
                self.seek(partition, offset)
        await asyncio.gather(*(self._locate(a) for a in self._assigned.values()))

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Every partition of a topic."""
        info = await self.connection.topic(topic, timeout_s=self._timeout_s)
        return [TopicPartition(topic, number) for number in range(len(info.partitions))]

    def assignment(self) -> list[TopicPartition]:
        return list(self._assigned)

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that a poll will return."""
        buffer = self._known(partition).buffer
        if buffer is None:
            raise NoPosition(f"{partition} has no position yet")
        return buffer.position

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at this offset."""
        if offset < 0:
            raise InvalidRequest(f"offset {offset} is negative")
        assigned = self._known(partition)
        self._forget(assigned)
        assigned.buffer = FetchBuffer(partition, offset)
        self._start_fetching(assigned)

    async def seek_to(self, partition: TopicPartition, bound: Bound | int) -> int:
        """Go on at the earliest or latest offset, or at a timestamp (ms); returns the offset."""
        offset = await self.offset_of(partition, bound)
        self.seek(partition, offset)
        return offset

    async def offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        """The earliest or latest offset, or the first one at or after a timestamp (ms)."""
        return await find_offset(
            self.connection, partition, bound, isolation=self._isolation, timeout_s=self._timeout_s
        )

    # -- reading ----------------------------------------------------------------------------------

    async def poll(self, timeout_s: float = 1.0, *, max_records: int | None = None) -> list[Record]:
        """Records as soon as there are any, at most `max_records`; none after the timeout."""
        wanted = max_records or self.settings.max_poll_records
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    self._arrived.clear()
                    self._raise_failure()
                    if records := self._take(wanted):
                        return records
                    await self._arrived.wait()
        except TimeoutError:
            return []

    async def __aiter__(self) -> AsyncIterator[Record]:
        while True:
            for record in await self.poll():
                yield record

    def _take(self, wanted: int) -> list[Record]:
        records: list[Record] = []
        for partition in list(self._assigned):
            assigned = self._assigned[partition]
            if not assigned.buffer or len(records) >= wanted:
                continue
            records += assigned.buffer.take(wanted - len(records))
            credit = assigned.buffer.take_credit()
            if credit and assigned.line is not None:
                assigned.line.grant(assigned.slot, credit)
            # Whoever was read goes to the end of the queue, so that nobody starves.
            self._assigned[partition] = self._assigned.pop(partition)
        return records

    # -- fetching ---------------------------------------------------------------------------------

    async def _locate(self, assigned: _Assigned) -> None:
        """Find out where to begin, if nobody said."""
        if assigned.buffer is not None:
            return
        reset = self.settings.auto_offset_reset
        if reset == "none":
            raise NoPosition(f"{assigned.partition} has no position, auto_offset_reset is 'none'")
        offset = await self.offset_of(assigned.partition, Bound(reset))
        if assigned.buffer is None:
            assigned.buffer = FetchBuffer(assigned.partition, offset)
            self._start_fetching(assigned)

    def _start_fetching(self, assigned: _Assigned) -> None:
        leader = self.connection.leader(assigned.partition)
        if leader is None:
            self._scope.start(self._find_leader(assigned), f"find leader of {assigned.partition}")
            return
        assert assigned.buffer is not None
        assigned.slot = next(self._slot_numbers)
        assigned.line = self._line(leader[1])
        self._slots[assigned.slot] = assigned
        assigned.line.start(
            pb.FetchStart(
                slot=assigned.slot,
                topic=assigned.partition.topic,
                partition=assigned.partition.partition,
                offset=assigned.buffer.fetch_end,
                last_epoch=assigned.buffer.last_epoch,
                credit=self.settings.fetch_credit,
            )
        )

    def _line(self, address: Address) -> FetchLine:
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = FetchLine(self, address, self._isolation)
            self._scope.start(line.run(), f"line to {address}")
        return line

    def on_reply(self, slot: int, reply: Framed[pb.FetchStreamReply]) -> None:
        """A line brought something; a slot that was given up is answered by silence."""
        assigned = self._slots.get(slot)
        if assigned is None:
            return
        result = reply.header.result
        if result.error.code:
            self._on_error(assigned, error_from_proto(result.error))
            return
        assert assigned.buffer is not None
        assigned.high_watermark = result.high_watermark
        assigned.buffer.add(reply.body, result.next_offset)
        self._arrived.set()

    def on_broken(self, line: FetchLine, error: SuiroError) -> None:
        """A line broke: its partitions are fetched again from where they are."""
        self._lines.pop(line.address, None)
        for assigned in [a for a in self._slots.values() if a.line is line]:
            self._on_error(assigned, error)

    def _on_error(self, assigned: _Assigned, error: SuiroError) -> None:
        self._forget(assigned)
        if isinstance(error, OffsetOutOfRange) and self.settings.auto_offset_reset != "none":
            self._scope.start(self._reset(assigned), f"reset {assigned.partition}")
        elif error.retriable:
            self._scope.start(self._find_leader(assigned), f"find leader of {assigned.partition}")
        else:
            self._failure = error
            self._arrived.set()

    async def _reset(self, assigned: _Assigned) -> None:
        """The position is no longer in the log: begin where `auto_offset_reset` says."""
        assigned.buffer = None
        try:
            await self._locate(assigned)
        except SuiroError as error:
            self._failure = error
            self._arrived.set()

    async def _find_leader(self, assigned: _Assigned) -> None:
        backoff = Backoff(self.connection.rng)
        while self._assigned.get(assigned.partition) is assigned and not assigned.is_fetching:
            topics = [assigned.partition.topic]
            try:
                await self.connection.refresh(topics, timeout_s=self._timeout_s)
            except SuiroError as error:
                if not error.retriable:
                    raise
            if self.connection.leader(assigned.partition) is not None:
                self._start_fetching(assigned)
                return
            await asyncio.sleep(backoff.next_s())

    def _forget(self, assigned: _Assigned) -> None:
        if assigned.line is not None:
            assigned.line.stop(assigned.slot)
            self._slots.pop(assigned.slot, None)
            assigned.line = None

    def _known(self, partition: TopicPartition) -> _Assigned:
        assigned = self._assigned.get(partition)
        if assigned is None:
            raise InvalidRequest(f"{partition} is not assigned to this consumer")
        return assigned

    def _check_exists(self, partition: TopicPartition) -> None:
        count = len(self.connection.topics[partition.topic].partitions)
        if not 0 <= partition.partition < count:
            raise InvalidRequest(f"{partition.topic} has {count} partitions, no {partition}")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    @property
    def _timeout_s(self) -> float:
        return self.settings.request_timeout_ms / 1000
