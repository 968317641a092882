"""Values that are read as structs: lines of JSON, Arrow streams, Avro, Protobuf.

`json`: each value is one JSON object; fields that the schema does not have are left out, missing
ones are null. `arrow`: each value is an Arrow IPC stream of any number of rows; each of them
becomes a row of Spark's, with the key, the offset and the rest of its record. `avro`, `protobuf`:
each value is decoded by itself, as there is no way to do it by columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pyspark_suiro.errors import BadValue

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_suiro.options import SourceOptions

    Parse = Callable[[pa.RecordBatch, pa.StructType, str], pa.RecordBatch]
    """Rows, the type of the struct, and where the rows are, for errors."""

VALUE = "value"


class Decoder(Protocol):
    """Of one value at a time."""

    def fields_ddl(self) -> str: ...

    def decode(self, value: bytes) -> dict[str, Any]: ...


def decoder_of(options: SourceOptions) -> Decoder | None:
    """For formats that have schemas of their own; made on the driver, can be pickled."""
    match options.value_format:
        case "avro":
            from pyspark_suiro.avro_values import AvroValues

            return AvroValues(options.value_schema)
        case "protobuf":
            from pyspark_suiro.protobuf_values import ProtobufValues

            return ProtobufValues.of_file(options.value_descriptor, options.value_schema)
        case _:
            return None


def parser_of(value_format: str, decoder: Decoder | None) -> Parse | None:
    """Makes structs of the column `value`; None where it stays bytes."""
    if decoder is not None:
        return lambda rows, kind, where: _with_value(rows, _decoded(rows, decoder, kind, where))
    if value_format == "json":
        return lambda rows, kind, where: _with_value(rows, _json(rows.column(VALUE), kind, where))
    return _arrow if value_format == "arrow" else None


def _decoded(rows: pa.RecordBatch, decoder: Decoder, kind: pa.StructType, where: str) -> pa.Array:
    decode = decoder.decode
    try:
        found = [None if v is None else decode(v) for v in rows.column(VALUE).to_pylist()]
        return pa.array(found, kind)
    except Exception as error:  # the libraries' own, one for each way to be malformed
        raise BadValue(f"{where}: a value is not what valueSchema says: {error!r}") from None


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
