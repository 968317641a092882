"""What a poll took, as one Arrow table: no object is made per record, keys and values are views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from suiro.model.arrow import (
    HEADERS,
    HEADERS_TYPE,
    KEY,
    OFFSET,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    to_arrow,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import TopicPartition
    from suiro.polled import ColumnRun

TOPIC_TYPE: Final = pa.dictionary(pa.int32(), pa.string())
POLLED_SCHEMA: Final = pa.schema(
    [
        ("topic", TOPIC_TYPE),
        ("partition", pa.int32()),
        (OFFSET, pa.int64()),
        (TIMESTAMP, TIMESTAMP_TYPE),
        (KEY, pa.binary()),
        (VALUE, pa.binary()),
    ]
)
POLLED_SCHEMA_WITH_HEADERS: Final = POLLED_SCHEMA.append(pa.field(HEADERS, HEADERS_TYPE))


def polled_table(
    taken: Sequence[tuple[TopicPartition, Sequence[ColumnRun]]], *, headers: bool = False
) -> pa.Table:
    """The rows of each partition in order; a chunk of the table is a run of a batch."""
    schema = POLLED_SCHEMA_WITH_HEADERS if headers else POLLED_SCHEMA
    batches = [
        _record_batch(partition, run, schema, headers) for partition, runs in taken for run in runs
    ]
    return pa.Table.from_batches(batches, schema)


def _record_batch(
    partition: TopicPartition, run: ColumnRun, schema: pa.Schema, headers: bool
) -> pa.RecordBatch:
    count = run.end - run.start
    rows = to_arrow(run.columns, headers=headers)
    if count < rows.num_rows:
        rows = rows.slice(run.start, count)
    where = {
        "topic": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), [partition.topic]),
        "partition": pa.array(np.full(count, partition.partition, np.int32)),
    }
    arrays = [where[name] if name in where else rows.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
