"""Writers and readers of the bank, with the SDK: on real time and on virtual time alike."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro.aio import Bound
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition
from suiro.verify.bank import transfer

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from suiro.aio import Consumer, Producer
    from suiro.verify.bank import Book, Ledger

ACCOUNTS = "accounts"
ABORTS = 0.1
"""The share of transfers that the writer itself takes back."""
PAUSE_S = 0.2
POLL_S = 0.1


class BankWriter:
    """Moves money until it is stopped; whatever becomes of a transfer is noted in the book."""

    def __init__(
        self,
        number: int,
        make_producer: Callable[[], Producer],
        book: Book,
        partitions: int,
        rng: Random,
    ) -> None:
        self.topic = ACCOUNTS
        self.pause_s = 0.0
        """It rests for up to so long after each transfer."""
        self.number = number
        self.lives = 0
        """How many producers it took: a new one for each that was of no use any more."""
        self.errors = 0
        self.commits: list[tuple[float, float]] = []
        """When each committed transfer was begun, and when that was heard."""
        self._make_producer = make_producer
        self._book = book
        self._partitions = partitions
        self._rng = rng
        self._made = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self.lives += 1
            try:
                async with self._make_producer() as producer:
                    while not stop.is_set():
                        await self._transfer(producer)
                        await asyncio.sleep(self._rng.uniform(0, self.pause_s))
            except SuiroError:
                self.errors += 1
                await asyncio.sleep(PAUSE_S)

    async def _transfer(self, producer: Producer) -> None:
        """Raises only if the producer cannot go on; the transfer is unknown then."""
        self._made += 1
        parts = transfer(self._rng, self.number, self._made, self._partitions)
        name = parts[0][1].transfer
        self._book.unknown.add(name)
        now_s = asyncio.get_running_loop().time
        begun_s = now_s()
        try:
            await producer.begin_transaction()
            for account, part in parts:
                producer.send(self.topic, part.encode(), partition=account)
            if self._rng.random() < ABORTS:
                await producer.abort_transaction()
                self._note(name, self._book.aborted)
            else:
                await producer.commit_transaction()
                self._note(name, self._book.committed)
                self.commits.append((begun_s, now_s()))
        except SuiroError:
            self.errors += 1
            if not producer.transactions.is_open:
                raise
            await producer.abort_transaction()
            self._note(name, self._book.aborted)

    def _note(self, name: tuple[int, int], where: set[tuple[int, int]]) -> None:
        self._book.unknown.discard(name)
        where.add(name)


async def read_bank(
    consumer: Consumer,
    ledger: Ledger,
    partitions: int,
    stop: asyncio.Event,
    topic: str = ACCOUNTS,
) -> None:
    """Read everything from the beginning; after `stop`, up to the ends of the partitions, which
    have to be stable by then.
    """
    wheres = [TopicPartition(topic, number) for number in range(partitions)]
    await consumer.assign(wheres)
    now_s = asyncio.get_running_loop().time
    while not stop.is_set():
        await _see(consumer, ledger, now_s())
    while not await _at_end(consumer, wheres):
        await _see(consumer, ledger, now_s())
    ledger.close()


async def _see(consumer: Consumer, ledger: Ledger, now_s: float) -> None:
    for record in await consumer.poll(PAUSE_S):
        assert record.value is not None
        ledger.see(record.partition, record.offset, record.value, now_s)


async def _at_end(consumer: Consumer, wheres: list[TopicPartition]) -> bool:
    for where in wheres:
        if consumer.position(where) < await consumer.offset_of(where, Bound.LATEST):
            return False
    return True


async def until_stable(
    committed: Consumer,
    uncommitted: Consumer,
    partitions: int,
    give_up_s: float = 60.0,
    topic: str = ACCOUNTS,
) -> float:
    """Wait until no transaction is open in any partition, which is when both kinds of readers may
    read equally far; how many seconds that took, or `give_up_s` if it did not come to pass.
    """
    now_s = asyncio.get_running_loop().time
    began_s = now_s()
    for number in range(partitions):
        where = TopicPartition(topic, number)
        while True:
            stable = await committed.offset_of(where, Bound.LATEST)
            if stable == await uncommitted.offset_of(where, Bound.LATEST):
                break
            if now_s() - began_s >= give_up_s:
                return give_up_s
            await asyncio.sleep(POLL_S)
    return now_s() - began_s
