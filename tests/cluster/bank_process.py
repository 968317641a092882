"""Some of the bank's writers or readers, as a process of their own.

    python -m tests.cluster.bank_process write|read BOOTSTRAP PARTITIONS FIRST COUNT

Works until its standard input ends; then it prints what it knows as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suiro.aio import Consumer, Producer
from suiro.loop_thread import new_loop
from suiro.verify.bank import Book, Ledger
from suiro.verify.bank_clients import BankWriter, read_bank

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class Job:
    """What this process was asked to do."""

    bootstrap: str
    partitions: int
    first: int
    count: int

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + self.count)


async def write(job: Job, stop: asyncio.Event) -> dict[str, Any]:
    book = Book()

    def writer(number: int) -> BankWriter:
        def make_producer() -> Producer:
            return Producer(
                job.bootstrap,
                client_id=f"bank-{number}",
                transactional_id=f"bank-{number}",
                transaction_timeout_ms=TIMEOUT_MS,
            )

        return BankWriter(number, make_producer, book, job.partitions, random.Random(number))

    writers = [writer(number) for number in job.numbers]
    await asyncio.gather(*(each.run(stop) for each in writers))
    return {
        "committed": sorted(book.committed),
        "aborted": sorted(book.aborted),
        "unknown": sorted(book.unknown),
        "lives": sum(each.lives for each in writers),
        "errors": sum(each.errors for each in writers),
    }


async def read(job: Job, stop: asyncio.Event) -> dict[str, Any]:
    ledgers = [Ledger() for _ in job.numbers]

    async def reader(number: int, ledger: Ledger) -> None:
        consumer = Consumer(
            job.bootstrap, client_id=f"reader-{number}", auto_offset_reset="earliest"
        )
        async with consumer:
            await read_bank(consumer, ledger, job.partitions, stop)

    await asyncio.gather(*map(reader, job.numbers, ledgers))
    return {
        "ledgers": [
            {
                "violations": ledger.violations,
                "whole": sorted(ledger.whole),
                "half_s_max": ledger.half_s_max,
            }
            for ledger in ledgers
        ]
    }


WORK: dict[str, Callable[[Job, asyncio.Event], Awaitable[dict[str, Any]]]] = {
    "write": write,
    "read": read,
}


async def main() -> None:
    kind, bootstrap, *numbers = sys.argv[1:]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait_for_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(stop.set)

    waiting = loop.run_in_executor(None, wait_for_end)
    result = await WORK[kind](Job(bootstrap, *map(int, numbers)), stop)
    await waiting
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())
