"""From batches of the log to the record batches that Spark takes: columns are views, no record is
touched alone.

Small runs are put together, as Spark pays for each record batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from suiro.model.arrow import to_arrow
from suiro.model.batch import TIMESTAMP_TYPE_BIT

from pyspark_suiro.schema import HEADERS, VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from suiro.model.columns import Columns

    from pyspark_suiro.offsets import Place
    from pyspark_suiro.values import Parse

ROWS_MIN: Final = 5_000
BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Rows:
    """Some records of one batch: those from `start` up to `end`, not included."""

    columns: Columns
    start: int
    end: int


@dataclass(slots=True)
class RowMaker:
    """For one range: the schema to yield, and how values become structs, if they do."""

    place: Place
    schema: pa.Schema
    parse: Parse | None = None
    _constants: dict[str, pa.Array] = field(default_factory=dict)

    def batches(self, runs: Iterable[Rows]) -> Iterator[pa.RecordBatch]:
        """The rows of all runs, in order."""
        waiting: list[pa.RecordBatch] = []
        rows = size = 0
        for run in runs:
            part = self._part(run)
            waiting.append(part)
            rows += part.num_rows
            size += part.nbytes
            if rows >= ROWS_MIN or size >= BYTES_MAX:
                yield self._finish(waiting)
                waiting, rows, size = [], 0, 0
        if waiting:
            yield self._finish(waiting)

    def _part(self, run: Rows) -> pa.RecordBatch:
        """The columns of one run that come from the log."""
        count = run.end - run.start
        rows = to_arrow(run.columns, headers=HEADERS in self.schema.names)
        if count < rows.num_rows:
            rows = rows.slice(run.start, count)
        is_append_time = bool(run.columns.header.attributes & TIMESTAMP_TYPE_BIT)
        kind = self._constant(
            f"timestampType {is_append_time}", count, lambda n: np.full(n, is_append_time, np.int32)
        )
        return rows.append_column("timestampType", kind)

    def _finish(self, parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
        if self.parse is not None:
            rows = self._with_values(rows, self.parse)
        arrays = [self._column(rows, column) for column in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _with_values(self, rows: pa.RecordBatch, parse: Parse) -> pa.RecordBatch:
        first = rows.column("offset")[0].as_py()
        where = f"{self.place.topic}-{self.place.partition} from offset {first} on"
        return parse(rows, self.schema.field(VALUE).type, where)

    def _column(self, rows: pa.RecordBatch, column: pa.Field) -> pa.Array:
        if column.name == "topic":
            topic = self.place.topic
            return self._constant("topic", rows.num_rows, lambda n: pa.repeat(topic, n))
        if column.name == "partition":
            number = self.place.partition
            return self._constant(
                "partition", rows.num_rows, lambda n: np.full(n, number, np.int32)
            )
        array = rows.column(column.name)
        return array if array.type == column.type else array.cast(column.type)

    def _constant(self, name: str, count: int, make: Callable[[int], object]) -> pa.Array:
        """So many times the same: a part of one array that is kept."""
        kept = self._constants.get(name)
        if kept is None or len(kept) < count:
            kept = self._constants[name] = pa.array(make(max(count, ROWS_MIN)))
        return kept if len(kept) == count else kept.slice(0, count)
