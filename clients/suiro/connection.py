"""A client's view of the cluster: where to ask, who leads what, and when to ask again."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import Hello
from suiro.attempts import until_done
from suiro.model.errors import NotController, TimedOut, Unavailable, UnknownTopicOrPartition
from suiro.model.ids import Address, NodeId, TopicPartition
from suiro.model.records import Recovery
from suiro.retry import Backoff
from suiro.transport.methods import BrokerMethods
from suiro.transport.wire_errors import error_from_proto
from suiro.version import PROTOCOL_MAX, PROTOCOL_MIN, SOFTWARE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from suiro.model.error_base import SuiroError
    from suiro.transport.api import Method, Transport

Q = TypeVar("Q")
R = TypeVar("R")

METADATA_TIMEOUT_S = 5.0
PATIENCE_S = 1.0
"""How long the first one asked may take; a broker that hangs must not hold everybody up."""


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Who leads a partition, and who holds it."""

    leader: NodeId | None
    leader_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    recovery: Recovery = Recovery.NONE
    """Whether whoever leads may lack records, since the ISR last changed."""
    adding: tuple[NodeId, ...] = ()
    """Replicas that a reassignment adds and that are not in sync yet."""


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as the brokers describe it."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionInfo, ...]
    internal: bool = False


@dataclass(slots=True)
class Connection:
    """Metadata, kept as fresh as errors demand. Every wait has a deadline."""

    bootstrap: Sequence[Address]
    transport: Transport
    client_id: str = "suiro-python"
    create_missing: bool = False
    """Ask for topics that are not there to be made, as producers do."""
    rng: random.Random = field(default_factory=random.Random)
    cluster_id: str = ""
    brokers: dict[NodeId, Address] = field(default_factory=dict)
    racks: dict[NodeId, str] = field(default_factory=dict)
    topics: dict[str, TopicInfo] = field(default_factory=dict)
    _index: int = -1
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def hello(self) -> Hello:
        """How this client introduces itself."""
        return Hello(
            protocol_min=PROTOCOL_MIN,
            protocol_max=PROTOCOL_MAX,
            client_id=self.client_id,
            software=SOFTWARE,
            cluster_id=self.cluster_id,
        )

    async def topic(self, name: str, *, timeout_s: float) -> TopicInfo:
        """A topic, from the cache or from the cluster; waits for one that is being created."""
        if name not in self.topics:
            await self.refresh([name], timeout_s=timeout_s)
        return self.topics[name]

    def leader(self, partition: TopicPartition) -> tuple[NodeId, Address] | None:
        """The leader by our last metadata, if it is known and has an address."""
        topic = self.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        leader = topic.partitions[partition.partition].leader
        if leader is None or leader not in self.brokers:
            return None
        return leader, self.brokers[leader]

    async def refresh(
        self, topics: Iterable[str], *, timeout_s: float, must_exist: bool = False
    ) -> None:
        """Fetch metadata of these topics, trying every known node until one answers.

        Raises UnknownTopicOrPartition at once if a topic is not there, as it may be a typing error;
        with `must_exist` (it was just made) only after the deadline, as news take a moment to reach
        every broker. Raises Unavailable with the addresses tried when nobody answers.
        """
        names = sorted(set(topics))

        async def attempt() -> SuiroError | None:
            missing = await self._fetch(names)
            if missing is not None and must_exist:
                raise missing
            return missing

        async with self._refreshing:
            missing = await self._retry(attempt, timeout_s)
        if missing is not None:
            raise missing

    async def all_topics(self, *, timeout_s: float) -> dict[str, TopicInfo]:
        """Every topic of the cluster, fresh."""
        request = pb.MetadataRequest(hello=self.hello(), all_topics=True)

        async def attempt() -> pb.MetadataReply:
            reply = await self._ask_around(BrokerMethods.METADATA, request)
            self._learn(reply)
            return reply

        reply = await self._retry(attempt, timeout_s)
        return {t.topic: _topic_info(t) for t in reply.topics}

    async def any_broker(self, method: Method[Q, R], request: Q, *, timeout_s: float) -> R:
        """Ask whichever node answers; retriable errors are retried until the deadline."""
        return await self._retry(lambda: self._ask_around(method, request), timeout_s)

    async def _fetch(self, names: list[str]) -> SuiroError | None:
        """One round: learn what is known; an error for a topic that is not, to be retried."""
        request = pb.MetadataRequest(
            hello=self.hello(), topics=names, create_missing=self.create_missing
        )
        reply = await self._ask_around(BrokerMethods.METADATA, request, PATIENCE_S)
        self._learn(reply)
        for topic in reply.topics:
            if topic.error.code:
                error = error_from_proto(topic.error)
                if error.retriable and not isinstance(error, UnknownTopicOrPartition):
                    raise error
                return error
        return None

    async def _ask_around(
        self, method: Method[Q, R], request: Q, patience_s: float = METADATA_TIMEOUT_S
    ) -> R:
        tried: list[str] = []
        for address in self._addresses():
            try:
                return await self.transport.call(address, method, request, timeout_s=patience_s)
            except (Unavailable, TimedOut, NotController) as error:
                tried.append(error.message)
                patience_s = min(2 * patience_s, METADATA_TIMEOUT_S)
        raise Unavailable(f"no node answers: {'; '.join(tried)}")

    def _addresses(self) -> list[Address]:
        """Whom to ask: the known brokers in any order, then where we were told to begin."""
        known = list(self.brokers.values())
        self.rng.shuffle(known)
        return list(dict.fromkeys([*known, *self.bootstrap]))

    async def _retry(self, attempt: Callable[[], Awaitable[R]], timeout_s: float) -> R:
        asked = ", ".join(map(str, sorted({*self.brokers.values(), *self.bootstrap})))
        return await until_done(
            attempt,
            timeout_s=timeout_s,
            backoff=Backoff(self.rng),
            late=f"no answer within {timeout_s:g} s from {asked}",
        )

    def _learn(self, reply: pb.MetadataReply) -> None:
        """Raises Unavailable for an older view than one that was acted on: a broker that has just
        started may not have heard yet of topics that are known here.
        """
        if reply.image_index < self._index:
            raise Unavailable("a broker answered with older metadata than are known already")
        self._index = reply.image_index
        self.cluster_id = reply.hello.cluster_id
        self.brokers = {NodeId(b.node_id): Address(b.host, b.port) for b in reply.brokers}
        self.racks = {NodeId(b.node_id): b.rack for b in reply.brokers}
        for topic in reply.topics:
            if topic.error.code:
                self.topics.pop(topic.topic, None)
            else:
                self.topics[topic.topic] = _topic_info(topic)


def _topic_info(topic: pb.TopicMetadata) -> TopicInfo:
    partitions = tuple(
        PartitionInfo(
            leader=NodeId(p.leader) if p.leader >= 0 else None,
            leader_epoch=p.leader_epoch,
            replicas=tuple(NodeId(n) for n in p.replicas),
            isr=tuple(NodeId(n) for n in p.isr),
            recovery=Recovery(p.recovery),
            adding=tuple(NodeId(n) for n in p.adding),
        )
        for p in topic.partitions
    )
    return TopicInfo(topic.topic, topic.topic_id, partitions, topic.internal)
