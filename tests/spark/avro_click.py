"""A click in Avro, for the tests that read one."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
PLACE = {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": PRICE},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["SEE", "BUY"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "place", "type": PLACE},
    ],
}
CLICK: dict[str, Any] = {
    "id": 7,
    "user": None,
    "at": AT,
    "price": Decimal("1.50"),
    "kind": "BUY",
    "tags": ["a", "b"],
    "place": {"x": 1},
}


def avro(record: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(AVRO), record)
    return sink.getvalue()
