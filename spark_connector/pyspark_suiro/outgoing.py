"""Rows on their way out: by topic, with the columns that the producer takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_suiro.errors import BadRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TOPIC = "topic"


def by_topic(batches: Iterable[pa.RecordBatch], topic: str) -> Iterator[tuple[str, pa.Table]]:
    """Each batch, divided by its column `topic` unless `topic` says where all of it goes."""
    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        if TOPIC not in table.schema.names:
            yield topic, table
            continue
        rows = table.drop_columns([TOPIC])
        if topic:
            yield topic, rows
            continue
        names = table.column(TOPIC)
        if names.null_count:
            raise BadRow("a row has null in its column 'topic', and there is no option 'topic'")
        every = pc.unique(names).to_pylist()
        for name in every:
            yield name, rows if len(every) == 1 else rows.filter(pc.equal(names, name))
