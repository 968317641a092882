"""Bank: transfers as transactions over partitions, readers of committed records.

I1, T1, T2, T6, T10 by `suiro.verify.bank`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro.verify.bank import Book, Ledger
from suiro.verify.bank_clients import ACCOUNTS, BankWriter, read_bank, until_stable
from suiro.verify.clients import make_topic

if TYPE_CHECKING:
    from suiro.aio import Producer
    from suiro.verify.clients import Clients

TIMEOUT_MS = 10_000
STABLE_S_MAX = TIMEOUT_MS / 1000 + 10


class Bank:
    """Some writers, some readers."""

    name = "bank"

    def __init__(
        self,
        clients: Clients,
        partitions: int = 3,
        writers: int = 2,
        readers: int = 1,
        pause_s: float = 0.5,
        topic: str = ACCOUNTS,
    ) -> None:
        self.clients = clients
        self.topic = topic
        self.book = Book()
        self.ledgers = [Ledger() for _ in range(readers)]
        self.stable_s = 0.0
        self._partitions = partitions
        self._pause_s = pause_s
        self.writers = [self._writer(number) for number in range(writers)]
        self._reading: list[asyncio.Task[None]] = []
        self._is_stable = asyncio.Event()

    @property
    def done(self) -> int:
        return len(self.book.committed)

    async def prepare(self) -> None:
        await make_topic(self.clients, self.topic, self._partitions)

    async def run(self, stop: asyncio.Event) -> None:
        """Whoever reads goes on until `finish`."""
        self._reading = [
            self.clients.spawn(f"bank-reader-{n}", self._read(n)) for n in range(len(self.ledgers))
        ]
        writers = [
            self.clients.spawn(f"bank-{writer.number}", writer.run(stop)) for writer in self.writers
        ]
        await asyncio.gather(*writers)

    async def finish(self) -> list[str]:
        async with (
            self.clients.consumer("bank-committed") as committed,
            self.clients.consumer("bank-uncommitted", isolation="read_uncommitted") as uncommitted,
        ):
            self.stable_s = await until_stable(
                committed, uncommitted, self._partitions, topic=self.topic
            )
        self._is_stable.set()
        await asyncio.gather(*self._reading)
        found = self.book.check(self.ledgers)
        if self.stable_s > STABLE_S_MAX:
            found.append(f"T6 a transaction was open for {self.stable_s:.1f} s after all healed")
        return found

    def _writer(self, number: int) -> BankWriter:
        def make_producer() -> Producer:
            name = f"{self.topic}-{number}"
            return self.clients.producer(
                name, transactional_id=name, transaction_timeout_ms=TIMEOUT_MS
            )

        writer = BankWriter(number, make_producer, self.book, self._partitions, self.clients.rng)
        writer.pause_s = self._pause_s
        writer.topic = self.topic
        return writer

    async def _read(self, number: int) -> None:
        async with self.clients.consumer(f"bank-reader-{number}") as consumer:
            await read_bank(
                consumer, self.ledgers[number], self._partitions, self._is_stable, self.topic
            )
