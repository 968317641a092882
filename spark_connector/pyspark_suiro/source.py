"""The data source as Spark sees it; Spark makes one wherever it needs one, from the options."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource

from pyspark_suiro.options import parse_source
from pyspark_suiro.schema import source_ddl

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader
    from pyspark.sql.types import StructType

    from pyspark_suiro.reader import StreamReader
    from pyspark_suiro.writer import BatchWriter, StreamWriter

PUSHDOWN_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program in which Spark offers filters. No session is at hand where readers are made, so this
is how to tell whether filters are on.
"""


class SuiroSource(DataSource):
    """`format("suiro")`. The client is imported where it is needed first: most of Spark's Python
    processes only look at names and options.
    """

    @classmethod
    def name(cls) -> str:
        return "suiro"

    def schema(self) -> str:
        from pyspark_suiro.values import decoder_of

        options = parse_source(self.options)
        return source_ddl(options, decoder_of(options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from pyspark_suiro.reader import BatchReader, FilteringBatchReader

        kind = FilteringBatchReader if PUSHDOWN_WORKER in sys.modules else BatchReader
        return kind(schema, self.options)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        from pyspark_suiro.reader import StreamReader

        return StreamReader(schema, self.options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        from pyspark_suiro.sink_check import check_target
        from pyspark_suiro.writer import BatchWriter

        writer = BatchWriter(schema, self.options, overwrite)
        check_target(writer.options)
        return writer

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
        from pyspark_suiro.sink_check import check_target
        from pyspark_suiro.writer import StreamWriter

        writer = StreamWriter(schema, self.options)
        check_target(writer.options)
        return writer
