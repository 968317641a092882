"""Append: idempotent producers, readers that follow, and one who asks where the logs end.

P1 to P8 by `suiro.verify.history`, P10 by what was advertised.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.aio import Bound
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition
from suiro.verify.clients import PAUSE_S, keep_trying, make_topic, read_topic
from suiro.verify.history import Advertised, History, Outcome, Read, Send, check
from suiro.verify.payload import Payload

if TYPE_CHECKING:
    from suiro.aio import Consumer, Producer
    from suiro.handle import SentMany
    from suiro.verify.clients import Clients

TOPIC = "appended"
LOOK_S = 0.3
LIFE = 1_000
"""Between the numbers of a writer's producers."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    partitions: int = 2
    writers: int = 2
    readers: int = 1
    batch_records: int = 2
    pause_s: float = 0.1
    """What a writer rests after a batch to each partition."""
    filler_bytes: int = 0


class Append:
    """Some writers, each to every partition in turn, and some readers."""

    name = "append"

    def __init__(self, clients: Clients, size: Size | None = None, topic: str = TOPIC) -> None:
        self.clients = clients
        self.size = size or Size()
        self.topic = topic
        self.history = History()
        self.failures: Counter[str] = Counter()
        self.acks: list[tuple[float, int, float]] = []
        """When, where, and after how long a batch was acknowledged: for gaps and latencies."""
        self.wheres = [TopicPartition(topic, number) for number in range(self.size.partitions)]
        self._filler = b"." * self.size.filler_bytes
        self._run = f"{clients.rng.getrandbits(32):08x}"
        self._done = 0

    @property
    def done(self) -> int:
        return self._done

    async def prepare(self) -> None:
        await make_topic(self.clients, self.topic, self.size.partitions)

    async def run(self, stop: asyncio.Event) -> None:
        """Readers outlive the writers, so that they see the end of it."""
        written = asyncio.Event()
        readers = [
            self.clients.spawn(f"reader-{n}", self._read(f"reader-{n}", written))
            for n in range(self.size.readers)
        ]
        readers.append(self.clients.spawn("looker", self._look(written)))
        writers = [
            self.clients.spawn(f"writer-{n}", self._write(n, stop))
            for n in range(self.size.writers)
        ]
        await asyncio.gather(*writers)
        written.set()
        await asyncio.gather(*readers)

    async def finish(self) -> list[str]:
        for record in await read_topic(self.clients, self.topic, self.size.partitions):
            self.history.reads.append(
                Read("final", self.topic, record.partition, record.offset, record.value or b"")
            )
        return [str(anomaly) for anomaly in check(self.history)]

    # -- writing ----------------------------------------------------------------------------------

    async def _write(self, number: int, stop: asyncio.Event) -> None:
        """A producer that gave up is followed by another, which is somebody else: what its
        predecessor had under way may still come.
        """
        lives = 0

        async def live() -> None:
            nonlocal lives
            lives += 1
            answers: set[asyncio.Task[None]] = set()
            try:
                async with self.clients.producer(f"writer-{number}", linger_ms=1) as producer:
                    await self._write_on(producer, number + LIFE * lives, answers, stop)
            finally:
                await asyncio.gather(*answers)

        await keep_trying(live, stop)

    async def _write_on(
        self, producer: Producer, writer: int, answers: set[asyncio.Task[None]], stop: asyncio.Event
    ) -> None:
        sequence = 0
        while not stop.is_set():
            for where in self.wheres:
                await producer.room()
                payloads = [
                    Payload(self._run, self.topic, where.partition, writer, sequence + nth)
                    for nth in range(self.size.batch_records)
                ]
                values = [payload.encode(self._filler) for payload in payloads]
                sent = producer.send_many(self.topic, values, partition=where.partition)
                task = asyncio.create_task(self._hear(payloads, sent, self.clients.now_s()))
                answers.add(task)
                task.add_done_callback(answers.discard)
            sequence += self.size.batch_records
            await asyncio.sleep(self.clients.rng.uniform(0.5, 1) * self.size.pause_s)

    async def _hear(self, payloads: list[Payload], sent: SentMany, invoked_s: float) -> None:
        """Note what became of them; what failed may be stored all the same."""
        outcome, offsets = Outcome.INFO, [-1] * len(payloads)
        try:
            offsets = [metadata.offset for metadata in await sent]
            outcome = Outcome.OK
            self._done += len(payloads)
            answered_s = self.clients.now_s()
            self.acks.append((answered_s, payloads[0].partition, answered_s - invoked_s))
        except SuiroError as error:
            self.failures[type(error).__name__] += 1
        finally:
            answered_s = self.clients.now_s()
            self.history.sends += [
                Send(payload, outcome, offset, invoked_s, answered_s)
                for payload, offset in zip(payloads, offsets, strict=True)
            ]

    # -- reading ----------------------------------------------------------------------------------

    async def _read(self, name: str, stop: asyncio.Event) -> None:
        async def live() -> None:
            async with self.clients.consumer(name) as consumer:
                await consumer.assign(self._positions(name))
                while not stop.is_set():
                    await self._poll(name, consumer)

        await keep_trying(live, stop)

    def _positions(self, name: str) -> dict[TopicPartition, int]:
        """A reader that is made anew goes on where the one before was."""
        positions = dict.fromkeys(self.wheres, 0)
        for read in reversed(self.history.reads):
            where = TopicPartition(read.topic, read.partition)
            if read.reader == name and not positions[where]:
                positions[where] = read.offset + 1
                if all(positions.values()):
                    break
        return positions

    async def _poll(self, name: str, consumer: Consumer) -> None:
        for record in await consumer.poll(PAUSE_S):
            self.history.reads.append(
                Read(name, self.topic, record.partition, record.offset, record.value or b"")
            )

    async def _look(self, stop: asyncio.Event) -> None:
        """Ask for `latest` all the time (P10)."""

        async def live() -> None:
            async with self.clients.consumer("looker") as consumer:
                while not stop.is_set():
                    for where in self.wheres:
                        asked_s = self.clients.now_s()
                        latest = await consumer.offset_of(where, Bound.LATEST)
                        self.history.advertised.append(
                            Advertised(where.topic, where.partition, latest, asked_s)
                        )
                    await asyncio.sleep(LOOK_S)

        await keep_trying(live, stop)
