"""Table: a compacted topic, whose newest values have to be those that were acknowledged last (P16).

Every writer has keys of its own and numbers its versions; it writes the next version of a key only
when the one before is answered for. So of each key the last that is there is at least the newest
acknowledged one, and at most the newest that was ever sent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro.model.error_base import SuiroError
from suiro.verify.clients import PAUSE_S, keep_trying, make_topic, read_topic
from suiro.verify.table import Table

if TYPE_CHECKING:
    from suiro.verify.clients import Clients

TOPIC = "table"
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "600000",
}
DELETES = 0.1
FILLER = b"." * 200


class TableWork:
    """Some writers of a table."""

    name = "table"

    def __init__(
        self,
        clients: Clients,
        writers: int = 2,
        keys: int = 8,
        pause_s: float = 0.1,
        topic: str = TOPIC,
    ) -> None:
        self.clients = clients
        self.topic = topic
        self.table = Table()
        self._writers = writers
        self._keys = keys
        self._pause_s = pause_s

    @property
    def done(self) -> int:
        return self.table.acknowledged

    async def prepare(self) -> None:
        await make_topic(self.clients, self.topic, 1, CONFIGS)

    async def run(self, stop: asyncio.Event) -> None:
        writers = [
            self.clients.spawn(f"table-{n}", self._write(n, stop)) for n in range(self._writers)
        ]
        await asyncio.gather(*writers)

    async def finish(self) -> list[str]:
        for record in await read_topic(self.clients, self.topic, 1):
            self.table.see(record.offset, record.key or b"", record.value)
        return self.table.check()

    async def _write(self, number: int, stop: asyncio.Event) -> None:
        async def live() -> None:
            async with self.clients.producer(f"table-{number}", linger_ms=1) as producer:
                while not stop.is_set():
                    key = b"%d-%d" % (number, self.clients.rng.randrange(self._keys))
                    deletes = self.clients.rng.random() < DELETES
                    version = self.table.next(key, deletes=deletes)
                    value = None if deletes else b"%d:" % version + FILLER
                    try:
                        await producer.send(self.topic, value, key=key)
                        self.table.acknowledge(key, version)
                    except SuiroError:
                        await asyncio.sleep(PAUSE_S)
                    await asyncio.sleep(self.clients.rng.uniform(0, self._pause_s))

        await keep_trying(live, stop)
