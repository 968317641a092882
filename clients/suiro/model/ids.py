"""The names of things: nodes, partitions, offsets, epochs, producers.

Offsets are half-open everywhere: `start` is included, `end` is not, so `end` is the next offset to
be written. An epoch is always qualified, because five different ones travel through the system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NewType

NodeId = NewType("NodeId", int)
TopicId = NewType("TopicId", bytes)
"""16 bytes, never used again: a topic made anew under an old name has another."""

Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
PartitionEpoch = NewType("PartitionEpoch", int)
BrokerEpoch = NewType("BrokerEpoch", int)
OwnerEpoch = NewType("OwnerEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)

NO_LEADER = NodeId(-1)
NO_OWNER = NodeId(-1)
NO_LEADER_EPOCH = LeaderEpoch(-1)
NO_BROKER_EPOCH = BrokerEpoch(-1)
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_SEQUENCE = -1
NO_TIMESTAMP_MS = -1

SHARED_PREFIX: Final = "__shared/"


def shared_id(name: str) -> str:
    """The transactional id of all shared transactions of this name; no producer may take it."""
    return SHARED_PREFIX + name


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of one topic; prints as `parcels-3`, which is also its directory's name.

    >>> str(suiro.TopicPartition("parcels", 3))
    'parcels-3'
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """Who wrote a batch; a higher epoch of the same id fences the lower ones."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
