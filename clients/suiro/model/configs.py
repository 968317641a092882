"""Every setting of a topic and every setting of a broker that can be changed while it runs.

The two classes are the one table: a field's name is the setting's with `_` for `.`, its type is the
setting's type, and beside it stand default, bounds, what it is for and when to change it. The
table checks values on their way in (`checked`), gives typed settings to the code that obeys them
(`topic_config`, `broker_config`), and is what `suiro config` and the manual print.

A topic's setting is its own, else the cluster's of that name, else the default.
"""

# ruff: noqa: RUF009 - `_row` is dataclasses.field with the row's columns
from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from suiro.model.errors import InvalidConfig
from suiro.model.limits import (
    BATCH_BYTES_MAX,
    INDEX_INTERVAL_BYTES_DEFAULT,
    MIB,
    PARTITIONS_PER_TOPIC_MAX,
    SEGMENT_BYTES_DEFAULT,
    SEGMENT_BYTES_MAX,
    SEGMENT_MS_DEFAULT,
)
from suiro.model.records import ConfigResource

if TYPE_CHECKING:
    from collections.abc import Mapping

SECOND: Final = 1_000
HOUR: Final = 3_600 * SECOND
DAY: Final = 24 * HOUR
LARGEST: Final = (1 << 63) - 1
FOREVER: Final = -1
"""As a retention: no limit."""


class CleanupPolicy(StrEnum):
    """What happens to old records."""

    DELETE = "delete"
    COMPACT = "compact"
    BOTH = "compact,delete"


class FlushPolicy(StrEnum):
    """When appended bytes are brought to stable storage."""

    OS = "os"
    INTERVAL = "interval"
    ACK = "ack"


class CompressionType(StrEnum):
    """How batches are stored."""

    PRODUCER = "producer"
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class TimestampType(StrEnum):
    """Whose clock a record's timestamp is from."""

    CREATE = "CreateTime"
    APPEND = "LogAppendTime"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    name: str
    kind: type
    default: Any
    low: float | None
    high: float | None
    doc: str
    change: str
    """When to change it."""

    @property
    def bounds(self) -> str:
        """What is allowed, for a person."""
        if self.kind is bool:
            return "true or false"
        if issubclass(self.kind, Enum):
            return "one of " + ", ".join(member.value for member in self.kind)
        return f"a{'n integer' if self.kind is int else ' number'} in [{self.low}, {self.high}]"

    def parse(self, text: str) -> Any:
        """The value that `text` stands for; raises InvalidConfig."""
        try:
            value = self._read(text.strip())
        except (ValueError, KeyError):
            raise self._refusal(text) from None
        if self.low is not None and not self.low <= value:
            raise self._refusal(text)
        if self.high is not None and not value <= self.high:
            raise self._refusal(text)
        return value

    def format(self, value: Any) -> str:
        """The text for a value, always the same one."""
        return str(value).lower() if self.kind is bool else str(value)

    def _read(self, text: str) -> Any:
        if self.kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if self.kind is CleanupPolicy:
            return CleanupPolicy(",".join(sorted(part.strip() for part in text.split(","))))
        return self.kind(text)

    def _refusal(self, text: str) -> InvalidConfig:
        return InvalidConfig(f"{self.name} cannot be {text!r}: it must be {self.bounds}")


