"""How large a cluster has to be for a load: the arithmetic of `suiro plan`. Pure.

    partitions = target throughput / throughput of one partition
    disk       = rate x record size x retention x replication factor / compression ratio

The throughput of one partition is whichever is less, that of its writer or of its slowest reader.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.encode import BatchOptions, encode_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.batch import Compression

SAMPLE_RECORDS_PER_BATCH = 1_000
DISK_FILL = 0.7
"""How full the disks shall be at most: room for a broker that is lost, and for compaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is to be stored."""

    records_per_s: float
    record_bytes: float
    retention_s: float
    replication_factor: int
    compression_ratio: float = 1.0
    partition_bytes_per_s: float
    """What one partition takes, or its slowest reader reads, before compression."""
    consumers_per_broker: float = 1.0
    """How often each record is read."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What that takes. Bytes on disk and on the wire are compressed ones."""

    bytes_per_s: float
    partitions: int
    disk_bytes: float
    disk_bytes_with_room: float
    write_bytes_per_s: float
    """To all disks together."""
    network_in_bytes_per_s: float
    network_out_bytes_per_s: float
    """Of all brokers together: followers and readers."""


def needs(load: Load) -> Needs:
    raw = load.records_per_s * load.record_bytes
    stored = raw / load.compression_ratio
    disk = stored * load.retention_s * load.replication_factor
    return Needs(
        bytes_per_s=raw,
        partitions=max(1, math.ceil(raw / load.partition_bytes_per_s)),
        disk_bytes=disk,
        disk_bytes_with_room=disk / DISK_FILL,
        write_bytes_per_s=stored * load.replication_factor,
        network_in_bytes_per_s=stored * load.replication_factor,
        network_out_bytes_per_s=stored * (load.replication_factor - 1 + load.consumers_per_broker),
    )


def measured_ratio(values: Sequence[bytes], compression: Compression) -> float:
    """How many times smaller batches of these records become, headers and all, in our format."""
    raw = sum(map(len, values))
    stored = 0
    for start in range(0, len(values), SAMPLE_RECORDS_PER_BATCH):
        some = list(values[start : start + SAMPLE_RECORDS_PER_BATCH])
        options = BatchOptions(compression=compression)
        stored += len(encode_lists(None, some, timestamps_ms=0, options=options))
    return raw / stored if stored else 1.0
