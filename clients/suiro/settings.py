"""Client settings: typed, with their defaults and bounds in one place.

The names that Kafka's users know are accepted where they mean the same; a wrong name is refused
with the nearest right one. Where to connect comes from, in this order: the argument, the
environment variable SUIRO, the context that SUIRO_CONTEXT names, the current context, the node that
`suiro up` starts on this machine.
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from suiro.contexts import bootstrap_of_context
from suiro.model.batch import Compression
from suiro.model.errors import InvalidSetting
from suiro.model.ids import Address
from suiro.model.limits import BATCH_BYTES_MAX, MIB, PRODUCE_IN_FLIGHT_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.assignor import Assignor

DEFAULT_PORT: Final = 9750
"""Where the first broker of `suiro up` listens, and where every client looks."""

ENVIRONMENT: Final = "SUIRO"
SCHEME: Final = "suiro://"
_ADDRESS: Final = re.compile(r"(\[(?P<bracketed>[^\]]+)\]|(?P<host>[^:\[\]]+))(:(?P<port>\d+))?")

S = TypeVar("S")


def parse_bootstrap(text: str | None = None) -> tuple[Address, ...]:
    """`suiro://host:port,host:port` (the scheme and the ports may be left out) as addresses."""
    given = text or os.environ.get(ENVIRONMENT) or bootstrap_of_context()
    given = given or f"127.0.0.1:{DEFAULT_PORT}"
    addresses = tuple(_parse_address(part) for part in given.removeprefix(SCHEME).split(","))
    return tuple(dict.fromkeys(addresses))


def _parse_address(text: str) -> Address:
    text = text.strip().rstrip("/")
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 65536:
        raise InvalidSetting(f"'{text}' is not host:port, as in suiro://localhost:{DEFAULT_PORT}")
    return Address(found["bracketed"] or found["host"], port)


PARTITIONERS: Final = ("murmur2", "sticky", "round_robin")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer sends: what `Producer` takes as keyword arguments, or whole as `settings`.

    >>> settings = suiro.ProducerSettings(linger_ms=20, compression=suiro.Compression.ZSTD)
    >>> with suiro.Producer(settings=settings) as producer:
    ...     producer.send("orders", b"value").result(10).topic
    'orders'
    >>> suiro.Producer(linger=20)
    Traceback (most recent call last):
    suiro.model.errors.InvalidSetting: there is no setting 'linger': did you mean 'linger_ms'?...
    """

    acks: Literal["all", 0, 1] = "all"
    """Who must hold a record before it counts as sent: all in-sync replicas, the leader, nobody."""
    enable_idempotence: bool | None = None
    """Store each record once, in order, whatever is sent again. Unless said otherwise it is on
    where it can be, which is with acks="all".
    """
    max_in_flight: int = PRODUCE_IN_FLIGHT_MAX
    """Batches of one partition that may be unanswered."""
    partitioner: str | Callable[[bytes | None, int], int] = "murmur2"
    """Which partition a record goes to that names none: "murmur2" by its key, as Kafka's clients
    do, and sticky without one; "sticky" or "round_robin" whatever its key; or a function of the key
    and the number of partitions.
    """
    compression: Compression = Compression.NONE
    batch_size: int = MIB
    """Bytes after which a batch leaves at once."""
    linger_ms: float = 5.0
    """How long a batch may wait for more records while an earlier one is under way."""
    buffer_memory: int = 64 * MIB
    """Bytes that may be waiting; beyond it `send` blocks, for at most `max_block_ms`."""
    max_block_ms: float = 60_000.0
    delivery_timeout_ms: float = 120_000.0
    """From `send` to giving up, retries included."""
    request_timeout_ms: float = 30_000.0
    client_id: str = "suiro-python"
    transactional_id: str = ""
    """The name under which this producer's transactions go on after a restart; a newer producer of
    the same name fences the older. Empty: no transactions.
    """
    transaction_timeout_ms: float = 60_000.0
    """A transaction that is open for longer is aborted by its coordinator."""

    def __post_init__(self) -> None:
        _check(
            not self.transactional_id or self.is_idempotent,
            "transactional_id",
            self.transactional_id,
            "empty, as acks is not 'all' or idempotence is off",
        )
        _check(self.acks in {"all", 0, 1}, "acks", self.acks, "'all', 1 or 0")
        _check(
            1 <= self.batch_size <= BATCH_BYTES_MAX // 2,
            "batch_size",
            self.batch_size,
            f"between 1 and {BATCH_BYTES_MAX // 2}",
        )
        _check(
            self.enable_idempotence is not True or self.acks == "all",
            "enable_idempotence",
            self.enable_idempotence,
            "False or left out, as acks is not 'all'",
        )
        _check(
            1 <= self.max_in_flight <= PRODUCE_IN_FLIGHT_MAX,
            "max_in_flight",
            self.max_in_flight,
            f"between 1 and {PRODUCE_IN_FLIGHT_MAX}",
        )
        _check(
            callable(self.partitioner) or self.partitioner in PARTITIONERS,
            "partitioner",
            self.partitioner,
            f"a function or one of {', '.join(PARTITIONERS)}",
        )
        _check(self.linger_ms >= 0, "linger_ms", self.linger_ms, "0 or more")
        _check(
            self.buffer_memory >= self.batch_size,
            "buffer_memory",
            self.buffer_memory,
            "at least batch_size",
        )
        _check(
            self.delivery_timeout_ms > 0,
            "delivery_timeout_ms",
            self.delivery_timeout_ms,
            "more than 0",
        )

    @property
    def is_idempotent(self) -> bool:
        """Whether each record is stored once.

        >>> suiro.ProducerSettings(acks=1).is_idempotent
        False
        """
        return self.acks == "all" and self.enable_idempotence is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """How a consumer reads: what `Consumer` takes as keyword arguments, or whole as `settings`.

    >>> settings = suiro.ConsumerSettings(auto_offset_reset="earliest", max_poll_records=1)
    >>> with suiro.Consumer(settings=settings) as consumer:
    ...     consumer.assign(consumer.partitions_of("fruit"))
    ...     len(consumer.poll(10))
    1
    """

    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    auto_offset_reset: Literal["earliest", "latest", "none"] = "latest"
    """Where to begin without a position, or with one that is no longer in the log."""
    max_poll_records: int = 500
    """The most that one `poll` returns."""
    max_arrow_records: int = 1_000_000
    """The most that one `poll_arrow` returns."""
    fetch_credit: int = 8 * MIB
    """Bytes of one partition that may be on their way or buffered."""
    fetch_max_bytes: int = 64 * MIB
    """The same for all partitions together: bounds the memory."""
    fetch_min_bytes: int = 1
    """A poll waits until so much is there, but for at most `fetch_max_wait_ms`."""
    fetch_max_wait_ms: float = 500.0
    client_rack: str = ""
    """Where this consumer is: read from an in-sync replica of the same rack, if there is one."""

    group_id: str = ""
    """The consumer group; empty: none, and partitions are assigned by hand."""
    group_instance_id: str = ""
    """A name that survives restarts: the member keeps its partitions through one."""
    assignors: tuple[str | Assignor, ...] = ("cooperative-sticky",)
    """In order of preference: range, roundrobin, sticky, cooperative-sticky, or a function of your
    own (`suiro.assignor`).
    """
    enable_auto_commit: bool = True
    """Commit what polls have returned, every `auto_commit_interval_ms` and when leaving."""
    auto_commit_interval_ms: float = 5_000.0
    session_timeout_ms: float = 10_000.0
    """A member that is not heard for so long has lost its partitions."""
    heartbeat_interval_ms: float | None = None
    """How often it is heard at least; None: three times in a session timeout."""
    rebalance_timeout_ms: float = 60_000.0
    """How long a member may take to give up what it is told to give up."""
    max_poll_interval_ms: float | None = None
    """How long a handler may take before it counts as stuck; None: as long as it likes."""

    request_timeout_ms: float = 30_000.0
    client_id: str = "suiro-python"

    def __post_init__(self) -> None:
        _check(
            self.isolation in {"read_committed", "read_uncommitted"},
            "isolation",
            self.isolation,
            "'read_committed' or 'read_uncommitted'",
        )
        _check(
            self.auto_offset_reset in {"earliest", "latest", "none"},
            "auto_offset_reset",
            self.auto_offset_reset,
            "'earliest', 'latest' or 'none'",
        )
        for name in (
            "max_poll_records",
            "max_arrow_records",
            "fetch_credit",
            "fetch_max_bytes",
            "fetch_min_bytes",
        ):
            value = getattr(self, name)
            _check(isinstance(value, int) and value >= 1, name, value, "a number from 1 up")
        _check(
            self.heartbeat_interval_ms is None
            or 0 < self.heartbeat_interval_ms < self.session_timeout_ms,
            "heartbeat_interval_ms",
            self.heartbeat_interval_ms,
            "more than 0 and less than session_timeout_ms",
        )
        _check(bool(self.assignors), "assignors", self.assignors, "at least one name")