def _row(default: Any, *bounds: float, doc: str, change: str) -> Any:
    low, high = bounds or (None, None)
    about = {"low": low, "high": high, "doc": doc, "change": change}
    return dataclasses.field(default=default, metadata=about)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The settings of a topic, as they hold after all defaults."""

    retention_ms: int = _row(
        SEGMENT_MS_DEFAULT, FOREVER, LARGEST,
        doc="Segments whose newest record is older than this are deleted; -1 keeps them forever.",
        change="To keep data as long as readers may need it, and the disk can hold it.",
    )  # fmt: skip
    retention_bytes: int = _row(
        FOREVER, FOREVER, LARGEST,
        doc="The oldest segments of a partition over this size are deleted; -1 is no limit.",
        change="When a burst could fill the disk before retention.ms has passed.",
    )  # fmt: skip
    segment_bytes: int = _row(
        SEGMENT_BYTES_DEFAULT, 1 << 14, SEGMENT_BYTES_MAX,
        doc="A segment of this size is closed. Only closed segments are deleted or compacted.",
        change="Smaller for topics with little data that must be deleted or compacted in time.",
    )  # fmt: skip
    segment_ms: int = _row(
        SEGMENT_MS_DEFAULT, 1, LARGEST,
        doc="A segment of this age is closed even if it is small.",
        change="With retention.ms: a record lives for up to the sum of the two.",
    )  # fmt: skip
    cleanup_policy: CleanupPolicy = _row(
        CleanupPolicy.DELETE,
        doc="`delete` by age and size; `compact` keeps the newest value of each key; or both.",
        change="`compact` for tables: the newest value per key is all that readers need.",
    )  # fmt: skip
    min_insync_replicas: int = _row(
        1, 1, 1_000,
        doc="acks=all is refused while fewer replicas are in sync.",
        change="2 with three replicas: an acknowledged record then is on two machines at least.",
    )  # fmt: skip
    unclean_leader_election_enable: bool = _row(
        False,
        doc="Let a replica lead that may lack acknowledged records, when no other is left.",
        change="Only where being available matters more than losing records.",
    )  # fmt: skip
    max_message_bytes: int = _row(
        2 * MIB, 1, BATCH_BYTES_MAX,
        doc="A larger batch is refused.",
        change="For large records; raise it with care, as brokers and readers hold batches whole.",
    )  # fmt: skip
    flush_policy: FlushPolicy = _row(
        FlushPolicy.OS,
        doc="`os`: replicas are the durability; `interval`: every flush.ms or flush.messages; "
        "`ack`: a replica counts as holding a record only when it is on its disk.",
        change="`ack` where all replicas may lose power at once.",
    )  # fmt: skip
    flush_ms: int = _row(
        SECOND, 1, LARGEST,
        doc="With flush.policy=interval: the longest that a record waits for its flush.",
        change="With the loss that is bearable when all replicas lose power.",
    )  # fmt: skip
    flush_messages: int = _row(
        10_000, 1, LARGEST,
        doc="With flush.policy=interval: flush after so many records.",
        change="With flush.ms.",
    )  # fmt: skip
    index_interval_bytes: int = _row(
        INDEX_INTERVAL_BYTES_DEFAULT, 1, SEGMENT_BYTES_MAX,
        doc="One index entry for so many bytes of log.",
        change="Hardly ever.",
    )  # fmt: skip
    compression_type: CompressionType = _row(
        CompressionType.PRODUCER,
        doc="How batches are stored; `producer` keeps them as they were sent.",
        change="To make all producers of a topic use one codec.",
    )  # fmt: skip
    min_cleanable_dirty_ratio: float = _row(
        0.5, 0, 1,
        doc="Compact when at least this share of the log has not been compacted yet.",
        change="Lower to save disk, higher to save work.",
    )  # fmt: skip
    delete_retention_ms: int = _row(
        DAY, 0, LARGEST,
        doc="How long compaction keeps the mark of a deleted key, for readers to see it.",
        change="Longer than the slowest reader takes to read the topic from its beginning.",
    )  # fmt: skip
    min_compaction_lag_ms: int = _row(
        0, 0, LARGEST,
        doc="A record is not compacted away before it has this age.",
        change="When readers must be able to see every version for a while.",
    )  # fmt: skip
    max_compaction_lag_ms: int = _row(
        LARGEST, 1, LARGEST,
        doc="A record is compacted at the latest when it has this age.",
        change="When old versions must be gone by a deadline.",
    )  # fmt: skip
    message_timestamp_type: TimestampType = _row(
        TimestampType.CREATE,
        doc="Timestamps are the producer's (CreateTime) or the leader's (LogAppendTime).",
        change="When the producers' clocks cannot be trusted.",
    )  # fmt: skip
    message_timestamp_before_max_ms: int = _row(
        LARGEST, 0, LARGEST,
        doc="A CreateTime further in the past is refused.",
        change="To keep a wrong clock from having its records deleted at once by age.",
    )  # fmt: skip
    message_timestamp_after_max_ms: int = _row(
        HOUR, 0, LARGEST,
        doc="A CreateTime further in the future is refused.",
        change="Such a record would keep its segment from ageing.",
    )  # fmt: skip
    file_delete_delay_ms: int = _row(
        60 * SECOND, 0, LARGEST,
        doc="Deleted segments stay on disk for this long, for readers that still use them.",
        change="Hardly ever.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise InvalidConfig(
                f"min.compaction.lag.ms={self.min_compaction_lag_ms} is over "
                f"max.compaction.lag.ms={self.max_compaction_lag_ms}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The settings of a broker or of the whole cluster that can change while it runs."""

    num_partitions: int = _row(
        1, 1, PARTITIONS_PER_TOPIC_MAX,
        doc="Partitions of a topic that is created without a number.",
        change="With the number of consumers that should share a topic.",
    )  # fmt: skip
    default_replication_factor: int = _row(
        3, 1, 1_000,
        doc="Replicas of a topic that is created without a number; fewer if there are not so many "
        "brokers.",
        change="Hardly ever: three survive the loss of one and the restart of another.",
    )  # fmt: skip
    auto_create_topics_enable: bool = _row(
        True,
        doc="Create a topic when a client first asks for it.",
        change="Off where a typing error in a topic's name must not go unnoticed.",
    )  # fmt: skip
    broker_session_timeout_ms: int = _row(
        3 * SECOND, 100, HOUR,
        doc="A node that is silent for this long is fenced.",
        change="Higher where machines stall for seconds.",
    )  # fmt: skip
    replica_lag_time_max_ms: int = _row(
        10 * SECOND, 100, HOUR,
        doc="A follower that has not been level with the leader for this long leaves the ISR.",
        change="Lower to have acks=all wait less for a slow follower.",
    )  # fmt: skip
    auto_leader_rebalance_enable: bool = _row(
        True,
        doc="Give leadership back to the preferred replicas in the background.",
        change="Off while you place leaders by hand.",
    )  # fmt: skip
    leader_imbalance_check_interval_seconds: int = _row(
        60, 1, DAY // SECOND,
        doc="How often the balance of leaders is looked at.",
        change="Hardly ever.",
    )  # fmt: skip
    leader_imbalance_per_broker_percentage: int = _row(
        10, 0, 100,
        doc="A broker gets its leaders back when more than this share of them is led elsewhere.",
        change="0 where load must be even at all times; higher where a move costs more than it.",
    )  # fmt: skip
    compaction_bytes_per_s_max: int = _row(
        64 * MIB, 1 << 16, LARGEST,
        doc="What a broker may read and write per second to compact its logs, and beside that to "
        "move replicas between its directories.",
        change="With the speed of its disks.",
    )  # fmt: skip
    compaction_memory_bytes_max: int = _row(
        128 * MIB, MIB, LARGEST,
        doc="What a broker may hold in memory to know the newest record of each key while it "
        "compacts, all workers together: 96 bytes a key. More keys take several passes.",
        change="Higher where compacted topics have tens of millions of keys per partition.",
    )  # fmt: skip
    scrub_bytes_per_s_max: int = _row(
        8 * MIB, 1 << 16, LARGEST,
        doc="What a broker may read per second to look for damage in its logs.",
        change="With the speed of its disks: all of them should be read once an interval.",
    )  # fmt: skip
    scrub_interval_ms: int = _row(
        7 * DAY, SECOND, LARGEST,
        doc="How often a broker looks at the checksums of all that is not written to any more.",
        change="Lower for old disks; damage is mended only while another replica is whole.",
    )  # fmt: skip
    producer_expiry_ms: int = _row(
        DAY, 60 * SECOND, LARGEST,
        doc="A partition forgets a producer id that has been silent for this long.",
        change="Longer than any producer may pause between two sends that must not repeat.",
    )  # fmt: skip
    offsets_retention_ms: int = _row(
        7 * DAY, 60 * SECOND, LARGEST,
        doc="The offsets of a group that has had no members for this long are forgotten.",
        change="Longer where a group may rest for more than a week and must go on where it was.",
    )  # fmt: skip


