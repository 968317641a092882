"""The consumer on asyncio: says what to read, and polls what the fetcher has brought."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from suiro._proto.common_pb2 import READ_COMMITTED, READ_UNCOMMITTED
from suiro.aio.fetcher import Fetcher
from suiro.client_env import real_env
from suiro.connection import Connection
from suiro.model.errors import InvalidRequest
from suiro.model.ids import TopicPartition
from suiro.settings import ConsumerSettings, build_settings, parse_bootstrap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    import pyarrow as pa

    from suiro.aio.offsets import Bound
    from suiro.client_env import ClientEnv
    from suiro.fetch_buffer import ColumnRun
    from suiro.model.record import Record


class Consumer:
    """Reads records of partitions that it is told to read.

    ```python
    async with Consumer("suiro://localhost", auto_offset_reset="earliest") as consumer:
        await consumer.assign([TopicPartition("clicks", 0)])
        for record in await consumer.poll():
            print(record.offset, record.value)
    ```
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ConsumerSettings | None = None,
        env: ClientEnv | None = None,
        **given: Any,
    ) -> None:
        self.settings = settings or build_settings(ConsumerSettings, given)
        env = env or real_env()
        self.connection = Connection(
            parse_bootstrap(bootstrap),
            env.transport,
            client_id=self.settings.client_id,
            rng=env.rng,
        )

    async def __aenter__(self) -> Self:
        is_committed = self.settings.isolation == "read_committed"
        self.fetcher = Fetcher(
            self.connection, self.settings, READ_COMMITTED if is_committed else READ_UNCOMMITTED
        )
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self.fetcher.on_arrival = self._arrived.set
        await self.connection.refresh([], timeout_s=self._timeout_s)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop fetching and let go of everything."""
        if hasattr(self, "fetcher"):
            await self.fetcher.close()
        await self.connection.transport.close()

    # -- what to read -----------------------------------------------------------------------------

    async def assign(
        self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int]
    ) -> None:
        """Read these partitions, and no others; a mapping says at which offsets to begin.

        Without an offset, `auto_offset_reset` decides.
        """
        wanted = dict(partitions) if isinstance(partitions, dict) else dict.fromkeys(partitions)
        await self.connection.refresh({p.topic for p in wanted}, timeout_s=self._timeout_s)
        for partition in wanted:
            self._check_exists(partition)
        self.fetcher.remove(self.fetcher.partitions())
        self.fetcher.add(wanted)
        for partition, offset in wanted.items():
            if offset is not None:
                self.fetcher.seek(partition, offset)
        await self.fetcher.locate(wanted)

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Every partition of a topic."""
        info = await self.connection.topic(topic, timeout_s=self._timeout_s)
        return [TopicPartition(topic, number) for number in range(len(info.partitions))]

    def assignment(self) -> list[TopicPartition]:
        """What is being read."""
        return sorted(self.fetcher.partitions())

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these from now on; no partition named means all of them."""
        for partition in partitions or self.assignment():
            self.fetcher.pause(partition, paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on where they were paused; no partition named means all of them."""
        for partition in partitions or self.assignment():
            self.fetcher.pause(partition, paused=False)

    def paused(self) -> list[TopicPartition]:
        return [p for p in self.assignment() if self.fetcher.is_paused(p)]

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that a poll will return."""
        return self.fetcher.position(partition)[0]

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at this offset."""
        self.fetcher.seek(partition, offset)

    async def seek_to(self, partition: TopicPartition, bound: Bound | int) -> int:
        """Go on at the earliest or latest offset, or at a timestamp (ms); returns the offset."""
        offset = await self.offset_of(partition, bound)
        self.seek(partition, offset)
        return offset

    async def offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        """The earliest or latest offset, or the first one at or after a timestamp (ms)."""
        return await self.fetcher.offset_of(partition, bound)

    # -- reading ----------------------------------------------------------------------------------

    async def poll(self, timeout_s: float = 1.0, *, max_records: int | None = None) -> list[Record]:
        """Records as soon as there are any, at most `max_records`; none after the timeout."""
        wanted = max_records or self.settings.max_poll_records
        until_s = self._loop.time() + timeout_s
        while not (records := self.fetcher.take(wanted)) and await self._wait(until_s):
            pass
        return records

    async def poll_arrow(
        self, timeout_s: float = 1.0, *, max_records: int | None = None, headers: bool = False
    ) -> pa.Table:
        """The same as a table: topic, partition, offset, timestamp, key, value, and headers if
        asked for. Nothing is done per record, so it is the way to read millions of them.
        """
        from suiro.polled_table import polled_table

        until_s = self._loop.time() + timeout_s
        while not (taken := self.take_columns(max_records)) and await self._wait(until_s):
            pass
        return polled_table(taken, headers=headers)

    def take_columns(
        self, max_records: int | None = None
    ) -> list[tuple[TopicPartition, list[ColumnRun]]]:
        return self.fetcher.take_columns(max_records or self.settings.max_arrow_records)

    async def __aiter__(self) -> AsyncIterator[Record]:
        while True:
            for record in await self.poll():
                yield record

    async def _wait(self, until_s: float) -> bool:
        """Until there is enough to take or a failure to raise; False if it is too late for more."""
        began_s = now_s = self._loop.time()
        while now_s < until_s:
            self._arrived.clear()
            ready_in_s = self.fetcher.ready_in_s(now_s - began_s)
            if ready_in_s == 0:
                return True
            left_s = until_s - now_s if ready_in_s is None else min(ready_in_s, until_s - now_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._arrived.wait()
            now_s = self._loop.time()
        return False

    def _check_exists(self, partition: TopicPartition) -> None:
        count = len(self.connection.topics[partition.topic].partitions)
        if not 0 <= partition.partition < count:
            raise InvalidRequest(f"{partition.topic} has {count} partitions, no {partition}")

    @property
    def _timeout_s(self) -> float:
        return self.settings.request_timeout_ms / 1000
