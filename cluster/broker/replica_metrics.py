"""What a broker counts of its replicas, by looking at them now and then: nothing on the data path.

A topic's counters are the growth of the logs that are led here between two looks. What retention
or compaction takes away counts as no growth.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.ids import TopicPartition

    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from cluster.host.metrics import Metrics

LOOK_S: Final = 2.0


class _Size(NamedTuple):
    end: int
    size_bytes: int


class ReplicaMetrics:
    """`run` is a task of the broker."""

    def __init__(self, replicas: Replicas, metrics: Metrics) -> None:
        self._replicas = replicas
        self._metrics = metrics
        self._led: dict[TopicPartition, _Size] = {}
        """What was led here at the last look."""
        self._topics: set[str] = set()

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        metrics = self._metrics
        held = list(self._replicas.all())
        led = [partition for partition in held if partition.leads]
        metrics.replicas_held.of().set(len(held))
        metrics.partitions_led.of().set(len(led))
        behind = [p for p in led if len(p.state.isr) < len(p.state.replicas)]
        metrics.partitions_under_replicated.of().set(len(behind))
        metrics.partitions_under_min_isr.of().set(sum(len(p.state.isr) < p.min_isr for p in led))
        self._count_growth(led)
        self._measure_topics(held)

    def _count_growth(self, led: Iterable[Partition]) -> None:
        now = {p.partition: _Size(p.log.log_end, p.log.size_bytes) for p in led}
        for name, size in now.items():
            before = self._led.get(name, size)
            records = self._metrics.topic_records.of(name.topic)
            records.add(max(size.end - before.end, 0))
            grown = self._metrics.topic_bytes.of(name.topic)
            grown.add(max(size.size_bytes - before.size_bytes, 0))
        self._led = now

    def _measure_topics(self, held: Iterable[Partition]) -> None:
        sizes: dict[str, int] = {}
        for partition in held:
            topic = partition.partition.topic
            sizes[topic] = sizes.get(topic, 0) + partition.log.size_bytes
        for topic, size in sizes.items():
            self._metrics.topic_log_bytes.of(topic).set(size)
        for topic in sorted(self._topics - sizes.keys()):
            for family in (self._metrics.topic_records, self._metrics.topic_bytes):
                family.remove(topic)
            self._metrics.topic_log_bytes.remove(topic)
        self._topics = set(sizes)
