"""The settings of one partition's log; the defaults are Kafka's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from suiro.model.limits import (
    BATCH_BYTES_MAX,
    INDEX_INTERVAL_BYTES_DEFAULT,
    MIB,
    SEGMENT_BYTES_DEFAULT,
    SEGMENT_BYTES_MAX,
    SEGMENT_MS_DEFAULT,
)

DAY_MS: Final = 24 * 3600 * 1000
FAR_MS: Final = (1 << 63) - 1
FOREVER: Final = -1
"""As retention_ms or retention_bytes: no limit."""


class Flush(Enum):
    """When appended bytes are brought to stable storage."""

    OS = "os"
    """Whenever the operating system likes; the replicas are the durability."""
    INTERVAL = "interval"
    """After so many milliseconds or messages."""
    ACK = "ack"
    """Before the replica counts as holding them; appends share a sync (group commit)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What a topic may set about its storage."""

    segment_bytes: int = SEGMENT_BYTES_DEFAULT
    segment_ms: int = SEGMENT_MS_DEFAULT
    index_interval_bytes: int = INDEX_INTERVAL_BYTES_DEFAULT
    max_message_bytes: int = 2 * MIB
    flush: Flush = Flush.OS
    flush_interval_ms: int = 1_000
    flush_interval_messages: int = 10_000
    retention_ms: int = SEGMENT_MS_DEFAULT
    retention_bytes: int = FOREVER
    deletes: bool = True
    """Whether old segments go by the two limits above (cleanup.policy has `delete`)."""
    compacts: bool = False
    """Whether only the newest record of each key stays (cleanup.policy has `compact`)."""
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FAR_MS
    producer_expiry_ms: int = DAY_MS

    def __post_init__(self) -> None:
        assert 1 <= self.segment_bytes <= SEGMENT_BYTES_MAX
        assert self.segment_ms >= 1
        assert self.index_interval_bytes >= 1
        assert 1 <= self.max_message_bytes <= BATCH_BYTES_MAX
        assert self.flush_interval_ms >= 1
        assert self.flush_interval_messages >= 1
        assert self.retention_ms == FOREVER or self.retention_ms >= 0
        assert self.retention_bytes == FOREVER or self.retention_bytes >= 0
        assert 0 <= self.min_cleanable_dirty_ratio <= 1
        assert self.delete_retention_ms >= 0
        assert 0 <= self.min_compaction_lag_ms <= self.max_compaction_lag_ms
        assert self.producer_expiry_ms >= 1
