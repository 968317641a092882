"""What an operator is told about transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suiro.model.ids import Address, TopicPartition


@dataclass(frozen=True, slots=True)
class TxnListing:
    """One transactional id."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    started_at_ms: int
    """-1: none is open."""
    client: str
    coordinator: Address


@dataclass(frozen=True, slots=True)
class TxnWriterInfo:
    """One writer of a shared transaction."""

    writer: str
    producer_id: int
    prepared: bool
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class TxnInfo:
    """All that the coordinator knows of an id."""

    listing: TxnListing
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]
    groups: tuple[str, ...]
    writers: tuple[TxnWriterInfo, ...]
    last_committed_sequence: int
    last_outcome: str
    fenced_by: str
    fenced_at_ms: int

    @property
    def producer_ids(self) -> frozenset[int]:
        """Whoever may have something open."""
        return frozenset({self.listing.producer_id, *(w.producer_id for w in self.writers)})


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    """What a partition knows of one producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    open_from: int
    """Where its open transaction begins; -1: none is open."""


@dataclass(frozen=True, slots=True)
class PartitionProducers:
    """A partition's producers, and how far readers of committed records come."""

    partition: TopicPartition
    producers: tuple[ProducerInfo, ...]
    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One that holds a partition's readers of committed records back."""

    partition: TopicPartition
    producer: ProducerInfo
    held_back: int
    """Offsets from its first record to the high watermark."""
    transactional_id: str
    """Empty: no coordinator knows of it, so nobody will end it."""
    state: str
