"""The source's options: from the strings that Spark hands over to typed values. Pure.

The names are those of Spark's Kafka source wherever they mean the same. Spark gives the names in
lower case. Whatever is wrong is an InvalidSetting that says what would be right.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from suiro.model.errors import InvalidSetting
from suiro.model.ids import TopicPartition
from suiro.settings import ConsumerSettings, build_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

EARLIEST: Final = -2
LATEST: Final = -1
"""What stands for an end of the log in the JSON of offsets."""

FORMATS: Final = ("json", "avro", "protobuf", "arrow")
BOUNDS: Final = {"earliest": EARLIEST, "latest": LATEST}
DRIVER_TIMEOUT_MS: Final = 8_000.0
"""How long planning waits for the cluster: an unreachable one is an error within seconds."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Every partition of these."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """Every partition of the topics whose whole name matches, also of those made later."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Partitions:
    """Just these."""

    partitions: tuple[TopicPartition, ...]


Selection = Topics | Matching | Partitions


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The same end of the log in every partition: EARLIEST or LATEST."""

    bound: int


@dataclass(frozen=True, slots=True)
class ByPartition:
    """An offset for each partition, or EARLIEST or LATEST."""

    offsets: dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record at or after a time (ms): one for all, or one for each partition."""

    everywhere_ms: int | None
    by_partition_ms: dict[TopicPartition, int]


Position = Everywhere | ByPartition | AtTime


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What to read, and how."""

    bootstrap: str | None
    selection: Selection
    starting: Position | None
    """None: earliest for a batch, latest for a stream."""
    ending: Position | None
    """None: latest. Only for a batch."""
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None
    min_partitions: int
    max_records_per_partition: int
    include_headers: bool
    group_id: str
    """A consumer group whose offsets say where the query is; empty: none."""
    isolation: Literal["read_committed", "read_uncommitted"]
    client: tuple[tuple[str, Any], ...]
    value_format: str
    value_schema: str
    """Fields as Spark writes them, an Avro schema, or the name of a Protobuf message."""
    value_descriptor: str
    """Protobuf only: where the file of descriptors is."""

    def consumer_settings(self) -> ConsumerSettings:
        """For the tasks; positions are always given, so nothing may ever be reset."""
        given = {"request_timeout_ms": DRIVER_TIMEOUT_MS, **dict(self.client)}
        return build_settings(
            ConsumerSettings,
            {**given, "isolation": self.isolation, "auto_offset_reset": "none"},
        )


def parse_source(given: Mapping[str, str]) -> SourceOptions:
    """The options of `spark.read` or `spark.readStream`."""
    options = {name.lower(): value for name, value in given.items()}
    check_names(options, NAMES, OTHERWISE)
    bootstrap, client = client_part(options)
    parsed = SourceOptions(
        bootstrap=bootstrap,
        selection=_selection(options),
        starting=_position(options, "starting"),
        ending=_position(options, "ending"),
        fail_on_data_loss=_flag(options, "failOnDataLoss", True),
        max_offsets_per_trigger=_count(options, "maxOffsetsPerTrigger") or None,
        min_partitions=_count(options, "minPartitions"),
        max_records_per_partition=_count(options, "maxRecordsPerPartition"),
        include_headers=_flag(options, "includeHeaders", False),
        group_id=options.get("groupid", "").strip(),
        isolation=_isolation(options),
        client=typed_settings(client, CLIENT_SETTINGS),
        value_format=choice(options, "valueFormat", ("", *FORMATS)),
        value_schema=options.get("valueschema", "").strip(),
        value_descriptor=options.get("valuedescriptor", "").strip(),
    )
    if parsed.value_schema and not parsed.value_format:
        raise InvalidSetting(f"valueSchema is of no use without valueFormat ({', '.join(FORMATS)})")
    if parsed.value_descriptor and parsed.value_format != "protobuf":
        raise InvalidSetting("valueDescriptor is for valueFormat 'protobuf': leave it out")
    parsed.consumer_settings()
    return parsed


def check_batch(options: SourceOptions) -> None:
    """Refuse what can only be empty."""
    if options.starting == Everywhere(LATEST):
        raise InvalidSetting("startingOffsets is 'latest': a batch would be empty")
    if options.ending == Everywhere(EARLIEST):
        raise InvalidSetting("endingOffsets is 'earliest': a batch would be empty")
    if options.group_id:
        raise InvalidSetting("groupId is for streams: a batch commits no offsets, leave it out")


