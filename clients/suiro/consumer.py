"""The consumer for ordinary threads: the asyncio consumer on a loop of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from suiro import aio
from suiro.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
        try:
            self._loop.run(self._consumer.__aenter__())
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
        return self._consumer.assignment()

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that a poll will return."""
        return self._consumer.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at this offset."""

        async def seek() -> None:
            self._consumer.seek(partition, offset)

        self._loop.run(seek())

    def seek_to(self, partition: TopicPartition, bound: Bound | int) -> int:
        """Go on at the earliest or latest offset, or at a timestamp (ms); returns the offset."""
        return self._loop.run(self._consumer.seek_to(partition, bound))

    def offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        """The earliest or latest offset, or the first one at or after a timestamp (ms)."""
        return self._loop.run(self._consumer.offset_of(partition, bound))

    def poll(self, timeout_s: float = 1.0, *, max_records: int | None = None) -> list[Record]:
        """Records as soon as there are any, at most `max_records`; none after the timeout."""
        return self._loop.run(self._consumer.poll(timeout_s, max_records=max_records))

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
