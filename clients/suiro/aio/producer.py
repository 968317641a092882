"""The producer on asyncio: stages records, forms batches, hands them to the brokers' lines.

`send` only stages; one task drains the stage, finds each record's partition and adds it to the
accumulator; the dispatcher brings it to the brokers and says how each batch ended.
"""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from suiro.accumulator import Accumulator, Batch, Row
from suiro.aio.dispatch import Dispatcher
from suiro.aio.tasks import TaskScope
from suiro.connection import Connection
from suiro.handle import RecordMetadata, Sent
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    BatchTooLarge,
    BufferFull,
    ClientClosed,
    InvalidRequest,
    TimedOut,
)
from suiro.model.ids import TopicPartition
from suiro.partitioner import StickyChoice, partition_of_key
from suiro.settings import ProducerSettings, build_settings, parse_bootstrap
from suiro.transport.grpc_transport import GrpcTransport
from suiro.wall_clock import wall_clock_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from suiro.connection import TopicInfo

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
        self._lock = threading.Lock()
        self._stage: list[_Staged] = []
        self._buffered = 0
        self._unsettled = 0
        self._closed = False
        self._scope = TaskScope("producer")
        self._dispatcher = Dispatcher(
            self.settings, self.connection, self.accumulator, self._scope, self._settle
        )

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._all_settled = asyncio.Event()
        self._released = asyncio.Event()
        await self.connection.refresh([], timeout_s=self._request_timeout_s)
        self._scope.start(self._drain_forever(), "drain")
        self._dispatcher.start()
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
            self._dispatcher.close()
            await self.connection.transport.close()

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
            self._dispatcher.wake_lines()

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
        sticky.batch_left(sticky.current(count), count)

    def _refuse(self, staged: list[_Staged], error: SuiroError) -> None:
        for item in staged:
            item.row.handle.settle(error)
        self._account(len(staged), sum(item.size for item in staged))

    def _settle(self, batch: Batch, outcome: int | SuiroError) -> None:
        """A batch is stored from this offset on (-1: nobody knows), or it is not."""
        topic, partition = batch.partition.topic, batch.partition.partition
        for index, handle in enumerate(batch.handles):
            if isinstance(outcome, SuiroError):
                handle.settle(outcome)
            else:
                offset = outcome + index if outcome >= 0 else -1
                handle.settle(RecordMetadata(topic, partition, offset, batch.timestamps_ms[index]))
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
