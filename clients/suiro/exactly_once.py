"""Consume, transform, produce in transactions, for ordinary threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.aio.exactly_once import Progress
from suiro.loop_thread import LoopThread
from suiro.model.error_base import SuiroError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from suiro.consumer import Consumer
    from suiro.model.record import Record
    from suiro.producer import Producer


class ExactlyOnce:
    """Reads with a consumer of a group, writes with a transactional producer.

    >>> producer = suiro.Producer(transactional_id="eating")
    >>> def eat(records):
    ...     for record in records:
    ...         producer.send("eaten", record.value, key=record.key)
    >>> consumer.subscribe("fruit")
    >>> with suiro.ExactlyOnce(consumer, producer, eat) as eating:
    ...     eating.step(20)
    2
    >>> producer.close()

    `work(records)` only sends, with the producer; it does not flush or commit. The consumer does
    not commit by itself (`enable_auto_commit=False`). After a failure of any kind the next step
    reads again what was not committed: `work` may see a record more than once, and others see its
    results once.
    """

    def __init__(
        self, consumer: Consumer, producer: Producer, work: Callable[[Sequence[Record]], None]
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._work = work
        self._progress = Progress(consumer.asynchronous, producer.asynchronous)
        self._loop = LoopThread()

    def step(self, timeout_s: float = 1.0) -> int:
        """One transaction, or none if nothing comes; how many records were read and committed.

        A transaction that the cluster lost is 0, and is tried again by the next step; after ten in
        a row the reason is raised. So is whatever `work` raises, and ProducerFenced when another
        instance has taken over.

        >>> consumer.subscribe("fruit")
        >>> with suiro.Producer(transactional_id="eating") as producer:
        ...     with suiro.ExactlyOnce(consumer, producer, lambda records: None) as eating:
        ...         eating.step(20)
        2
        """
        try:
            self._loop.run(self._progress.go_back())
            records = self._consumer.poll(timeout_s)
            if records:
                self._progress.on_read(records)
                with self._producer.transaction():
                    self._work(records)
                    self._producer.send_offsets(self._consumer)
        except SuiroError:
            if not self._progress.may_go_on():
                raise
            return 0
        self._progress.on_committed()
        return len(records)

    def close(self) -> None:
        """Let go; consumer and producer are closed by whoever made them.

        >>> with suiro.Producer(transactional_id="eating") as producer:
        ...     suiro.ExactlyOnce(consumer, producer, lambda records: None).close()
        """
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
