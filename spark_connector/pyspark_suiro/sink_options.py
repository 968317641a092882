"""The sink's options: from the strings that Spark hands over to typed values. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from suiro.model.errors import InvalidSetting
from suiro.settings import ProducerSettings, build_settings

from pyspark_suiro.errors import SchemaMismatch
from pyspark_suiro.options import check_names, choice, client_part, typed_settings
from pyspark_suiro.schema import DDL, HEADERS, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

SINK_NAMES: Final = ("bootstrap", "topic", "delivery", "checkpointLocation", "queryName")
"""The last two are Spark's own."""

SINK_OTHERWISE: Final = {
    "kafka.bootstrap.servers": "it is called 'bootstrap', as in suiro://localhost:9750",
    "path": "name the topic with the option 'topic', or in a column 'topic', not in save()",
    "subscribe": "writing takes 'topic', or a column 'topic'; 'subscribe' is for reading",
    "includeheaders": "a column 'headers' is written if there is one: leave it out",
}

PRODUCER_SETTINGS: Final[dict[str, type]] = {
    "batch_size": int,
    "buffer_memory": int,
    "client_id": str,
    "compression_type": str,
    "delivery_timeout_ms": float,
    "linger_ms": float,
    "max_block_ms": float,
    "partitioner": str,
    "request_timeout_ms": float,
}

ALLOWED: Final = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
    HEADERS: (DDL[HEADERS],),
}
"""The columns that can be written, and the types that they may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where to write, and what is promised."""

    bootstrap: str | None
    topic: str
    """Empty: each row says its topic."""
    is_exactly_once: bool
    checkpoint: str
    client: tuple[tuple[str, Any], ...]


def parse_sink(given: Mapping[str, str]) -> SinkOptions:
    """The options of `df.write` or `df.writeStream`."""
    options = {name.lower(): value for name, value in given.items()}
    check_names(options, SINK_NAMES, SINK_OTHERWISE)
    bootstrap, client = client_part(options)
    delivery = choice(options, "delivery", ("", "exactly_once", "at_least_once"))
    client.setdefault("client.id", _client_id(options.get("queryname", "")))
    parsed = SinkOptions(
        bootstrap=bootstrap,
        topic=options.get("topic", "").strip(),
        is_exactly_once=delivery != "at_least_once",
        checkpoint=options.get("checkpointlocation", ""),
        client=typed_settings(client, PRODUCER_SETTINGS),
    )
    build_settings(ProducerSettings, dict(parsed.client))
    return parsed


def _client_id(query: str) -> str:
    """What `suiro txn list` and `describe` show, beside the query's id."""
    return f"spark-{query}" if query else "spark"


def check_columns(schema: Mapping[str, Any], options: SinkOptions) -> None:
    """Refuse rows that cannot be written; `schema` is a StructType's JSON."""
    names = []
    for field in schema["fields"]:
        name, kind = field["name"], type_name(field["type"])
        names.append(name)
        if name not in ALLOWED:
            raise SchemaMismatch(
                f"column '{name}' cannot be written: select {', '.join(ALLOWED)} (to_json makes a "
                "value of a struct)"
            )
        if kind not in ALLOWED[name]:
            raise SchemaMismatch(
                f"column '{name}' is {kind}; it must be {' or '.join(ALLOWED[name])}: cast it"
            )
    if "value" not in names:
        raise SchemaMismatch("there is no column 'value' to write")
    if not options.topic and "topic" not in names:
        raise InvalidSetting("say where to write: with the option 'topic', or in a column 'topic'")
