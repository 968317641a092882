"""How fast the topics grow: one sample of every leader, and what two samples say."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from suiro.aio.admin import Admin
    from suiro.model.ids import Address

ASK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One partition at its leader."""

    end: int
    size_bytes: int
    stable_lag: int
    """Offsets that readers of committed records wait behind the high watermark."""


Sample = dict[TopicPartition, Reading]


@dataclass(frozen=True, slots=True)
class TopicRate:
    """One topic between two samples."""

    topic: str
    partitions: int
    records_per_s: float
    bytes_per_s: float
    size_bytes: int
    stable_lag: int


async def sample(admin: Admin) -> Sample:
    """Every partition, as its leader knows it; those of brokers that do not answer are missing."""
    await admin.connection.refresh([], timeout_s=admin.timeout_s)
    addresses = list(admin.connection.brokers.values())
    found = await asyncio.gather(*(_ask(admin, address) for address in addresses))
    return {name: reading for some in found for name, reading in some.items()}


async def _ask(admin: Admin, address: Address) -> Sample:
    try:
        reply = await admin.connection.transport.call(
            address,
            BrokerMethods.DESCRIBE_REPLICAS,
            pb.DescribeReplicasRequest(),
            timeout_s=ASK_S,
        )
    except SuiroError:
        return {}
    return {
        TopicPartition(replica.topic, replica.partition): Reading(
            replica.log_end,
            replica.size_bytes,
            max(replica.high_watermark - replica.last_stable_offset, 0),
        )
        for directory in reply.directories
        for replica in directory.replicas
        if replica.leads
    }


def rates(before: Sample, after: Sample, seconds: float) -> list[TopicRate]:
    """The topics, busiest first. What retention took away counts as no growth."""
    found = []
    for topic in sorted({name.topic for name in after}):
        mine = {name: reading for name, reading in after.items() if name.topic == topic}
        pairs = [(before.get(name, now), now) for name, now in mine.items()]
        found.append(
            TopicRate(
                topic,
                len(mine),
                sum(max(now.end - then.end, 0) for then, now in pairs) / seconds,
                sum(max(now.size_bytes - then.size_bytes, 0) for then, now in pairs) / seconds,
                sum(reading.size_bytes for reading in mine.values()),
                max(reading.stable_lag for reading in mine.values()),
            )
        )
    return sorted(found, key=lambda rate: (-rate.records_per_s, rate.topic))