ACKS_SPELLINGS: Final = {"all": "all", "-1": "all", "1": 1, "0": 0}

KAFKA_NAMES: Final = {
    "partition_assignment_strategy": "assignors",
    "compression_type": "compression",
    "max_in_flight_requests_per_connection": "max_in_flight",
    "isolation_level": "isolation",
    "max_partition_fetch_bytes": "fetch_credit",
}

KAFKA_OTHERWISE: Final = {
    "retries": "what fails is tried again until delivery_timeout_ms is over",
    "message_timeout_ms": "it is called delivery_timeout_ms",
    "queue_buffering_max_kbytes": "it is called buffer_memory, in bytes",
    "key_serializer": "keys and values are bytes: encode them before you send them",
    "value_serializer": "keys and values are bytes: encode them before you send them",
    "partitioner_class": "it is called partitioner",
}
"""Names that Kafka's users know, for what is done in another way here."""


BOOTSTRAP_NAMES: Final = ("bootstrap_servers", "bootstrap.servers")


def take_bootstrap(bootstrap: str | None, given: dict[str, Any]) -> tuple[Address, ...]:
    """Where to connect: by the first argument, or by the name that Kafka's users know for it."""
    for name in BOOTSTRAP_NAMES:
        named = given.pop(name, None)
        if named is not None and bootstrap is not None:
            raise InvalidSetting(f"{name} and the first argument both say where to connect")
        bootstrap = bootstrap or (named if isinstance(named, str | None) else ",".join(named))
    return parse_bootstrap(bootstrap)


