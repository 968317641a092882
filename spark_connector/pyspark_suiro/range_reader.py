"""Reads one range of one partition, whole, in order, and nothing beyond it.

The range ends where the position is, not where a record is: its last offsets may be control or
aborted records, or compacted away, and then there is no record to wait for (C2). Whoever reads the
same range again gets the same records (C1), as everything before the last stable offset is decided.
"""

from __future__ import annotations

import logging
import threading
from time import monotonic  # noqa: TID251 - the waiting of an ordinary thread
from typing import TYPE_CHECKING, Final, Self

from suiro import aio
from suiro.loop_thread import LoopThread
from suiro.model.errors import OffsetOutOfRange, TimedOut
from suiro.model.ids import TopicPartition

from pyspark_suiro.errors import DataLoss
from pyspark_suiro.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_suiro.offsets import Range
    from pyspark_suiro.options import SourceOptions

log = logging.getLogger("suiro.spark")

TAKE_ROWS: Final = 65_536
STALLED_S: Final = 60.0
"""Nothing came for so long: the task fails, and Spark tries it elsewhere."""


class RangeReader:
    """A consumer for one range; use it in a `with`."""

    def __init__(self, options: SourceOptions, wanted: Range) -> None:
        self._options = options
        self._wanted = wanted
        self._partition = TopicPartition(wanted.place.topic, wanted.place.partition)
        self._arrived = threading.Event()
        self._loop = LoopThread()
        self._consumer = aio.Consumer(options.bootstrap, settings=options.consumer_settings())
        try:
            self._loop.run(self._open())
        except BaseException:
            self.close()
            raise

    async def _open(self) -> None:
        consumer, wanted = self._consumer, self._wanted
        await consumer.__aenter__()
        consumer.wake = self._arrived.set
        await consumer.partitions_of(wanted.place.topic)
        topic_id = consumer.connection.topics[wanted.place.topic].topic_id.hex()
        if topic_id != wanted.place.topic_id:
            raise DataLoss(
                f"topic {wanted.place.topic} was deleted and created again while it was read (its "
                f"id was {wanted.place.topic_id}, now it is {topic_id})"
            )
        await consumer.assign({self._partition: wanted.start})

    def close(self) -> None:
        try:
            self._loop.run(self._consumer.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def runs(self) -> Iterator[Rows]:
        """The records, as rows of batches."""
        position = self._wanted.start
        moved_s = monotonic()
        while position < self._wanted.end:
            self._arrived.clear()
            try:
                yield from self._take()
                now = self._consumer.position(self._partition)
            except OffsetOutOfRange as error:
                now = self._pass_over(position, error)
            if now > position:
                position, moved_s = now, monotonic()
            elif not self._arrived.wait(STALLED_S) or monotonic() - moved_s > STALLED_S:
                raise TimedOut(
                    f"{self._partition}: no records from offset {position} on (up to "
                    f"{self._wanted.end}) within {STALLED_S:g} s. Has the partition a leader?"
                )

    def _take(self) -> Iterator[Rows]:
        for _, runs in self._consumer.take_columns(TAKE_ROWS):
            for run in runs:
                end = min(run.end, run.columns.index_of(self._wanted.end))
                if run.start < end and not run.columns.header.is_control:
                    yield Rows(run.columns, run.start, end)

    def _pass_over(self, position: int, error: OffsetOutOfRange) -> int:
        """The log begins later than when the range was planned, or ends before it: where to go on.

        A log that ends earlier has lost records in an unclean election; there is nothing to read.
        """
        if self._options.fail_on_data_loss:
            raise DataLoss(f"{error.message}: records were lost before they were read") from None
        earliest = self._loop.run(self._consumer.offset_of(self._partition, aio.Bound.EARLIEST))
        if not position < earliest < self._wanted.end:
            log.warning("%s; nothing is left of the range up to %d", error, self._wanted.end)
            return self._wanted.end
        log.warning("%s; going on at %d", error, earliest)
        self._loop.run(self._seek(earliest))
        return earliest

    async def _seek(self, offset: int) -> None:
        self._consumer.seek(self._partition, offset)
