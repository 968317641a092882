"""Spark's readers: a batch is planned once, a stream again and again; tasks read ranges."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pyspark_suiro.filters import Pushed, push
from pyspark_suiro.lag import with_lag
from pyspark_suiro.log_view import LogView
from pyspark_suiro.offsets import (
    Bounds,
    StreamOffset,
    is_empty,
    limited,
    next_batch,
    not_beyond,
    ranges,
    split,
)
from pyspark_suiro.options import check_batch, check_stream, parse_source
from pyspark_suiro.planning import plan_batch, plan_start
from pyspark_suiro.range_reader import RangeReader
from pyspark_suiro.rows import RowMaker
from pyspark_suiro.schema import arrow_schema, check_schema
from pyspark_suiro.values import decoder_of, parser_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from pyspark_suiro.offsets import Offsets, Range
    from pyspark_suiro.options import SourceOptions

log = logging.getLogger("suiro.spark")


class RangePartition(InputPartition):
    """What one task reads."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class _Reading:
    """What both readers do in a task."""

    def __init__(self, schema: StructType, given: Mapping[str, str]) -> None:
        self.options = parse_source(given)
        self._schema: dict[str, Any] = schema.jsonValue()
        check_schema(self._schema, self.options)
        arrow_schema(self._schema)
        self._decoder = decoder_of(self.options)

    def read_range(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Arrow batches straight from the log."""
        if not isinstance(partition, RangePartition):
            return  # Spark's own, where there is nothing to read
        wanted = partition.wanted
        parse = parser_of(self.options.value_format, self._decoder)
        maker = RowMaker(wanted.place, arrow_schema(self._schema), parse)
        with RangeReader(self.options, wanted) as reader:
            yield from maker.batches(reader.runs())


class BatchReader(_Reading, DataSourceReader):
    """`spark.read`"""

    def __init__(self, schema: StructType, given: Mapping[str, str]) -> None:
        super().__init__(schema, given)
        check_batch(self.options)
        self._pushed = Pushed()

    def partitions(self) -> list[InputPartition]:
        with LogView(self.options) as view:
            planned = plan_batch(view, self.options)
            since: Offsets = {}
            if self._pushed.time_min_ms is not None:
                since = view.at_time(dict.fromkeys(planned.end, self._pushed.time_min_ms))
        return _tasks(self._pushed.cut(planned, since), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_range(partition)


class FilteringBatchReader(BatchReader):
    """The same where Spark offers filters (spark.sql.python.filterPushdown.enabled); a reader that
    takes filters while they are off is refused by Spark.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 - Spark's name
        self._pushed = push(filters)
        yield from filters


class StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`: lives as long as the query, in a process beside the driver."""

    def __init__(self, schema: StructType, given: Mapping[str, str]) -> None:
        super().__init__(schema, given)
        check_stream(self.options)
        self._view: LogView | None = None
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._planned: Offsets = {}
        self._told: list[str] = []
        self._group_at: Offsets = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_view": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return plan_start(self._log(), self.options).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        most = self.options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch; the start as it was if there is nothing to read."""
        done, bounds = StreamOffset.from_json(start).end, self._bounds()
        self._tell_group(done)
        batch = next_batch(done, bounds)
        batch.check(self.options.fail_on_data_loss)
        self._tell(batch.losses)
        offset = batch.offset
        if self._target is not None:
            offset = not_beyond(offset, self._target)
        if isinstance(limit, ReadMaxRows):
            offset = limited(offset, limit.max_rows)
        self._latest, self._planned = bounds.latest, offset.end
        return start if is_empty(offset) else offset.to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._target = self._bounds().latest

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """For the progress report, asked for when the next batch has been planned."""
        return with_lag(self._latest, self._log().lag(self._planned, self._latest))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """By the end alone, which knows where its batch began."""
        if start == end:
            return []
        return _tasks(StreamOffset.from_json(end), self.options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.read_range(partition)

    def stop(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    def _bounds(self) -> Bounds:
        view = self._log()
        return view.bounds(view.places(self.options.selection))

    def _log(self) -> LogView:
        if self._view is None:
            self._view = LogView(self.options)
        return self._view

    def _tell_group(self, done: Offsets) -> None:
        """Spark plans a batch when those before it are through: so far the query has come."""
        if self.options.group_id and done != self._group_at:
            self._log().tell_group(self.options.group_id, done)
            self._group_at = done

    def _tell(self, losses: list[str]) -> None:
        if losses != self._told:
            for loss in losses:
                log.warning("going on although data was lost: %s", loss)
        self._told = losses


def _tasks(offset: StreamOffset, options: SourceOptions) -> list[InputPartition]:
    parts = split(ranges(offset), options.min_partitions, options.max_records_per_partition)
    return [RangePartition(part) for part in parts]
