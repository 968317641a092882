"""Copy: consume, transform, produce in transactions, while copiers come and go (T7, T8)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro.model.error_base import SuiroError
from suiro.verify.clients import PAUSE_S, keep_trying, make_topic, read_topic

from tests.cluster.copy_clients import COPY, GROUP, SOURCE, check_copy, copy

if TYPE_CHECKING:
    from suiro.verify.clients import Clients

PARTITIONS = 2
KEYS = 5
FINISH_S_MAX = 90.0
LOOK_S = 1.0


class Copy:
    """One who writes the source, and some copiers."""

    name = "copy"

    def __init__(
        self, clients: Clients, copiers: int = 2, pause_s: float = 0.3, life_s: float = 8.0
    ) -> None:
        self.clients = clients
        self.written = 0
        self.copied = 0
        self._copiers = copiers
        self._pause_s = pause_s
        self._life_s = life_s
        self._copying: list[asyncio.Task[None]] = []
        self._is_copied = asyncio.Event()

    @property
    def done(self) -> int:
        return self.copied

    async def prepare(self) -> None:
        for topic in (SOURCE, COPY):
            await make_topic(self.clients, topic, PARTITIONS)

    async def run(self, stop: asyncio.Event) -> None:
        self._copying = [
            self.clients.spawn(f"copier-{n}", self._copy(f"copier-{n}"))
            for n in range(self._copiers)
        ]
        await self.clients.spawn("source", self._write(stop))

    async def finish(self) -> list[str]:
        """Wait until everything is copied, then compare."""
        source = await read_topic(self.clients, SOURCE, PARTITIONS)
        until_s = self.clients.now_s() + FINISH_S_MAX
        while True:
            copied = await read_topic(self.clients, COPY, PARTITIONS)
            if len(copied) >= len(source) or self.clients.now_s() > until_s:
                break
            await asyncio.sleep(LOOK_S)
        self._is_copied.set()
        await asyncio.gather(*self._copying)
        return [f"T8 {line}" for line in check_copy(source, copied)]

    async def _write(self, stop: asyncio.Event) -> None:
        async def live() -> None:
            async with self.clients.producer("source", linger_ms=1) as producer:
                while not stop.is_set():
                    number, self.written = self.written, self.written + 1
                    try:
                        await producer.send(SOURCE, b"%d" % number, key=b"k%d" % (number % KEYS))
                    except SuiroError:
                        await asyncio.sleep(PAUSE_S)
                    await asyncio.sleep(self.clients.rng.uniform(0, self._pause_s))

        await keep_trying(live, stop)

    async def _copy(self, name: str) -> None:
        async def live() -> None:
            """For a while: then another takes its place, and has to go on where it was."""
            enough = asyncio.Event()
            lives_s = self.clients.rng.uniform(0.5, 1.5) * self._life_s
            timer = asyncio.get_running_loop().call_later(lives_s, enough.set)
            done = asyncio.create_task(self._tell(enough))
            try:
                async with (
                    self.clients.consumer(
                        name,
                        group_id=GROUP,
                        enable_auto_commit=False,
                        session_timeout_ms=3_000,
                        heartbeat_interval_ms=500,
                        max_poll_records=100,
                    ) as consumer,
                    self.clients.producer(
                        name, transactional_id=name, transaction_timeout_ms=10_000
                    ) as producer,
                ):
                    self.copied += await copy(consumer, producer, enough)
            finally:
                timer.cancel()
                done.cancel()

        await keep_trying(live, self._is_copied)

    async def _tell(self, enough: asyncio.Event) -> None:
        await self._is_copied.wait()
        enough.set()
