"""Values that are read as structs: lines of JSON, or Arrow streams.

`json`: each value is one JSON object; fields that the schema does not have are left out, missing
ones are null. `arrow`: each value is an Arrow IPC stream of any number of rows; each of them
becomes a row of Spark's, with the key, the offset and the rest of its record.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pyspark_suiro.errors import BadValue

VALUE = "value"


def parse_values(
    rows: pa.RecordBatch, kind: pa.StructType, value_format: str, where: str
) -> pa.RecordBatch:
    """The rows with `value` as a struct; `where` is for errors."""
    if value_format == "json":
        return _with_value(rows, _json(rows.column(VALUE), kind, where))
    return _arrow(rows, kind, where)


def _with_value(rows: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
    return rows.set_column(rows.schema.get_field_index(VALUE), VALUE, values)


def _json(values: pa.Array, kind: pa.StructType, where: str) -> pa.Array:
    """All values in one go: as the lines of one text. A null value is a null struct."""
    if not len(values):
        return pa.array([], kind)
    try:
        texts = values.fill_null(b"{}").cast(pa.string())
        lines = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
        text = pc.binary_join(lines, "\n")[0].as_buffer()
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(kind)),
                unexpected_field_behavior="ignore",
                newlines_in_values=True,
            ),
        )
    except pa.ArrowInvalid as error:
        raise BadValue(f"{where}: a value is not the JSON that valueSchema says: {error}") from None
    if table.num_rows != len(values):
        raise BadValue(
            f"{where}: {len(values)} values hold {table.num_rows} JSON objects; each must hold one"
        )
    struct = table.combine_chunks().to_struct_array()
    whole = struct.combine_chunks() if isinstance(struct, pa.ChunkedArray) else struct
    whole = whole.cast(kind)
    return (
        pc.if_else(values.is_valid(), whole, pa.scalar(None, kind)) if values.null_count else whole
    )


def _arrow(rows: pa.RecordBatch, kind: pa.StructType, where: str) -> pa.RecordBatch:
    counts = []
    tables = []
    wanted = pa.schema(list(kind))
    for value in rows.column(VALUE):
        table = wanted.empty_table() if value.as_py() is None else _stream(value, wanted, where)
        counts.append(table.num_rows)
        tables.append(table)
    taken = rows.take(pa.array(np.repeat(np.arange(rows.num_rows), counts)))
    table = pa.concat_tables(tables) if tables else wanted.empty_table()
    struct = table.combine_chunks().to_struct_array()
    whole = struct.combine_chunks() if isinstance(struct, pa.ChunkedArray) else struct
    return _with_value(taken, whole.cast(kind))


def _stream(value: pa.BinaryScalar, wanted: pa.Schema, where: str) -> pa.Table:
    try:
        with pa.ipc.open_stream(value.as_buffer()) as stream:
            table = stream.read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise BadValue(f"{where}: a value is not an Arrow stream: {error}") from None
    missing = [name for name in wanted.names if name not in table.schema.names]
    if missing:
        raise BadValue(
            f"{where}: a value has the columns {', '.join(table.schema.names)}, but valueSchema "
            f"wants {', '.join(missing)}"
        )
    try:
        return table.select(wanted.names).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise BadValue(f"{where}: a value does not have valueSchema's types: {error}") from None