def check_stream(options: SourceOptions) -> None:
    """Refuse an end: a stream has none."""
    if options.ending is not None:
        raise InvalidSetting(
            "a stream has no end: leave the ending option out, or read a batch (spark.read), "
            "or use trigger(availableNow=True)"
        )


# -- names ----------------------------------------------------------------------------------------

PREFIX: Final = "suiro."
NAMES: Final = (
    "bootstrap",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "groupId",
    "isolation",
    "valueFormat",
    "valueSchema",
    "valueDescriptor",
)
OTHERWISE: Final = {
    "kafka.bootstrap.servers": "it is called 'bootstrap', as in suiro://localhost:9750",
    "path": "name the topics with 'subscribe', 'subscribePattern' or 'assign', not in load()",
    "topic": "reading takes 'subscribe', 'subscribePattern' or 'assign'; 'topic' is for writing",
    "kafka.isolation.level": "it is called 'isolation'",
    "groupidprefix": "a query is no member of a group: leave it out, or see 'groupId'",
    "kafka.group.id": "it is called 'groupId': a group for which the query commits its offsets",
    "minoffsetspertrigger": "leave it out, and set the trigger's interval instead",
    "maxtriggerdelay": "leave it out, and set the trigger's interval instead",
    "startingoffsetsbytimestampstrategy": "leave it out: a time after the last record is the end",
}
"""What users of Spark's Kafka source may look for."""


def check_names(
    options: Mapping[str, str], names: tuple[str, ...], otherwise: Mapping[str, str]
) -> None:
    """Refuse an option that there is not, with a hint; those of the client are checked later."""
    by_lower = {name.lower(): name for name in names}
    for name in options:
        if not name.startswith(PREFIX) and name not in by_lower:
            hint = otherwise.get(name) or _hint(name, by_lower)
            raise InvalidSetting(f"there is no option '{name}': {hint}")


def _hint(name: str, by_lower: Mapping[str, str]) -> str:
    if name.startswith("kafka."):
        return f"settings of the client are given as 'suiro.*', as in 'suiro.{name[6:]}'"
    near = difflib.get_close_matches(name, by_lower, n=1)
    if near:
        return f"did you mean '{by_lower[near[0]]}'?"
    return f"known are {', '.join(by_lower.values())} and 'suiro.*' for the client"