def _table(config: type) -> dict[str, Setting]:
    hints = get_type_hints(config)
    rows = (
        Setting(f.name.replace("_", "."), hints[f.name], f.default, **f.metadata)
        for f in dataclasses.fields(config)
    )
    return {row.name: row for row in rows}


TOPIC_SETTINGS: Final = _table(TopicConfig)
BROKER_SETTINGS: Final = _table(BrokerConfig)
SETTINGS: Final[dict[ConfigResource, dict[str, Setting]]] = {
    ConfigResource.TOPIC: TOPIC_SETTINGS,
    ConfigResource.BROKER: BROKER_SETTINGS,
    ConfigResource.CLUSTER: {**BROKER_SETTINGS, **TOPIC_SETTINGS},
}
assert not BROKER_SETTINGS.keys() & TOPIC_SETTINGS.keys()


def setting(resource: ConfigResource, key: str) -> Setting:
    """The row of that name; raises InvalidConfig, with the name that was perhaps meant."""
    row = SETTINGS[resource].get(key)
    if row is not None:
        return row
    near = get_close_matches(key.replace("_", "."), SETTINGS[resource], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InvalidConfig(f"a {resource.name.lower()} has no setting {key!r}{hint}")


def checked(resource: ConfigResource, key: str, text: str) -> str:
    """The text as it is stored; raises InvalidConfig for what may not be set."""
    row = setting(resource, key)
    return row.format(row.parse(text))


def topic_config(own: Mapping[str, str], cluster: Mapping[str, str] | None = None) -> TopicConfig:
    """What holds for a topic with these settings in a cluster with those."""
    return TopicConfig(**_values(TOPIC_SETTINGS, {**(cluster or {}), **own}))


def broker_config(own: Mapping[str, str], cluster: Mapping[str, str] | None = None) -> BrokerConfig:
    """What holds for a broker with these settings in a cluster with those."""
    return BrokerConfig(**_values(BROKER_SETTINGS, {**(cluster or {}), **own}))


def _values(table: dict[str, Setting], texts: Mapping[str, str]) -> dict[str, Any]:
    """The settings of `texts` that are in the table; the cluster's are for both tables."""
    return {
        key.replace(".", "_"): table[key].parse(text) for key, text in texts.items() if key in table
    }
