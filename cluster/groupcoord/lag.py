"""How far groups are behind, for the metrics page: asked of the leaders every few seconds.

Runs only where a metrics port is set, as nobody looks elsewhere. What is counted are offsets up to
the last stable one; `suiro group describe` counts records and seconds, and costs more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_COMMITTED
from suiro.model.error_base import SuiroError
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from suiro.model.ids import Address, TopicPartition
    from suiro.model.image import ClusterImage

    from cluster.groupcoord.machine import GroupMachine
    from cluster.host.env import Env
    from cluster.host.shards import Shard

    Committed = Mapping[str, Mapping[TopicPartition, int]]

log = logging.getLogger("suiro.group")

EVERY_S: Final = 5.0
ASK_S: Final = 5.0
QUERIES_MAX: Final = 1_000
"""Partitions in one question to a broker."""


class LagWatch:
    """The gauges of the groups of all shards that this node owns."""

    def __init__(
        self,
        env: Env,
        image: Callable[[], ClusterImage],
        owned: Callable[[], Sequence[Shard[GroupMachine]]],
    ) -> None:
        self._env = env
        self._image = image
        self._owned = owned
        self._lags: set[tuple[str, str]] = set()
        self._groups: set[str] = set()

    async def run(self) -> None:
        """Until cancelled; a look that fails leaves what the last one found."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self._look()
            except SuiroError as error:
                log.debug("the lag of groups is not known: %s", error)

    async def _look(self) -> None:
        committed: dict[str, Mapping[TopicPartition, int]] = {}
        members: dict[str, int] = {}
        for shard in self._owned():
            found, counts = await shard.host.read(_offsets_and_members)
            committed |= found
            members |= counts
        ends = await self._ends({p for offsets in committed.values() for p in offsets})
        self._show(lags(committed, ends), members)

    async def _ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where each log ends for readers of committed records; those that nobody leads are left
        out, and so are those of a broker that does not answer.
        """
        by_leader: dict[Address, list[TopicPartition]] = defaultdict(list)
        image = self._image()
        for partition in sorted(partitions):
            leader = _leader(image, partition)
            if leader is not None:
                by_leader[leader].append(partition)
        ends: dict[TopicPartition, int] = {}
        for leader, asked in by_leader.items():
            for start in range(0, len(asked), QUERIES_MAX):
                ends |= await self._ask(leader, asked[start : start + QUERIES_MAX])
        return ends

    async def _ask(
        self, leader: Address, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        queries = [
            pb.OffsetQuery(topic=p.topic, partition=p.partition, bound=pb.OffsetQuery.LATEST)
            for p in partitions
        ]
        request = pb.ListOffsetsRequest(isolation=READ_COMMITTED, queries=queries)
        try:
            reply = await self._env.transport.call(
                leader, BrokerMethods.LIST_OFFSETS, request, timeout_s=ASK_S
            )
        except SuiroError as error:
            log.debug("the ends of %d logs at %s: %s", len(partitions), leader, error)
            return {}
        answers = zip(partitions, reply.answers, strict=True)
        return {p: answer.offset for p, answer in answers if not answer.error.code}

    def _show(self, found: Mapping[tuple[str, str], int], members: Mapping[str, int]) -> None:
        metrics = self._env.metrics
        for labels, lag in found.items():
            metrics.group_lag_records.of(*labels).set(lag)
        for group, count in members.items():
            metrics.group_members.of(group).set(count)
        for labels in self._lags - found.keys():
            metrics.group_lag_records.remove(*labels)
        for group in self._groups - members.keys():
            metrics.group_members.remove(group)
        self._lags, self._groups = set(found), set(members)


def lags(committed: Committed, ends: Mapping[TopicPartition, int]) -> dict[tuple[str, str], int]:
    """By group and topic: how many offsets are between what is committed and the ends that are
    known. A topic of which no end is known is left out: nothing is not zero.
    """
    found: dict[tuple[str, str], int] = {}
    for group, offsets in committed.items():
        for partition, offset in offsets.items():
            if partition in ends:
                key = group, partition.topic
                found[key] = found.get(key, 0) + max(ends[partition] - offset, 0)
    return found


def _offsets_and_members(
    machine: GroupMachine,
) -> tuple[dict[str, dict[TopicPartition, int]], dict[str, int]]:
    living = {name: group for name, group in machine.groups.items() if not group.is_dead}
    offsets = {
        name: {partition: int(state.offset) for partition, state in group.offsets.items()}
        for name, group in living.items()
    }
    return offsets, {name: len(group.members) for name, group in living.items()}


def _leader(image: ClusterImage, partition: TopicPartition) -> Address | None:
    topic = image.topic(partition.topic)
    if topic is None or partition.partition >= len(topic.partitions):
        return None
    node = image.nodes.get(topic.partitions[partition.partition].leader)
    return None if node is None else node.registration.address
