"""The consumer for ordinary threads: the asyncio consumer on a loop of its own."""

from __future__ import annotations

import threading
from functools import partial
from time import monotonic  # noqa: TID251 - the waiting of an ordinary thread
from typing import TYPE_CHECKING, Any, Self

from suiro import aio
from suiro.aio.group_inbox import Begin
from suiro.loop_thread import LoopThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import pyarrow as pa

    from suiro.aio.consumer import Offsets, OnPartitions
    from suiro.aio.group_offsets import OffsetAndMetadata
    from suiro.aio.offsets import Bound
    from suiro.model.ids import TopicPartition
    from suiro.model.record import Record
    from suiro.polled import Polled
    from suiro.settings import ConsumerSettings


class Consumer:
    """Reads records: of a group's share of topics, or of partitions that it is told to read.

    >>> with suiro.Consumer(group_id="billing", auto_offset_reset="earliest") as consumer:
    ...     consumer.subscribe("fruit")
    ...     for record in consumer:
    ...         print(record.offset, record.value)
    ...         break
    0 b'apple'

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
            self._consumer.wake = self._arrived.set
        except BaseException:
            self.close()
            raise

    @property
    def asynchronous(self) -> aio.Consumer:
        """Inside the SDK: the consumer behind this one, in the loop of the sync clients."""
        return self._consumer

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Every partition of a topic.

        >>> consumer.partitions_of("fruit")
        [TopicPartition(topic='fruit', partition=0)]
        """
        return self._loop.run(self._consumer.partitions_of(topic))

    def subscribe(
        self,
        *topics: str,
        pattern: str = "",
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Read this group's share of these topics, or of all that match the pattern.

        Partitions come and go while polling: `on_revoked` is called before one goes, and may
        commit; `on_lost` when one is gone already.

        >>> consumer.subscribe("fruit")
        >>> records = consumer.poll(20)
        >>> records[0].value
        b'apple'
        """
        self._in_loop(
            lambda: self._consumer.subscribe(
                *topics,
                pattern=pattern,
                on_assigned=on_assigned,
                on_revoked=on_revoked,
                on_lost=on_lost,
            )
        )

    def commit(self, offsets: Offsets | None = None) -> None:
        """Store where the group is: behind what polls have returned, or at these offsets.

        >>> consumer.subscribe("fruit")
        >>> records = consumer.poll(20)
        >>> consumer.commit()
        """
        self._loop.run(self._consumer.commit(offsets))

    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        """The same in the background; the callback is told how it ended, in another thread.

        >>> consumer.subscribe("fruit")
        >>> records = consumer.poll(20)
        >>> consumer.commit_async(callback=lambda error: None)
        """
        self._in_loop(lambda: self._consumer.commit_async(offsets, callback))

    def committed(
        self, partitions: Iterable[TopicPartition] = ()
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed, of these partitions or of all.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> consumer.subscribe("fruit")
        >>> records = consumer.poll(20)
        >>> consumer.commit()
        >>> found = consumer.committed([where])
        >>> found[where].offset
        2
        """
        return self._loop.run(self._consumer.committed(partitions))

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int]) -> None:
        """Read these partitions, and no others; a mapping says at which offsets to begin.

        >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.assign({suiro.TopicPartition("fruit", 0): 1})
        >>> records = consumer.poll(10)
        >>> records[0].value
        b'banana'
        """
        self._loop.run(self._consumer.assign(partitions))

    def assignment(self) -> list[TopicPartition]:
        """What is being read.

        >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.assignment()
        [TopicPartition(topic='fruit', partition=0)]
        """
        return self._consumer.assignment()

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that a poll will return.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> consumer.assign([where])
        >>> consumer.position(where)
        0
        """
        return self._consumer.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at this offset.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> consumer.assign([where])
        >>> consumer.seek(where, 1)
        >>> records = consumer.poll(10)
        >>> records[0].offset
        1
        """
        self._in_loop(lambda: self._consumer.seek(partition, offset))

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these from now on; no partition named means all of them.

        >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.pause()
        >>> records = consumer.poll(0.1)
        >>> len(records)
        0
        """
        self._in_loop(lambda: self._consumer.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on where they were paused; no partition named means all of them.

        >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.pause()
        >>> consumer.resume()
        >>> records = consumer.poll(10)
        >>> len(records)
        2
        """
        self._in_loop(lambda: self._consumer.resume(*partitions))

    def paused(self) -> list[TopicPartition]:
        """What is assigned and paused.

        >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.pause()
        >>> consumer.paused() == consumer.assignment()
        True
        """
        return self._consumer.paused()

    def _in_loop(self, act: Callable[[], object]) -> None:
        async def run() -> None:
            act()

        self._loop.run(run())

    def seek_to(self, partition: TopicPartition, bound: Bound | int) -> int:
        """Go on at the earliest or latest offset, or at a timestamp (ms); returns the offset.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> consumer.assign([where])
        >>> consumer.seek_to(where, suiro.Bound.LATEST)
        2
        """
        return self._loop.run(self._consumer.seek_to(partition, bound))

    def seek_to_committed(self) -> None:
        """Go back to where the group is, after a transaction that was aborted for instance; where
        it has not been yet, `auto_offset_reset` decides.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> consumer.assign([where])
        >>> records = consumer.poll(10)
        >>> consumer.seek_to_committed()
        >>> consumer.position(where)
        0
        """
        self._loop.run(self._consumer.seek_to_committed())

    def offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        """The earliest or latest offset, or the first one at or after a timestamp (ms).

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> consumer.offset_of(where, suiro.Bound.LATEST)
        2
        """
        return self._loop.run(self._consumer.offset_of(partition, bound))

    def poll(self, timeout_s: float = 1.0, *, max_records: int | None = None) -> Polled:
        """Records as soon as there are any, at most `max_records`; none after the timeout.

        >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> records = consumer.poll(10)
        >>> [(record.offset, record.key, record.value) for record in records]
        [(0, b'a', b'apple'), (1, b'b', b'banana')]
        """
        wanted = max_records or self._consumer.settings.max_poll_records
        until_s = monotonic() + timeout_s
        self._before_poll()
        while not (records := self._fetcher.take(wanted)) and self._wait(until_s):
            self._settle_events()
        return records

    def poll_arrow(
        self, timeout_s: float = 1.0, *, max_records: int | None = None, headers: bool = False
    ) -> pa.Table:
        """The same as a table: topic, partition, offset, timestamp, key, value, and headers if
        asked for. Nothing is done per record, so it is the way to read millions of them;
        `.to_pandas()` makes a data frame of it.

        >>> consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> table = consumer.poll_arrow(10)
        >>> table["value"].to_pylist()
        [b'apple', b'banana']
        """
        from suiro.polled_table import polled_table

        until_s = monotonic() + timeout_s
        self._before_poll()
        while not (taken := self._consumer.take_columns(max_records)) and self._wait(until_s):
            self._settle_events()
        return polled_table(taken, headers=headers)

    def _before_poll(self) -> None:
        self._loop.check_open()
        if self._consumer.settings.group_id:
            group = self._consumer.group
            group.on_progress()
            if group.auto_commit_is_due():
                offsets = group.positions()  # before this poll returns more
                self._in_loop(lambda: group.auto_commit(offsets))
            self._settle_events()

    def _settle_events(self) -> None:
        """Deal with what the group says; the application's own functions run in its own thread."""
        if not self._consumer.settings.group_id:
            return
        group = self._consumer.group
        if group.has_overslept:
            self._in_loop(group.wake_up)
        while (event := group.next_event()) is not None:
            listener = self._consumer.listeners.for_event(event)
            if isinstance(event, Begin):
                self._in_loop(partial(group.begin, event))
                if listener is not None:
                    listener(list(event.partitions))
            else:
                if listener is not None:
                    listener(list(event.partitions))
                self._loop.run(self._consumer.let_go(event))

    def _wait(self, until_s: float) -> bool:
        """As the asyncio consumer waits, but in this thread."""
        began_s = now_s = monotonic()
        while now_s < until_s:
            self._arrived.clear()
            ready_in_s = self._consumer.ready_in_s(now_s - began_s)
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
        """Commit if that is automatic, leave the group, and let go of everything.

        >>> consumer.close()
        """
        if not self._loop.is_open:
            return
        try:
            self._loop.run(self._consumer.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
