"""The consumer for ordinary threads: the asyncio consumer on a loop of its own."""

from __future__ import annotations

import threading
from time import monotonic  # noqa: TID251 - the waiting of an ordinary thread
from typing import TYPE_CHECKING, Any, Self

from suiro import aio
from suiro.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from suiro.aio.offsets import Bound
    from suiro.model.ids import TopicPartition
    from suiro.model.record import Record
    from suiro.settings import ConsumerSettings


class Consumer:
    """Reads records.

    ```python
    with suiro.Consumer("suiro://localhost", auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_of("clicks"))
        for record in consumer.poll():
            print(record.offset, record.value)
    ```

    For one thread at a time.
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ConsumerSettings | None = None,
        **given: Any,
    ) -> None:
        self._consumer = aio.Consumer(bootstrap, settings=settings, **given)
        self._loop = LoopThread()
        self._arrived = threading.Event()
        try:
            self._loop.run(self._consumer.__aenter__())
            self._fetcher = self._consumer.fetcher
            self._fetcher.on_arrival = self._arrived.set
        except BaseException:
            self.close()
            raise

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Every partition of a topic."""
        return self._loop.run(self._consumer.partitions_of(topic))

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int]) -> None:
        """Read these partitions, and no others; a mapping says at which offsets to begin."""
        self._loop.run(self._consumer.assign(partitions))

    def assignment(self) -> list[TopicPartition]:
        """What is being read."""
        return self._consumer.assignment()

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that a poll will return."""
        return self._consumer.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at this offset."""
        self._in_loop(lambda: self._consumer.seek(partition, offset))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these from now on; no partition named means all of them."""
        self._in_loop(lambda: self._consumer.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on where they were paused; no partition named means all of them."""
        self._in_loop(lambda: self._consumer.resume(*partitions))

    def paused(self) -> list[TopicPartition]:
        return self._consumer.paused()

    def _in_loop(self, act: Callable[[], None]) -> None:
        async def run() -> None:
            act()

        self._loop.run(run())

    def seek_to(self, partition: TopicPartition, bound: Bound | int) -> int:
        """Go on at the earliest or latest offset, or at a timestamp (ms); returns the offset."""
        return self._loop.run(self._consumer.seek_to(partition, bound))

    def offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        """The earliest or latest offset, or the first one at or after a timestamp (ms)."""
        return self._loop.run(self._consumer.offset_of(partition, bound))

    def poll(self, timeout_s: float = 1.0, *, max_records: int | None = None) -> list[Record]:
        """Records as soon as there are any, at most `max_records`; none after the timeout."""
        self._loop.check_open()
        wanted = max_records or self._consumer.settings.max_poll_records
        until_s = monotonic() + timeout_s
        while not (records := self._fetcher.take(wanted)) and self._wait(until_s):
            pass
        return records

    def poll_arrow(
        self, timeout_s: float = 1.0, *, max_records: int | None = None, headers: bool = False
    ) -> pa.Table:
        """The same as a table: topic, partition, offset, timestamp, key, value, and headers if
        asked for. Nothing is done per record, so it is the way to read millions of them;
        `.to_pandas()` makes a data frame of it.
        """
        from suiro.polled_table import polled_table

        self._loop.check_open()
        until_s = monotonic() + timeout_s
        while not (taken := self._consumer.take_columns(max_records)) and self._wait(until_s):
            pass
        return polled_table(taken, headers=headers)

    def _wait(self, until_s: float) -> bool:
        """As the asyncio consumer waits, but in this thread."""
        began_s = now_s = monotonic()
        while now_s < until_s:
            self._arrived.clear()
            ready_in_s = self._fetcher.ready_in_s(now_s - began_s)
            if ready_in_s == 0:
                return True
            left_s = until_s - now_s if ready_in_s is None else min(ready_in_s, until_s - now_s)
            self._arrived.wait(left_s)
            now_s = monotonic()
        return False

    def __iter__(self) -> Iterator[Record]:
        while True:
            yield from self.poll()

    def close(self) -> None:
        """Stop fetching and let go of everything."""
        try:
            self._loop.run(self._consumer.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