def client_part(options: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    """Where to connect, and the client's settings without their prefix."""
    client = {n.removeprefix(PREFIX): v for n, v in options.items() if n.startswith(PREFIX)}
    return client.pop("bootstrap.servers", None) or options.get("bootstrap"), client


# -- what to read ---------------------------------------------------------------------------------


def _selection(options: Mapping[str, str]) -> Selection:
    names = [n for n in ("subscribe", "subscribePattern", "assign") if n.lower() in options]
    if len(names) != 1:
        said = " and ".join(f"'{name}'" for name in names) or "none"
        raise InvalidSetting(
            "say what to read with one of 'subscribe' (topic,topic), 'subscribePattern' (a "
            f"regular expression) and 'assign' (JSON, as in {{\"clicks\":[0,1]}}); {said} was given"
        )
    text = options[names[0].lower()].strip()
    if not text:
        raise InvalidSetting(f"'{names[0]}' is empty")
    match names[0]:
        case "subscribe":
            return Topics(tuple(dict.fromkeys(n.strip() for n in text.split(",") if n.strip())))
        case "subscribePattern":
            try:
                re.compile(text)
            except re.error as error:
                raise InvalidSetting(f"subscribePattern '{text}' is no pattern: {error}") from None
            return Matching(text)
        case _:
            return Partitions(tuple(sorted(_assigned(text))))


def _assigned(text: str) -> set[TopicPartition]:
    example = 'as in {"clicks":[0,1]}'
    found = set()
    for topic, numbers in _json_object("assign", text, example).items():
        if not isinstance(numbers, list) or not all(_is_int(n) and n >= 0 for n in numbers):
            raise InvalidSetting(f"assign: '{topic}' needs a list of partitions, {example}")
        found |= {TopicPartition(topic, number) for number in numbers}
    if not found:
        raise InvalidSetting(f"assign names no partition; {example}")
    return found


def _position(options: Mapping[str, str], side: str) -> Position | None:
    names = [f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"]
    given = [name for name in names if name.lower() in options]
    if len(given) > 1:
        raise InvalidSetting(f"'{given[0]}' and '{given[1]}' exclude each other: give one")
    if not given:
        return None
    name, text = given[0], options[given[0].lower()].strip()
    if name == names[0]:
        return AtTime(_whole_number(name, text), {})
    if name == names[1]:
        example = 'as in {"clicks":{"0":1700000000000}}'
        return AtTime(None, _by_partition(name, text, example, 0))
    if text.lower() in BOUNDS:
        return Everywhere(BOUNDS[text.lower()])
    if not text.startswith("{"):
        raise InvalidSetting(f"{name} is '{text}'; it must be 'earliest', 'latest' or JSON")
    example = 'as in {"clicks":{"0":23,"1":-2}}, where -2 is earliest and -1 latest'
    return ByPartition(_by_partition(name, text, example, EARLIEST))


def _by_partition(name: str, text: str, example: str, least: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json_object(name, text, example).items():
        if not isinstance(numbers, dict):
            raise InvalidSetting(f"{name}: '{topic}' needs an object of partitions, {example}")
        for partition, number in numbers.items():
            if not partition.isdecimal() or not _is_int(number) or number < least:
                raise InvalidSetting(f"{name}: '{topic}', partition '{partition}': {example}")
            found[TopicPartition(topic, int(partition))] = number
    return found


# -- values ---------------------------------------------------------------------------------------


def _json_object(name: str, text: str, example: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise InvalidSetting(f"{name} is not JSON ({error}); {example}") from None
    if not isinstance(parsed, dict):
        raise InvalidSetting(f"{name} must be a JSON object, {example}")
    return parsed


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole_number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise InvalidSetting(f"{name} is '{text}'; it must be a whole number")
    return int(text)


def _count(options: Mapping[str, str], name: str) -> int:
    """A number from 1 up; 0 where it is not given."""
    text = options.get(name.lower())
    if text is None:
        return 0
    number = _whole_number(name, text.strip())
    if number < 1:
        raise InvalidSetting(f"{name} is {number}; it must be 1 or more")
    return number


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name.lower())
    if text is None:
        return default
    if text.strip().lower() not in {"true", "false"}:
        raise InvalidSetting(f"{name} is '{text}'; it must be true or false")
    return text.strip().lower() == "true"


def choice(options: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    text = options.get(name.lower(), "").strip().lower()
    if text not in allowed:
        said = " or ".join(f"'{value}'" for value in allowed if value)
        raise InvalidSetting(f"{name} is '{text}'; it must be {said}")
    return text


def _isolation(options: Mapping[str, str]) -> Literal["read_committed", "read_uncommitted"]:
    name = "isolation"
    if choice(options, name, ("", "read_committed", "read_uncommitted")) == "read_uncommitted":
        return "read_uncommitted"
    return "read_committed"


CLIENT_SETTINGS: Final[dict[str, type]] = {
    "client_id": str,
    "client_rack": str,
    "fetch_credit": int,
    "fetch_max_bytes": int,
    "max_partition_fetch_bytes": int,
    "request_timeout_ms": float,
}
"""Those of a consumer that mean something here, by the names that `suiro.*` options may have."""


def typed_settings(
    given: Mapping[str, str], known: Mapping[str, type]
) -> tuple[tuple[str, Any], ...]:
    """The client's settings in their types, in order; `given` without the prefix."""
    return tuple(sorted((name, _typed(name, text, known)) for name, text in given.items()))


def _typed(name: str, text: str, known: Mapping[str, type]) -> Any:
    plain = name.replace(".", "_")
    kind = known.get(plain)
    if kind is None:
        near = difflib.get_close_matches(plain, known, n=1)
        every = ", ".join(PREFIX + each.replace("_", ".") for each in known)
        meant = f"did you mean '{PREFIX}{near[0].replace('_', '.')}'?" if near else ""
        raise InvalidSetting(
            f"there is no option '{PREFIX}{name}': {meant or f'known are {every}'}"
        )
    try:
        return kind(text)
    except ValueError:
        raise InvalidSetting(f"{PREFIX}{name} is '{text}'; it must be a number") from None
