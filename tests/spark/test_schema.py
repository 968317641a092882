"""The columns, for Spark and for Arrow, and typed values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from pyspark_suiro.errors import BadValue, SchemaMismatch
from pyspark_suiro.options import parse_source
from pyspark_suiro.schema import arrow_schema, check_schema, source_ddl, type_name
from pyspark_suiro.values import parser_of

PLAIN = parse_source({"subscribe": "t"})
JSON = parse_source({"subscribe": "t", "valueFormat": "json", "valueSchema": "a INT"})


def columns(**types: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])  # type: ignore[arg-type]


def test_the_columns_are_those_of_sparks_kafka_source() -> None:
    assert source_ddl(PLAIN) == (
        "`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint, "
        "`timestamp` timestamp, `timestampType` int"
    )
    with_headers = parse_source({"subscribe": "t", "includeHeaders": "true"})
    assert source_ddl(with_headers).endswith("`headers` array<struct<key:string,value:binary>>")
    assert "`value` struct<a INT>" in source_ddl(JSON)


def test_arrow_types_are_what_spark_expects() -> None:
    wanted = columns(
        offset=LongType(),
        timestamp=TimestampType(),
        headers=ArrayType(columns(key=StringType(), value=BinaryType())),
        value=columns(a=DecimalType(9, 2), b=BooleanType(), c=ArrayType(DoubleType(), False)),
    )
    assert arrow_schema(wanted.jsonValue()).equals(to_arrow_schema(wanted, timezone="UTC"))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (columns(valu=BinaryType()), "there is no column 'valu'"),
        (columns(value=StringType()), "'value' is asked for as string; it is binary"),
        (columns(offset=IntegerType()), "'offset' is asked for as int; it is bigint"),
        (columns(headers=ArrayType(StringType())), "asked for as array<string>"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(schema: StructType, said: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        check_schema(schema.jsonValue(), PLAIN)
    assert said in str(caught.value)


def test_some_columns_in_any_order_will_do() -> None:
    check_schema(columns(offset=LongType(), value=BinaryType()).jsonValue(), PLAIN)
    check_schema(columns(value=columns(x=LongType())).jsonValue(), JSON)
    with pytest.raises(SchemaMismatch, match="without a column 'value'"):
        check_schema(columns(offset=LongType()).jsonValue(), JSON)
    with pytest.raises(SchemaMismatch, match="with valueFormat it is a struct"):
        check_schema(columns(value=BinaryType()).jsonValue(), JSON)


def test_a_type_that_values_cannot_have_is_refused() -> None:
    wanted = columns(value=columns(m=MapType(StringType(), StringType())))
    assert type_name(wanted.jsonValue()["fields"][0]["type"]) == "struct<m:map>"
    with pytest.raises(SchemaMismatch, match="a field of type map"):
        arrow_schema(wanted.jsonValue())
    with pytest.raises(SchemaMismatch, match="valueSchema"):
        source_ddl(parse_source({"subscribe": "t", "valueFormat": "json"}))


# -- typed values ---------------------------------------------------------------------------------

KIND = pa.struct([("id", pa.int64()), ("name", pa.string())])


def rows(*values: bytes | None) -> pa.RecordBatch:
    return pa.record_batch(
        {"offset": pa.array(range(len(values)), pa.int64()), "value": pa.array(values, pa.binary())}
    )


def parsed(value_format: str, *values: bytes | None) -> list[tuple[int, object]]:
    parse = parser_of(value_format, None)
    assert parse is not None
    batch = parse(rows(*values), KIND, "t-0")
    assert batch.schema.field("value").type == KIND
    pairs = zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True)
    return list(pairs)


def test_json_values() -> None:
    said = parsed(
        "json", b'{"id":1,"name":"a","more":[1]}', None, b'{"name":"x\\ny"}', b'{\n"id":3}'
    )
    assert said == [
        (0, {"id": 1, "name": "a"}),
        (1, None),
        (2, {"id": None, "name": "x\ny"}),
        (3, {"id": 3, "name": None}),
    ]
    assert parsed("json") == []


@pytest.mark.parametrize("bad", [b"{", b"", b'{"id":"x"}', b"{} {}", b"\xff"])
def test_json_that_is_none_is_named(bad: bytes) -> None:
    with pytest.raises(BadValue, match="t-0"):
        parsed("json", b"{}", bad)


def stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_arrow_values_bring_a_row_each() -> None:
    two = stream(pa.table({"name": ["a", "b"], "id": pa.array([1, 2], pa.int32())}))
    none = stream(pa.table({"id": pa.array([], pa.int64()), "name": pa.array([], pa.string())}))
    assert parsed("arrow", two, none, None, two) == [
        (0, {"id": 1, "name": "a"}),
        (0, {"id": 2, "name": "b"}),
        (3, {"id": 1, "name": "a"}),
        (3, {"id": 2, "name": "b"}),
    ]
    assert parsed("arrow") == []


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"x", "not an Arrow stream"),
        (stream(pa.table({"id": [1]})), "wants name"),
        (stream(pa.table({"id": ["x"], "name": ["y"]})), "valueSchema's types"),
    ],
)
def test_arrow_that_is_none_is_named(bad: bytes, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        parsed("arrow", bad)
