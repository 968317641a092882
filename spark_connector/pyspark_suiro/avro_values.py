"""Values in Avro's binary encoding, each by itself, written with the schema that is given.

Not Avro files, and no header of a schema registry before the value.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from suiro.model.errors import InvalidSetting

from pyspark_suiro.errors import SchemaMismatch

PRIMITIVES: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "bytes": "BINARY",
    "fixed": "BINARY",
    "enum": "STRING",
}
LOGICAL: Final = {
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
}


@dataclass
class AvroValues:
    """A decoder that can be pickled; `text` is the schema in JSON."""

    text: str

    def fields_ddl(self) -> str:
        """What Spark reads, field by field."""
        try:
            schema = json.loads(self.text)
        except ValueError as error:
            raise InvalidSetting(
                f"with valueFormat 'avro', valueSchema is an Avro schema in JSON: {error}"
            ) from None
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise InvalidSetting("the Avro schema in valueSchema must be that of a record")
        return _fields(schema)

    def decode(self, value: bytes) -> dict[str, Any]:
        import fastavro

        found: Any = fastavro.schemaless_reader(io.BytesIO(value), self._parsed, None)
        return dict(found)

    @cached_property
    def _parsed(self) -> Any:
        import fastavro

        return fastavro.parse_schema(json.loads(self.text))

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text}


def _fields(record: dict[str, Any]) -> str:
    return ", ".join(f"`{field['name']}` {_type(field['type'])}" for field in record["fields"])


def _type(schema: Any) -> str:
    """A name, a union, or an object whose type may be any of these again."""
    if isinstance(schema, str):
        return _named({"type": schema})
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) == 1:
            return _type(others[0])
        raise SchemaMismatch(f"an Avro union of several types cannot be read: {schema}")
    return _named(schema) if isinstance(schema["type"], str) else _type(schema["type"])


def _named(schema: dict[str, Any]) -> str:
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return f"DECIMAL({schema['precision']}, {schema.get('scale', 0)})"
    if logical in LOGICAL:
        return LOGICAL[logical]
    if kind == "record":
        return f"STRUCT<{_fields(schema)}>"
    if kind == "array":
        return f"ARRAY<{_type(schema['items'])}>"
    if logical is None and kind in PRIMITIVES:
        return PRIMITIVES[kind]
    raise SchemaMismatch(
        f"a field of Avro type {logical or kind} cannot be read with valueFormat: read the value "
        "as bytes, and decode it in a function of your own"
    )