def build_settings(kind: type[S], given: dict[str, Any]) -> S:
    """Settings of `kind` from keyword arguments, with Kafka's names translated."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    values = {}
    for name, value in given.items():
        plain = name.replace(".", "_")
        wanted = KAFKA_NAMES.get(plain, plain)
        if wanted not in known:
            raise InvalidSetting(f"there is no setting '{name}': {_hint(wanted, known)}")
        values[wanted] = _compression(value) if wanted == "compression" else value
    if "acks" in values:
        values["acks"] = ACKS_SPELLINGS.get(str(values["acks"]), values["acks"])
    return kind(**values)


def _hint(wanted: str, known: list[str]) -> str:
    """What somebody may have meant who asked for a setting that is not there."""
    if wanted in KAFKA_OTHERWISE:
        return KAFKA_OTHERWISE[wanted]
    near = difflib.get_close_matches(wanted, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}"


def _compression(value: Any) -> Compression:
    if isinstance(value, Compression):
        return value
    try:
        return Compression[str(value).upper()]
    except KeyError:
        names = ", ".join(kind.name.lower() for kind in Compression)
        raise InvalidSetting(f"compression '{value}' is unknown; known are {names}") from None


def _check(holds: bool, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise InvalidSetting(f"{name} is {value!r}; it must be {allowed}")
