"""The producer for ordinary threads: the asyncio producer on a loop of its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from suiro import aio
from suiro.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suiro.aio.group_offsets import OffsetAndMetadata
    from suiro.consumer import Consumer
    from suiro.handle import Sent, SentMany
    from suiro.model.ids import TopicPartition
    from suiro.settings import ProducerSettings


class Producer:
    """Sends records.

    >>> with suiro.Producer() as producer:
    ...     handle = producer.send("clicks", b"hello", key=b"user-1")
    >>> handle.result().offset
    0

    Leaving the `with` delivers everything. Safe to share between threads.
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ProducerSettings | None = None,
        **given: Any,
    ) -> None:
        self._open(aio.Producer(bootstrap, settings=settings, **given))

    def _open(self, producer: aio.Producer) -> None:
        self._producer = producer
        self._loop = LoopThread()
        try:
            self._loop.run(self._producer.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        stager = self._producer.stager
        stager.wait_for_room = lambda: self._loop.run(self._producer.room())
        # The producer's own function, which is the stager's: one call less for every record.
        self.send = self._producer.send  # type: ignore[method-assign]

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
        """Take one record; the handle tells what becomes of it.

        Blocks while the buffer is full, for at most `max_block_ms`, then raises BufferFull.

        >>> handle = producer.send("orders", b"two apples", key=b"customer-1")
        >>> handle.result(timeout_s=10).topic
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
        """Take many records at once, in their order.

        >>> sent = producer.send_many("orders", [b"one", b"two"], keys=[b"a", b"b"])
        >>> len(sent.result(10))
        2
        """
        return self._producer.send_many(
            topic,
            values,
            keys=keys,
            headers=headers,
            partition=partition,
            timestamps_ms=timestamps_ms,
        )

    def send_arrow(self, topic: str, data: Any) -> SentMany:
        """Take the rows of an Arrow table or record batch, a pandas or polars frame, or anything
        with the Arrow stream interface.

        The columns are `value` and, where wanted, `key`, `timestamp`, `partition` and `headers`.
        Raises InvalidRequest for other columns or types, before anything is sent.

        >>> import pyarrow as pa
        >>> table = pa.table({"key": [b"a", b"b"], "value": [b"one", b"two"]})
        >>> len(producer.send_arrow("orders", table).result(10))
        2
        """
        return self._producer.send_arrow(topic, data)

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything sent so far is stored or has failed.

        >>> handle = producer.send("orders", b"value")
        >>> producer.flush()
        >>> handle.done()
        True
        """
        self._loop.run(self._producer.flush(timeout_s))

    @property
    def asynchronous(self) -> aio.Producer:
        """Inside the SDK: the producer behind this one, in the loop of the sync clients."""
        return self._producer

    # -- transactions -----------------------------------------------------------------------------

    def init_transactions(self) -> None:
        """Take the transactional id: an older producer of the name is fenced, what it left open is
        aborted. `transaction` does it by itself.

        >>> with suiro.Producer(transactional_id="billing") as producer:
        ...     producer.init_transactions()
        """
        self._loop.run(self._producer.init_transactions())

    def begin_transaction(self) -> None:
        """From here on, what is sent is visible to all or to nobody.

        >>> with suiro.Producer(transactional_id="billing") as producer:
        ...     producer.begin_transaction()
        ...     handle = producer.send("orders", b"two apples")
        ...     producer.commit_transaction()
        >>> handle.succeeded()
        True
        """
        self._loop.run(self._producer.begin_transaction())

    def commit_transaction(self) -> None:
        """Returns once the decision is stored. Raises TransactionAborted if a record could not be
        sent: then abort.

        >>> with suiro.Producer(transactional_id="billing") as producer:
        ...     producer.begin_transaction()
        ...     handle = producer.send("orders", b"two apples")
        ...     producer.commit_transaction()
        """
        self._loop.run(self._producer.commit_transaction())

    def abort_transaction(self) -> None:
        """Nobody who reads committed records will ever see what was sent.

        >>> with suiro.Producer(transactional_id="billing") as producer:
        ...     producer.begin_transaction()
        ...     handle = producer.send("orders", b"two apples")
        ...     producer.abort_transaction()
        """
        self._loop.run(self._producer.abort_transaction())

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commit at the end of the block, abort if it raises.

        >>> with suiro.Producer(transactional_id="billing") as producer:
        ...     with producer.transaction():
        ...         handle = producer.send("orders", b"two apples")
        >>> handle.succeeded()
        True
        """
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            if self._producer.transactions.is_open:
                self.abort_transaction()
            raise

    def send_offsets(
        self,
        consumer: Consumer,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
    ) -> None:
        """Commit where the consumer's group is, as part of the transaction: its position, or these
        offsets.

        >>> consumer.subscribe("fruit")
        >>> records = consumer.poll(20)
        >>> with suiro.Producer(transactional_id="billing") as producer:
        ...     with producer.transaction():
        ...         for record in records:
        ...             handle = producer.send("eaten", record.value)
        ...         producer.send_offsets(consumer)
        """
        self._loop.run(self._producer.send_offsets(consumer.asynchronous, offsets))

    def close(self, timeout_s: float | None = None) -> None:
        """Deliver what is waiting, then let go of everything.

        >>> handle = producer.send("orders", b"value")
        >>> producer.close()
        >>> handle.succeeded()
        True
        """
        if not self._loop.is_open:
            return
        try:
            self._loop.run(self._producer.close(timeout_s))
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
