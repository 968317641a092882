"""Spark's writers: a batch or micro-batch becomes visible whole, once, or not at all.

Every task is one writer of a shared transaction, named by the query and the number of its batch.
Whichever tasks Spark counts are committed by the driver in one decision; tasks that ran in vain
(retried, speculative, of a dead driver) are not. A batch that is run again after it was committed
is told so and writes nothing. An abort never undoes a commit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import suiro
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from suiro.model.errors import AlreadyCommitted, InvalidSetting

from pyspark_suiro.checkpoint import query_of
from pyspark_suiro.outgoing import by_topic
from pyspark_suiro.sink_options import check_columns, parse_sink

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger("suiro.spark")

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """What the driver has to know of a task. It commits in another process than it planned in, so
    everything is in here.
    """

    batch: suiro.SharedBatch | None
    """None: there is nothing to commit, as there was nothing to write, or it counts already."""
    producer_id: int = -1


class _Writing:
    """What both writers do in a task and on the driver."""

    def __init__(self, schema: StructType, given: Mapping[str, str]) -> None:
        self.options = parse_sink(given)
        check_columns(schema.jsonValue(), self.options)
        self.attempt = uuid4().hex
        """The same in all tasks of one try, and another in the next."""

    def write_shared(
        self, batch: suiro.SharedBatch, rows: Iterator[pa.RecordBatch]
    ) -> WriterCommitMessage:
        options = self.options
        tables = by_topic(rows, options.topic)
        first = next(tables, None)
        if first is None:
            return TaskDone(None)  # as after most shuffles of little data
        name = uuid4().hex  # a task that is run again is another writer
        client = dict(options.client)
        try:
            with suiro.SharedWriter(batch, name, options.bootstrap, **client) as writer:
                for topic, table in chain([first], tables):
                    writer.send_arrow(topic, table)
                return TaskDone(batch, writer.prepare())
        except AlreadyCommitted:
            for _ in rows:  # Spark wants its rows read
                pass
            return TaskDone(None)

    def write_plainly(self, rows: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        options = self.options
        with suiro.Producer(options.bootstrap, **dict(options.client)) as producer:
            sent: list[suiro.SentMany] = []
            for topic, table in by_topic(rows, options.topic):
                sent.append(producer.send_arrow(topic, table))
                while sent[0].done() and len(sent) > 1:
                    sent.pop(0).wait(0)
            for each in sent:
                each.wait()
        return TaskDone(None)

    def commit_all(
        self, messages: Sequence[WriterCommitMessage | None], *, until_visible: bool = False
    ) -> None:
        done = [m for m in messages if isinstance(m, TaskDone) and m.batch is not None]
        if not done:
            return
        batch = done[0].batch
        assert batch is not None
        assert all(each.batch == batch for each in done), "tasks of two tries"
        with suiro.SharedTransactions(self.options.bootstrap) as shared:
            outcome = shared.commit(batch, [each.producer_id for each in done])
            if until_visible:
                shared.wait_completed(batch.name)
        log.info("batch %d of %s: %s", batch.sequence, batch.name, outcome)

    def abort_all(
        self,
        messages: Sequence[WriterCommitMessage | None],
        unknown: suiro.SharedBatch | None,
    ) -> None:
        """End the try that the messages tell of, or `unknown` if none of them does."""
        batches = [m.batch for m in messages if isinstance(m, TaskDone) and m.batch is not None]
        batch = batches[0] if batches else unknown
        if batch is not None:
            with suiro.SharedTransactions(self.options.bootstrap) as shared:
                shared.abort(batch)


class BatchWriter(_Writing, DataSourceArrowWriter):
    """`df.write`"""

    def __init__(self, schema: StructType, given: Mapping[str, str], overwrite: bool) -> None:
        super().__init__(schema, given)
        if overwrite:
            raise InvalidSetting("a topic can only be added to: use mode('append')")
        self._batch = suiro.SharedBatch(f"spark-batch-{self.attempt}", 0, self.attempt)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self.options.is_exactly_once:
            return self.write_shared(self._batch, iterator)
        return self.write_plainly(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Whoever reads after `save()` finds what was saved."""
        self.commit_all(messages, until_visible=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        if self.options.is_exactly_once:
            self.abort_all(messages, self._batch)


class StreamWriter(_Writing, DataSourceStreamArrowWriter):
    """`df.writeStream`"""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if not self.options.is_exactly_once:
            return self.write_plainly(iterator)
        query, batch = _property(QUERY_ID), _property(BATCH_ID)
        return self.write_shared(suiro.SharedBatch(query, int(batch), self.attempt), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self.commit_all(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Where no task tells what it wrote, the checkpoint tells the query. Where that cannot be
        read, the next try of the batch, or the timeout, ends what is open.
        """
        if self.options.is_exactly_once:
            query = query_of(self.options.checkpoint)
            unknown = None if query is None else suiro.SharedBatch(query, batchId, "")
            self.abort_all(messages, unknown)


def _property(name: str) -> str:
    context = TaskContext.get()
    value = None if context is None else context.getLocalProperty(name)
    assert value is not None, f"Spark did not set {name}"
    return value
