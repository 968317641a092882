"""The columns of the source, for Spark and for Arrow. Pure.

They are those of Spark's Kafka source. What is yielded must have exactly the Arrow types that Spark
expects, so both sides are told here from one table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pyspark_suiro.errors import SchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_suiro.options import SourceOptions
    from pyspark_suiro.values import Decoder

HEADERS: Final = "headers"
VALUE: Final = "value"

DDL: Final = {
    "key": "binary",
    VALUE: "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key:string,value:binary>>",
}
"""Each column and its type, as Spark writes types."""


def source_ddl(options: SourceOptions, decoder: Decoder | None = None) -> str:
    """The schema of a source whose user gave none."""
    columns = dict(DDL)
    if not options.include_headers:
        del columns[HEADERS]
    if options.value_format:
        if not options.value_schema and decoder is None:
            raise SchemaMismatch(
                f"valueFormat is '{options.value_format}': say which fields a value has with the "
                "option valueSchema, as in 'id LONG, name STRING'"
            )
        fields = options.value_schema if decoder is None else decoder.fields_ddl()
        columns[VALUE] = f"struct<{fields}>"
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def check_schema(schema: Mapping[str, Any], options: SourceOptions) -> None:
    """Refuse columns that the source does not have; `schema` is a StructType's JSON."""
    if options.value_format and VALUE not in [field["name"] for field in schema["fields"]]:
        raise SchemaMismatch("valueFormat is of no use without a column 'value' in the schema")
    for field in schema["fields"]:
        name = field["name"]
        if name not in DDL:
            raise SchemaMismatch(
                f"there is no column '{name}': the source has {', '.join(DDL)}. Fields inside of "
                "the value are read with the options valueFormat and valueSchema"
            )
        kind = type_name(field["type"])
        if name == VALUE and options.value_format:
            if not kind.startswith("struct<"):
                raise SchemaMismatch(
                    f"column 'value' is asked for as {kind}; with valueFormat it is a struct"
                )
        elif kind != DDL[name]:
            raise SchemaMismatch(
                f"column '{name}' is asked for as {kind}; it is {DDL[name]}: read it so, and cast "
                "it with select"
            )


def type_name(kind: Any) -> str:
    """A type of a StructType's JSON, as Spark writes it."""
    if isinstance(kind, str):
        return {"integer": "int", "long": "bigint"}.get(kind, kind)
    if kind["type"] == "array":
        return f"array<{type_name(kind['elementType'])}>"
    if kind["type"] == "struct":
        fields = [f"{each['name']}:{type_name(each['type'])}" for each in kind["fields"]]
        return f"struct<{','.join(fields)}>"
    return str(kind["type"])


# -- Arrow ----------------------------------------------------------------------------------------

_ARROW: Final = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """What Spark expects for a StructType's JSON."""
    return pa.schema([_arrow_field(field) for field in schema["fields"]])


def _arrow_field(field: Mapping[str, Any]) -> pa.Field:
    return pa.field(field["name"], arrow_type(field["type"]), nullable=field["nullable"])


def arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        if kind in _ARROW:
            return _ARROW[kind]
        if kind.startswith("decimal("):
            precision, _, scale = kind[len("decimal(") : -1].partition(",")
            return pa.decimal128(int(precision), int(scale))
    elif kind["type"] == "array":
        element = arrow_type(kind["elementType"])
        return pa.list_(pa.field("element", element, nullable=kind["containsNull"]))
    elif kind["type"] == "struct":
        return pa.struct([_arrow_field(field) for field in kind["fields"]])
    raise SchemaMismatch(
        f"a field of type {type_name(kind)} cannot be read with valueFormat: read the value as "
        "bytes and parse it in Spark"
    )
