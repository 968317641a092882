"""The producer on asyncio: what `send` stages becomes batches and goes to the brokers.

`Stager` takes records from any thread; here the loop takes whole runs of them, finds their
partitions and adds them to the accumulator; the dispatcher brings batches to the brokers and says
how each of them ended.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from suiro.accumulator import Accumulator
from suiro.aio.dispatch import Dispatcher
from suiro.aio.tasks import TaskScope
from suiro.aio.transactions import Transactions
from suiro.client_env import real_env
from suiro.connection import Connection
from suiro.handle import SentMany
from suiro.model.error_base import SuiroError
from suiro.model.errors import BufferFull, ClientClosed, InvalidRequest, TimedOut
from suiro.model.ids import TopicPartition
from suiro.model.limits import BATCH_RECORDS_MAX
from suiro.partitioner import make_partitioner
from suiro.placing import place
from suiro.settings import ProducerSettings, build_settings, take_bootstrap
from suiro.stager import Stager, no_partition, too_large

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from suiro.accumulator import Batch
    from suiro.aio.consumer import Consumer
    from suiro.aio.group_offsets import OffsetAndMetadata
    from suiro.aio.transactions import Part
    from suiro.client_env import ClientEnv
    from suiro.connection import TopicInfo
    from suiro.handle import Sent
    from suiro.model.ids import ProducerIdentity
    from suiro.partitioner import Partitioner
    from suiro.placing import StagedRun

BATCH_RECORDS: Final = min(100_000, BATCH_RECORDS_MAX)
RUNS_AT_ONCE: Final = 8
"""Runs that are placed before the loop may do something else: a few milliseconds of work."""


class Producer:
    """Sends records.

    >>> async with aio.Producer() as producer:
    ...     stored = await producer.send("clicks", b"hello", key=b"user-1")
    >>> stored.offset
    0

    `send` never blocks and may be called from any thread. A handle that is not awaited is delivered
    all the same; `flush`, or leaving the `async with`, waits for everything.
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ProducerSettings | None = None,
        env: ClientEnv | None = None,
        **given: Any,
    ) -> None:
        addresses = take_bootstrap(bootstrap, given)
        self.settings = settings or build_settings(ProducerSettings, given)
        env = env or real_env()
        self.connection = Connection(
            addresses,
            env.transport,
            client_id=self.settings.client_id,
            create_missing=True,
            rng=env.rng,
        )
        self.stager = Stager(self.settings, self._on_arrival, env.now_ms)
        self._rng = env.rng
        self._accumulator = Accumulator(
            batch_bytes=self.settings.batch_size,
            batch_records=BATCH_RECORDS,
            linger_ms=self.settings.linger_ms,
            delivery_timeout_ms=self.settings.delivery_timeout_ms,
        )
        self._partitioners: dict[str, Partitioner] = {}
        self._learning: set[str] = set()
        self._unsettled = 0
        self._scope = TaskScope("producer")
        self._dispatcher = Dispatcher(
            self.settings, self.connection, self._accumulator, self._scope, self._settle
        )
        self._part: Part | None = None
        # The stager's own method: one call less for every record.
        self.send = self.stager.send  # type: ignore[method-assign]
        if self.settings.transactional_id:
            self.send = self._send_in_transaction  # type: ignore[method-assign]

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.stager.start(loop)
        try:
            await self.connection.refresh([], timeout_s=self._request_timeout_s)
            self._part = await self._take_part()
        except BaseException:
            await self.connection.transport.close()
            raise
        if self._part is not None:
            self._dispatcher.gate = self._part
            self._part.start()
        self._dispatcher.start()
        return self

    async def _take_part(self) -> Part | None:
        """In the transactions of an id of its own, or in none."""
        if not self.settings.transactional_id:
            return None
        return Transactions(self.connection, self.settings, self._scope, self)

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

        >>> stored = await producer.send("orders", b"two apples", key=b"customer-1")
        >>> stored.topic
        'orders'
        """
        raise AssertionError("replaced in __init__")

    def send_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[Sequence[tuple[str, bytes | None]]] | None = None,
        partition: int | None = None,
        timestamps_ms: Sequence[int] | int | None = None,
    ) -> SentMany:
        """Stage many records at once, in their order.

        >>> stored = await producer.send_many("orders", [b"one", b"two"], keys=[b"a", b"b"])
        >>> len(stored)
        2
        """
        from suiro.bulk import rows_of_lists

        rows = rows_of_lists(
            self.stager.outcomes(topic),
            values,
            keys=keys,
            headers=headers,
            partition=partition,
            timestamps_ms=self.stager.now_ms() if timestamps_ms is None else timestamps_ms,
        )
        return self._put_all(topic, rows)

    def send_arrow(self, topic: str, data: Any) -> SentMany:
        """Stage the rows of an Arrow table or record batch, a pandas or polars frame, or anything
        with the Arrow stream interface.

        The columns are `value` and, where wanted, `key`, `timestamp`, `partition` and `headers`.
        Raises InvalidRequest for other columns or types, before anything is sent.

        >>> import pyarrow as pa
        >>> table = pa.table({"key": [b"a", b"b"], "value": [b"one", b"two"]})
        >>> len(await producer.send_arrow("orders", table))
        2
        """
        from suiro.bulk import run_of_arrow

        return self._put_all(
            topic, run_of_arrow(self.stager.outcomes(topic), data, self.stager.now_ms())
        )

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything sent so far is stored or has failed.

        >>> await producer.flush()
        """
        try:
            async with asyncio.timeout(timeout_s):
                while self._unsettled or self.stager.has_any():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise TimedOut(f"{self._unsettled} records are not delivered yet") from None

    async def room(self) -> None:
        """Inside the SDK: wait until something of the buffer is free. Raises BufferFull after
        `max_block_ms`.
        """
        try:
            async with asyncio.timeout(self.settings.max_block_ms / 1000):
                while self.stager.buffered > self.settings.buffer_memory // 2:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise BufferFull(f"{self.stager.buffered} bytes are waiting to be sent") from None

    async def close(self, timeout_s: float | None = None) -> None:
        """Deliver what is waiting, then let go of everything.

        >>> handle = producer.send("orders", b"value")
        >>> await producer.close()
        >>> handle.succeeded()
        True
        """
        if self.stager.is_closed:
            return
        try:
            if self._part is not None and self._part.is_open:
                await self._part.abort()
            await self.flush(timeout_s)
        finally:
            self.stager.close()
            await self._scope.close()
            self._dispatcher.close()
            self._fail_staged()
            await self.connection.transport.close()

    # -- transactions -----------------------------------------------------------------------------

    @property
    def transactions(self) -> Transactions:
        """Inside the SDK: the transactions of its id."""
        if not isinstance(self._part, Transactions):
            raise InvalidRequest("this producer has no transactional_id, or is not open")
        return self._part

    async def init_transactions(self) -> None:
        """Take the transactional id: an older producer of the name is fenced, what it left open is
        aborted. `transaction` does it by itself.

        >>> async with aio.Producer(transactional_id="billing") as producer:
        ...     await producer.init_transactions()
        """
        await self.transactions.init()

    async def begin_transaction(self) -> None:
        """From here on, what is sent is visible to all or to nobody.

        >>> async with aio.Producer(transactional_id="billing") as producer:
        ...     await producer.begin_transaction()
        ...     handle = producer.send("orders", b"two apples")
        ...     await producer.commit_transaction()
        >>> handle.succeeded()
        True
        """
        await self.transactions.init()
        self.transactions.begin()

    async def commit_transaction(self) -> None:
        """Returns once the decision is stored. Raises TransactionAborted if a record could not be
        sent: then abort.

        >>> async with aio.Producer(transactional_id="billing") as producer:
        ...     await producer.begin_transaction()
        ...     handle = producer.send("orders", b"two apples")
        ...     await producer.commit_transaction()
        """
        await self.flush()
        await self.transactions.commit()

    async def abort_transaction(self) -> None:
        """Nobody who reads committed records will ever see what was sent.

        >>> async with aio.Producer(transactional_id="billing") as producer:
        ...     await producer.begin_transaction()
        ...     handle = producer.send("orders", b"two apples")
        ...     await producer.abort_transaction()
        """
        await self.transactions.abort()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Commit at the end of the block, abort if it raises.

        >>> async with aio.Producer(transactional_id="billing") as producer:
        ...     async with producer.transaction():
        ...         order = producer.send("orders", b"apples", key=b"a")
        ...         payment = producer.send("payments", b"5", key=b"a")
        >>> order.succeeded(), payment.succeeded()
        (True, True)
        """
        await self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException:
            if self.transactions.is_open:
                await self.transactions.abort()
            raise

    async def send_offsets(
        self,
        consumer: Consumer,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
    ) -> None:
        """Commit where the consumer's group is, as part of the transaction: its position, or these
        offsets.

        >>> consumer.subscribe("fruit")
        >>> records = await consumer.poll(20)
        >>> async with aio.Producer(transactional_id="billing") as producer:
        ...     async with producer.transaction():
        ...         for record in records:
        ...             handle = producer.send("eaten", record.value)
        ...         await producer.send_offsets(consumer)
        """
        member, positions = consumer.group.membership(), consumer.group.positions()
        await self.transactions.send_offsets(member, positions if offsets is None else offsets)

    def _send_in_transaction(self, topic: str, value: bytes | None, **more: Any) -> Sent:
        self._check_part()
        return self.stager.send(topic, value, **more)

    def _check_part(self) -> None:
        if self._part is None:
            raise InvalidRequest("this producer is not open")
        self._part.check_open()

    def identify(self, identity: ProducerIdentity) -> None:
        """Inside the SDK: who writes from now on."""
        self._dispatcher.identify(identity)

    def abandon(self, error: SuiroError) -> None:
        """Inside the SDK: fail all that has been sent and not been answered."""
        for topic in self.stager.topics():
            self._refuse(topic, error)
        self._dispatcher.abandon(error)

    def wake_lines(self) -> None:
        """Inside the SDK: there may be something to send."""
        self._dispatcher.wake_lines()

    # -- from the stage to the accumulator --------------------------------------------------------

    def _put_all(self, topic: str, run: StagedRun) -> SentMany:
        self.stager.check_usable()
        if self.settings.transactional_id:
            self._check_part()
        count = len(run)
        parts = run.split(self.settings.batch_size) if count else ()
        for number, part in enumerate(parts):
            try:
                self.stager.put(topic, part)
            except BufferFull as error:
                if number == 0:
                    raise
                self.stager.refuse(parts[number:], error)
                break
        return SentMany(run.outcomes, count)

    def _on_arrival(self) -> None:
        for topic in self.stager.topics():
            info = self.connection.topics.get(topic)
            if info is not None:
                self._place(info, self.stager.take(topic, RUNS_AT_ONCE))
            elif topic not in self._learning:
                self._learning.add(topic)
                self._scope.start(self._learn(topic), f"learn of {topic}")
        self._dispatcher.wake_lines()

    async def _learn(self, topic: str) -> None:
        """Find out about a topic; what waits for one that is not there fails."""
        try:
            await self.connection.topic(topic, timeout_s=self._request_timeout_s)
        except SuiroError as error:
            self._refuse(topic, error)
        finally:
            self._learning.discard(topic)
        self._on_arrival()

    def _fail_staged(self) -> None:
        """What came while the producer was closing."""
        for topic in self.stager.topics():
            self._refuse(topic, ClientClosed("the producer has been closed"))

    def _refuse(self, topic: str, error: SuiroError) -> None:
        for run in self.stager.take(topic, -1):
            self._count(run)
            self._fail(run, error)

    def _place(self, topic: TopicInfo, runs: Iterable[StagedRun]) -> None:
        now_ms = asyncio.get_running_loop().time() * 1000
        partitioner = self._partitioner(topic.name)
        for run in runs:
            self._count(run)
            try:
                placed = list(place(run, partitioner, len(topic.partitions)))
            except SuiroError as error:
                self._fail(run, error)
                continue
            for partition, part in placed:
                if 0 <= partition < len(topic.partitions):
                    self._add(TopicPartition(topic.name, partition), part, now_ms)
                else:
                    self._fail(part, no_partition(topic, partition))

    def _add(self, partition: TopicPartition, part: StagedRun, now_ms: float) -> None:
        for piece in part.split(self.settings.batch_size):
            if piece.size > self.settings.batch_size:
                self._fail(piece, too_large(piece.size, self.settings.batch_size))
            else:
                self._accumulator.add(partition, piece, now_ms)

    def _partitioner(self, topic: str) -> Partitioner:
        found = self._partitioners.get(topic)
        if found is None:
            settings = self.settings
            found = make_partitioner(settings.partitioner, self._rng, settings.batch_size)
            self._partitioners[topic] = found
        return found

    # -- how it ended -----------------------------------------------------------------------------

    def _settle(self, batch: Batch, outcome: int | SuiroError) -> None:
        batch.settle(outcome)
        self._account(len(batch), batch.size)

    def _fail(self, run: StagedRun, error: SuiroError) -> None:
        run.settle(-1, -1, error)
        self._account(len(run), run.size)

    def _count(self, run: StagedRun) -> None:
        self._unsettled += len(run)

    def _account(self, records: int, size: int) -> None:
        self.stager.release(size)
        self._unsettled -= records
        self._changed.set()

    @property
    def _request_timeout_s(self) -> float:
        return self.settings.request_timeout_ms / 1000
