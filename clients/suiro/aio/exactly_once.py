"""Consume, transform, produce: what was read and what was made of it, in one transaction each."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Final

from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from suiro.aio.consumer import Consumer
    from suiro.aio.producer import Producer
    from suiro.model.record import Record

    Work = Callable[[Sequence[Record]], Awaitable[None] | None]

LOST_MAX: Final = 10


class Progress:
    """What was read and is not committed, and the way back to it."""

    def __init__(self, consumer: Consumer, producer: Producer) -> None:
        self._consumer = consumer
        self._producer = producer
        self._read_from: dict[TopicPartition, int] = {}
        self._lost = 0

    def on_read(self, records: Sequence[Record]) -> None:
        for record in records:
            where = TopicPartition(record.topic, record.partition)
            self._read_from.setdefault(where, record.offset)

    def on_committed(self) -> None:
        self._read_from.clear()
        self._lost = 0

    def may_go_on(self) -> bool:
        """After an error of the cluster: whether it is worth another try."""
        self._lost += 1
        return self._lost < LOST_MAX and self._producer.transactions.is_usable

    async def go_back(self) -> None:
        """After a failure: end what was begun, and return to where the group is."""
        if not self._read_from:
            return
        await self._producer.transactions.settle()
        assigned = self._consumer.assignment()
        found = await self._consumer.committed(assigned) if assigned else {}
        for partition, first in self._read_from.items():
            if partition in found:
                at = found[partition]
                self._consumer.fetcher.seek(partition, at.offset, at.leader_epoch, is_reset=False)
            elif partition in assigned:
                self._consumer.fetcher.seek(partition, first, is_reset=False)
        self._read_from.clear()


class ExactlyOnce:
    """Reads with a consumer of a group, writes with a transactional producer.

    >>> def eat(records):
    ...     for record in records:
    ...         producer.send("eaten", record.value, key=record.key)
    >>> consumer.subscribe("fruit")
    >>> async with aio.Producer(transactional_id="eating") as producer:
    ...     await aio.ExactlyOnce(consumer, producer, eat).step(20)
    2

    `work` only sends; it does not flush or commit. The consumer does not commit by itself
    (`enable_auto_commit=False`). After a failure of any kind the next step reads again what was not
    committed, so `work` may see a record more than once, and others see its results once.
    """

    def __init__(self, consumer: Consumer, producer: Producer, work: Work) -> None:
        self._consumer = consumer
        self._producer = producer
        self._work = work
        self._progress = Progress(consumer, producer)

    async def step(self, timeout_s: float = 1.0) -> int:
        """One transaction, or none if nothing comes; how many records were read and committed.

        A transaction that the cluster lost is 0, and is tried again by the next step; after
        `LOST_MAX` in a row the reason is raised. So is whatever `work` raises, and ProducerFenced
        when another instance has taken over.

        >>> consumer.subscribe("fruit")
        >>> async with aio.Producer(transactional_id="eating") as producer:
        ...     await aio.ExactlyOnce(consumer, producer, lambda records: None).step(20)
        2
        """
        try:
            await self._progress.go_back()
            records = await self._consumer.poll(timeout_s)
            if records:
                await self._transact(records)
        except SuiroError:
            if not self._progress.may_go_on():
                raise
            return 0
        self._progress.on_committed()
        return len(records)

    async def _transact(self, records: Sequence[Record]) -> None:
        self._progress.on_read(records)
        async with self._producer.transaction():
            done = self._work(records)
            if isawaitable(done):
                await done
            await self._producer.send_offsets(self._consumer)
