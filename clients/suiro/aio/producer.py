"""The producer on asyncio: stages records, forms batches, hands them to the brokers' lines.

`send` only stages; one task drains the stage, finds each record's partition and adds it to the
accumulator; one `BrokerLine` per broker takes what is due to the partitions it leads, and says how
each batch ended.
"""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from suiro.accumulator import Accumulator, Batch, Row
from suiro.aio.broker_line import BrokerLine
from suiro.aio.tasks import TaskScope
from suiro.connection import Connection
from suiro.handle import RecordMetadata, Sent
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    BatchTooLarge,
    BufferFull,
    ClientClosed,
    DeliveryTimedOut,
    InvalidRequest,
    TimedOut,
)
from suiro.model.ids import NodeId, TopicPartition
from suiro.partitioner import StickyChoice, partition_of_key
from suiro.retry import Backoff
from suiro.settings import ProducerSettings, build_settings, parse_bootstrap
from suiro.transport.grpc_transport import GrpcTransport
from suiro.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.connection import TopicInfo
    from suiro.model.ids import Address

BATCH_RECORDS = 100_000


class _Staged(NamedTuple):
    topic: str
    partition: int | None
    row: Row
    size: int


class Producer:
    """Sends records.

    ```python
    async with Producer("suiro://localhost") as producer:
        stored = await producer.send("clicks", b"hello", key=b"user-1")
        print(stored.offset)
    ```

    `send` never blocks and may be called from any thread. A handle that is not awaited is delivered
    all the same; `flush`, or leaving the `async with`, waits for everything.
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ProducerSettings | None = None,
        **given: Any,
    ) -> None:
        self.settings = settings or build_settings(ProducerSettings, given)
        self.connection = Connection(
            parse_bootstrap(bootstrap),
            GrpcTransport(),
            client_id=self.settings.client_id,
            create_missing=True,
        )
        self.accumulator = Accumulator(
            batch_bytes=self.settings.batch_size,
            batch_records=BATCH_RECORDS,
            linger_ms=self.settings.linger_ms,
            delivery_timeout_ms=self.settings.delivery_timeout_ms,
        )
        self._rng = random.Random()
        self._sticky: dict[str, StickyChoice] = {}
        self._lines: dict[NodeId, BrokerLine] = {}
        self._lock = threading.Lock()
        self._stage: list[_Staged] = []
        self._buffered = 0
        self._unsettled = 0
        self._closed = False
        self._scope = TaskScope("producer")

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._all_settled = asyncio.Event()
        self._released = asyncio.Event()
        await self.connection.refresh([], timeout_s=self._request_timeout_s)
        self._scope.start(self._drain_forever(), "drain")
        self._scope.start(self._expire_forever(), "expire")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- for the user -----------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Sent:
        """Stage one record; the handle tells what becomes of it.

        Raises BufferFull when `buffer_memory` bytes are waiting already: nothing was staged.
        """
        handle = Sent(self._loop)
        stamp = wall_clock_ms() if timestamp_ms is None else timestamp_ms
        row = Row(key, value, stamp, headers, handle)
        staged = _Staged(topic, partition, row, self._checked_size(row))
        with self._lock:
            if self._closed:
                raise ClientClosed("the producer has been closed")
            if self._buffered + staged.size > self.settings.buffer_memory:
                raise BufferFull(f"{self._buffered} bytes are waiting to be sent")
            self._buffered += staged.size
            self._unsettled += 1
            self._stage.append(staged)
            is_first = len(self._stage) == 1
        if is_first:
            self._loop.call_soon_threadsafe(self._arrived.set)
        return handle

    async def room(self) -> None:
        """Wait until something of the buffer is free. Raises BufferFull after `max_block_ms`."""
        try:
            async with asyncio.timeout(self.settings.max_block_ms / 1000):
                while self._buffered > self.settings.buffer_memory // 2:
                    self._released.clear()
                    await self._released.wait()
        except TimeoutError:
            raise BufferFull(f"{self._buffered} bytes are waiting to be sent") from None

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything sent so far is stored or has failed."""
        try:
            async with asyncio.timeout(timeout_s):
                while self._unsettled:
                    self._all_settled.clear()
                    await self._all_settled.wait()
        except TimeoutError:
            raise TimedOut(f"{self._unsettled} records are not delivered yet") from None

    async def close(self, timeout_s: float | None = None) -> None:
        """Deliver what is waiting, then let go of everything."""
        if self._closed:
            return
        try:
            await self.flush(timeout_s)
        finally:
            with self._lock:
                self._closed = True
            await self._scope.close()
            self._fail(self.accumulator.take_all(), ClientClosed("the producer has been closed"))
            await self.connection.transport.close()

    # -- for the broker lines ---------------------------------------------------------------------

    def take_for(self, node: NodeId, *, idle: bool) -> tuple[list[Batch], float | None]:
        """Batches that should leave for this broker now; else how long until one should."""
        now_ms = self._now_ms()
        batches: list[Batch] = []
        wait_ms: float | None = None
        total = 0
        for partition in self.accumulator.partitions():
            leader = self.connection.leader(partition)
            if leader is None or leader[0] != node:
                continue
            due_ms = 0.0 if idle else self.accumulator.due_in_ms(partition, now_ms)
            if due_ms > 0:
                wait_ms = due_ms if wait_ms is None else min(wait_ms, due_ms)
            elif total < self.settings.batch_size:
                batch = self.accumulator.take(partition)
                assert batch is not None
                batches.append(batch)
                total += batch.size
                self._batch_leaves(partition)
        return batches, wait_ms

    def stored(self, batch: Batch, base_offset: int) -> None:
        """A batch has been acknowledged."""
        topic, partition = batch.partition.topic, batch.partition.partition
        for index, handle in enumerate(batch.handles):
            offset = base_offset + index if base_offset >= 0 else -1
            handle.settle(RecordMetadata(topic, partition, offset, batch.timestamps_ms[index]))
        self._release(batch)

    def try_again(self, batches: list[Batch], error: SuiroError) -> None:
        """Batches that may be sent again, in their order."""
        for batch in batches:
            batch.error = error
        self.accumulator.put_back(batches)
        self._scope.start(self._find_leaders({b.partition.topic for b in batches}), "find leaders")

    def failed(self, batch: Batch, error: SuiroError) -> None:
        """A batch that cannot be delivered."""
        self._fail([batch], error)

    # -- inside -----------------------------------------------------------------------------------

    def _checked_size(self, row: Row) -> int:
        if not isinstance(row.value, bytes | bytearray | memoryview | None):
            raise InvalidRequest(f"value is {type(row.value).__name__}; it must be bytes or None")
        if not isinstance(row.key, bytes | bytearray | memoryview | None):
            raise InvalidRequest(f"key is {type(row.key).__name__}; it must be bytes or None")
        size = row.size
        if size > self.settings.batch_size:
            raise BatchTooLarge(f"a record of {size} bytes, batch_size {self.settings.batch_size}")
        return size

    async def _drain_forever(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            with self._lock:
                staged, self._stage = self._stage, []
            for topic in dict.fromkeys(item.topic for item in staged):
                try:
                    info = await self.connection.topic(topic, timeout_s=self._request_timeout_s)
                except SuiroError as error:
                    self._refuse([item for item in staged if item.topic == topic], error)
                    continue
                self._place([item for item in staged if item.topic == topic], info)
            self._wake_lines()

    def _place(self, staged: Iterable[_Staged], topic: TopicInfo) -> None:
        now_ms = self._now_ms()
        count = len(topic.partitions)
        sticky = self._sticky.setdefault(topic.name, StickyChoice(self._rng))
        for item in staged:
            partition = item.partition
            if partition is None:
                key = item.row.key
                partition = sticky.current(count) if key is None else partition_of_key(key, count)
            elif not 0 <= partition < count:
                error = InvalidRequest(f"{topic.name} has no partition {partition}, only {count}")
                self._refuse([item], error)
                continue
            where = TopicPartition(topic.name, partition)
            self.accumulator.add(where, item.row, item.size, now_ms)

    def _batch_leaves(self, partition: TopicPartition) -> None:
        count = len(self.connection.topics[partition.topic].partitions)
        if partition.topic in self._sticky:
            self._sticky[partition.topic].batch_left(partition.partition, count)

    def _wake_lines(self) -> None:
        for partition in self.accumulator.partitions():
            leader = self.connection.leader(partition)
            if leader is not None:
                self._line(*leader).wake()

    def _line(self, node: NodeId, address: Address) -> BrokerLine:
        line = self._lines.get(node)
        if line is None or line.address != address:
            line = self._lines[node] = BrokerLine(self, node, address)
            self._scope.start(line.run(), f"line to broker {node}")
        return line

    async def _find_leaders(self, topics: set[str]) -> None:
        """Ask who leads now, until every waiting partition has a leader again."""
        backoff = Backoff(self._rng)
        while True:
            try:
                await self.connection.refresh(topics, timeout_s=self._request_timeout_s)
            except SuiroError as error:
                if not error.retriable:
                    raise
            waiting = [p for p in self.accumulator.partitions() if p.topic in topics]
            self._wake_lines()
            if all(self.connection.leader(partition) for partition in waiting):
                return
            await asyncio.sleep(backoff.next_s())

    async def _expire_forever(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            for batch in self.accumulator.take_expired(self._now_ms()):
                why = batch.error or TimedOut("no broker took it")
                error = DeliveryTimedOut(
                    f"{batch.partition}: {len(batch)} records were not delivered within "
                    f"{self.settings.delivery_timeout_ms:g} ms; last: {why}"
                )
                error.__cause__ = batch.error
                self._fail([batch], error)

    def _refuse(self, staged: list[_Staged], error: SuiroError) -> None:
        for item in staged:
            item.row.handle.settle(error)
        self._account(len(staged), sum(item.size for item in staged))

    def _fail(self, batches: list[Batch], error: SuiroError) -> None:
        for batch in batches:
            for handle in batch.handles:
                handle.settle(error)
            self._release(batch)

    def _release(self, batch: Batch) -> None:
        self._account(len(batch), batch.size)

    def _account(self, records: int, size: int) -> None:
        with self._lock:
            self._buffered -= size
            self._unsettled -= records
        self._released.set()
        if not self._unsettled:
            self._all_settled.set()

    def _now_ms(self) -> float:
        return self._loop.time() * 1000

    @property
    def _request_timeout_s(self) -> float:
        return self.settings.request_timeout_ms / 1000
