"""What the replicas of a broker tell its event log (RELIABILITY, recorded evidence, item 3).

Appends are told batch by batch, with epoch and CRC, from the headers in the log itself: `appended`
tells those that it has not told yet, and comes before whatever follows from them.
"""

from __future__ import annotations

from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from suiro.model.ids import Offset, TopicPartition

from cluster.broker.replication_effects import (
    EpochStarted,
    HighWatermark,
    IsrChanged,
    RestartAt,
    TruncateTo,
)
from cluster.host.events import NO_EVENTS

if TYPE_CHECKING:
    from cluster.broker.partition import Partition
    from cluster.broker.replication_effects import FollowerEffect, LeaderEffect
    from cluster.broker.replication_role import ReplicaRole
    from cluster.host.events import Events

NAMES: Final[dict[type, str]] = {
    EpochStarted: "epoch_started",
    IsrChanged: "isr",
    HighWatermark: "high_watermark",
    TruncateTo: "truncate",
    RestartAt: "truncate",
}


class ReplicaEvents:
    """Asked only while `on`."""

    def __init__(self, events: Events) -> None:
        self.on = events.on
        self._events = events
        self._told: dict[Partition, Offset] = {}

    def role(self, partition: Partition, role: ReplicaRole) -> None:
        state = partition.state
        self._told.setdefault(partition, partition.log.log_end)
        self._emit(
            partition,
            "role",
            role=role.name.lower(),
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            replicas=state.replicas,
            isr=state.isr,
            log_start=partition.log.log_start,
            log_end=partition.log.log_end,
            high_watermark=partition.high_watermark,
        )

    def appended(self, partition: Partition) -> None:
        log = partition.log
        at = max(self._told.get(partition, log.log_start), log.log_start)
        while at < log.log_end:
            header = log.first_batch_header_at(at)
            assert header is not None
            self._emit(
                partition,
                "append",
                base=header.base_offset,
                end=header.end,
                leader_epoch=header.leader_epoch,
                crc=header.crc,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                sequence=header.base_sequence,
            )
            at = Offset(header.end)
        self._told[partition] = at

    def synced(self, partition: Partition) -> None:
        self.appended(partition)
        self._emit(partition, "sync", end=partition.log.synced_end)

    def effect(self, partition: Partition, effect: LeaderEffect | FollowerEffect) -> None:
        """One of those that have a name here."""
        self.appended(partition)
        self._emit(partition, NAMES[type(effect)], **_facts(effect))
        if isinstance(effect, TruncateTo | RestartAt):
            self._told[partition] = effect.offset

    def forget(self, partition: Partition) -> None:
        self._told.pop(partition, None)
        self._emit(partition, "dropped_replica")

    def offline(self, partition: TopicPartition, why: str, reason: str) -> None:
        self._events.emit("replica_offline", partition=str(partition), why=why, reason=reason)

    def _emit(self, partition: Partition, event: str, **facts: Any) -> None:
        self._events.emit(
            event, partition=str(partition.partition), topic_id=partition.state.topic_id, **facts
        )


NO_REPLICA_EVENTS: Final = ReplicaEvents(NO_EVENTS)


def _facts(effect: Any) -> dict[str, Any]:
    return {
        key: value.value if isinstance(value, Enum) else value
        for key, value in asdict(effect).items()
    }
