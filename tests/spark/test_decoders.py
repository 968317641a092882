"""Values in Avro and Protobuf: what Spark is told of them, and what becomes of them."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Kind
from pyspark_suiro.errors import BadValue, SchemaMismatch
from pyspark_suiro.options import parse_source
from pyspark_suiro.schema import source_ddl
from pyspark_suiro.values import decoder_of, parser_of
from suiro.model.errors import InvalidSetting

from tests.spark.avro_click import AT, AVRO, CLICK, avro

if TYPE_CHECKING:
    from pathlib import Path

AVRO_DDL = (
    "`id` BIGINT, `user` STRING, `at` TIMESTAMP, `price` DECIMAL(9, 2), `kind` STRING, "
    "`tags` ARRAY<STRING>, `place` STRUCT<`x` INT>"
)
AVRO_KIND = pa.struct(
    {
        "id": pa.int64(),
        "user": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
        "price": pa.decimal128(9, 2),
        "kind": pa.string(),
        "tags": pa.list_(pa.string()),
        "place": pa.struct({"x": pa.int32()}),
    }
)


def ddl(given: dict[str, str]) -> str:
    """What Spark is told of the values."""
    options = parse_source({"subscribe": "t", **given})
    column = source_ddl(options, decoder_of(options)).partition("`value` struct<")[2]
    return column.partition(">, `topic`")[0]


def read(given: dict[str, str], kind: pa.StructType, *values: bytes | None) -> list[Any]:
    """As a task does, with what came from the driver."""
    options = parse_source({"subscribe": "t", **given})
    parse = parser_of(options.value_format, pickle.loads(pickle.dumps(decoder_of(options))))
    assert parse is not None
    found = parse(pa.record_batch({"value": pa.array(values, pa.binary())}), kind, "t-0")
    listed: list[Any] = found.column("value").to_pylist()
    return listed


def test_avro_values() -> None:
    given = {"valueFormat": "avro", "valueSchema": json.dumps(AVRO)}
    assert ddl(given) == AVRO_DDL
    assert read(given, AVRO_KIND, avro(CLICK), None) == [CLICK, None]
    some = pa.struct({"id": pa.int64()})
    assert read(given, some, avro(CLICK)) == [{"id": 7}]
    with pytest.raises(BadValue, match="t-0: a value is not what valueSchema says"):
        read(given, AVRO_KIND, avro(CLICK), b"\x0e")


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("id LONG", "an Avro schema in JSON"),
        ("", "an Avro schema in JSON"),
        ('"string"', "must be that of a record"),
    ],
)
def test_avro_wants_its_own_schema(schema: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        ddl({"valueFormat": "avro", "valueSchema": schema})


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (["int", "string"], "union of several types"),
        ({"type": "map", "values": "int"}, "Avro type map"),
        ({"type": "int", "logicalType": "time-millis"}, "Avro type time-millis"),
    ],
)
def test_avro_types_that_spark_has_not_are_named(kind: Any, said: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}
    with pytest.raises(SchemaMismatch, match=said):
        ddl({"valueFormat": "avro", "valueSchema": json.dumps(schema)})


def field(
    name: str,
    number: int,
    kind: Kind.Type.ValueType,
    type_name: str = "",
    *,
    repeated: bool = False,
) -> Kind:
    label = Kind.LABEL_REPEATED if repeated else Kind.LABEL_OPTIONAL
    return Kind(name=name, number=number, type=kind, label=label, type_name=type_name or None)


@pytest.fixture
def descriptors(tmp_path: Path) -> str:
    """As protoc writes them: a message with a bit of everything."""
    file = descriptor_pb2.FileDescriptorProto(
        name="click.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="SEE", number=0)
    kind.value.add(name="BUY", number=1)
    file.message_type.add(name="Place", field=[field("x", 1, Kind.TYPE_INT32)])
    click = file.message_type.add(name="Click")
    click.field.extend(
        [
            field("id", 1, Kind.TYPE_UINT64),
            field("at", 2, Kind.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
            field("kind", 3, Kind.TYPE_ENUM, ".shop.Kind"),
            field("tags", 4, Kind.TYPE_STRING, repeated=True),
            field("place", 5, Kind.TYPE_MESSAGE, ".shop.Place"),
            field("raw", 6, Kind.TYPE_BYTES),
        ]
    )
    file.message_type.add(name="Loop", field=[field("l", 1, Kind.TYPE_MESSAGE, ".shop.Loop")])
    whole = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(whole.file.add())
    whole.file.append(file)
    path = tmp_path / "click.desc"
    path.write_bytes(whole.SerializeToString())
    return str(path)


def test_protobuf_values(descriptors: str) -> None:
    given = {
        "valueFormat": "protobuf",
        "valueDescriptor": descriptors,
        "valueSchema": "shop.Click",
    }
    assert ddl(given) == (
        "`id` DECIMAL(20, 0), `at` TIMESTAMP, `kind` STRING, `tags` ARRAY<STRING>, "
        "`place` STRUCT<`x` INT>, `raw` BINARY"
    )
    kind = pa.struct(
        {
            "id": pa.decimal128(20, 0),
            "at": pa.timestamp("us", tz="UTC"),
            "kind": pa.string(),
            "tags": pa.list_(pa.string()),
            "place": pa.struct({"x": pa.int32()}),
            "raw": pa.binary(),
        }
    )
    at = timestamp_pb2.Timestamp(seconds=int(AT.timestamp())).SerializeToString()
    whole = b"\x08\x07" + b"\x12" + bytes([len(at)]) + at + b"\x18\x01"
    whole += b"\x22\x01a\x22\x01b" + b"\x2a\x02\x08\x05" + b"\x32\x01r"
    filled: dict[str, Any] = {"id": Decimal(7), "at": AT, "kind": "BUY", "tags": ["a", "b"]}
    filled |= {"place": {"x": 5}, "raw": b"r"}
    empty: dict[str, Any] = {
        "id": Decimal(0),
        "at": None,
        "kind": "SEE",
        "tags": [],
        "place": None,
        "raw": b"",
    }
    assert read(given, kind, whole, b"", None) == [filled, empty, None]
    with pytest.raises(BadValue, match="t-0: a value is not what valueSchema says"):
        read(given, kind, whole, b"\xff")


def test_protobuf_wants_its_descriptors(descriptors: str, tmp_path: Path) -> None:
    def refused(said: str, **given: str) -> None:
        with pytest.raises((InvalidSetting, SchemaMismatch), match=said):
            ddl({"valueFormat": "protobuf", **given})

    refused("descriptor_set_out", valueSchema="shop.Click")
    refused("cannot be read", valueSchema="shop.Click", valueDescriptor=str(tmp_path / "none"))
    refused("no message 'Click'", valueSchema="Click", valueDescriptor=descriptors)
    refused("holds itself", valueSchema="shop.Loop", valueDescriptor=descriptors)
    (tmp_path / "torn").write_bytes(b"\xff\xff")
    torn = str(tmp_path / "torn")
    refused("no whole descriptor set", valueSchema="shop.Click", valueDescriptor=torn)
