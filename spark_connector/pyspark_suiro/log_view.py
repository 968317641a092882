"""What the driver has to know of the cluster: which partitions there are, and where they end.

One connection, opened when it is first needed. With read_committed, `latest` is the last stable
offset: everything before it is decided, so a planned range can always be read to its end.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Self

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_COMMITTED, READ_UNCOMMITTED
from suiro.aio import coordinators
from suiro.aio.group_offsets import GroupOffsets, OffsetAndMetadata
from suiro.aio.offsets import find_offset, first_record
from suiro.client_env import real_env
from suiro.connection import Connection
from suiro.loop_thread import LoopThread
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    InvalidSetting,
    LeaderNotAvailable,
    TimedOut,
    Unavailable,
    UnknownTopicOrPartition,
)
from suiro.model.ids import TopicPartition
from suiro.retry import Backoff
from suiro.settings import parse_bootstrap
from suiro.transport.methods import BrokerMethods
from suiro.transport.wire_errors import error_from_proto
from suiro.wall_clock import wall_clock_ms

from pyspark_suiro.errors import no_answer
from pyspark_suiro.lag import UP_TO_DATE, Lag
from pyspark_suiro.offsets import Bounds, Place
from pyspark_suiro.options import Matching, Partitions, Topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.connection import TopicInfo
    from suiro.model.ids import Address

    from pyspark_suiro.offsets import Offsets
    from pyspark_suiro.options import Selection, SourceOptions

log = logging.getLogger("suiro.spark")

AT_ONCE = 32
"""Partitions that are asked about at the same time."""
GROUP_S = 5.0
MISSING_TOPIC_S = 2.0
"""News of a topic take a moment to reach every broker: so long a missing one is asked for again."""


class LogView:
    """For one reader, in one process."""

    def __init__(self, options: SourceOptions) -> None:
        settings = options.consumer_settings()
        is_committed = options.isolation == "read_committed"
        self._isolation = READ_COMMITTED if is_committed else READ_UNCOMMITTED
        self._timeout_s = settings.request_timeout_ms / 1000
        self._bootstrap = parse_bootstrap(options.bootstrap)
        self._loop = LoopThread()
        self._connection = self._loop.run(self._connect(settings.client_id))

    async def _connect(self, client_id: str) -> Connection:
        env = real_env()
        return Connection(self._bootstrap, env.transport, client_id=client_id, rng=env.rng)

    def close(self) -> None:
        try:
            self._loop.run(self._connection.transport.close())
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def places(self, selection: Selection) -> list[Place]:
        """The partitions that are meant, as they are now."""
        try:
            return sorted(self._loop.run(self._places(selection)))
        except (Unavailable, TimedOut) as error:
            raise no_answer(self._bootstrap, error) from None

    def bounds(self, places: list[Place]) -> Bounds:
        """The first and the latest offset of each."""
        answers = self._loop.run(self._bounds(places))
        return Bounds(
            {place: answers[place, pb.OffsetQuery.EARLIEST] for place in places},
            {place: answers[place, pb.OffsetQuery.LATEST] for place in places},
        )

    def at_time(self, times_ms: Mapping[Place, int]) -> Offsets:
        """The first record at or after a time; the latest offset if there is none."""
        return self._loop.run(self._at_time(times_ms))

    def lag(self, done: Offsets, latest: Offsets) -> dict[Place, Lag]:
        """How far behind each partition is that is not at its end."""
        behind = {place: at for place, at in done.items() if at < latest.get(place, 0)}
        return self._loop.run(self._lags(behind, latest))

    def tell_group(self, group: str, offsets: Offsets) -> None:
        """Commit for a consumer group, for tools to see. Nothing depends on it, so a coordinator
        that does not answer is no reason to stop; a group that has members of its own is.
        """
        try:
            self._loop.run(self._commit(group, offsets))
        except SuiroError as error:
            if not error.retriable:
                raise
            log.warning("offsets of group %s are not committed for now: %s", group, error)

    async def _commit(self, group: str, offsets: Offsets) -> None:
        found = GroupOffsets(self._connection, coordinators.groups(self._connection), group)
        await found.commit(
            {
                TopicPartition(p.topic, p.partition): OffsetAndMetadata(o)
                for p, o in offsets.items()
            },
            timeout_s=GROUP_S,
        )

    async def _lags(self, behind: Offsets, latest: Offsets) -> dict[Place, Lag]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def lag(place: Place, at: int) -> Lag:
            async with gate:
                return await self._lag(place, at, latest[place])

        found = await asyncio.gather(*(lag(*each) for each in behind.items()))
        return dict(zip(behind, found, strict=True))

    async def _lag(self, place: Place, at: int, end: int) -> Lag:
        try:
            first = await first_record(
                self._connection,
                TopicPartition(place.topic, place.partition),
                at,
                end,
                isolation=self._isolation,
            )
        except SuiroError as error:
            log.warning("the lag of %s-%d is not known: %s", place.topic, place.partition, error)
            return Lag(end - at, None)
        if first is None:
            return UP_TO_DATE
        offset, timestamp_ms = first
        return Lag(end - offset, max(wall_clock_ms() - timestamp_ms, 0) / 1000)

    async def _places(self, selection: Selection) -> list[Place]:
        match selection:
            case Matching(pattern):
                every = await self._connection.all_topics(timeout_s=self._timeout_s)
                names = [n for n, t in every.items() if not t.internal and re.fullmatch(pattern, n)]
                return [place for name in names for place in _every(every[name])]
            case Topics(names):
                infos = await self._topics(names)
                return [place for name in names for place in _every(infos[name])]
            case Partitions(partitions):
                infos = await self._topics({p.topic for p in partitions})
                return [_one(infos[p.topic], p.partition) for p in partitions]

    async def _topics(self, names: tuple[str, ...] | set[str]) -> dict[str, TopicInfo]:
        connection = self._connection
        await connection.refresh([], timeout_s=self._timeout_s)
        for name in sorted(names):
            try:
                await connection.refresh([name], timeout_s=MISSING_TOPIC_S, must_exist=True)
            except UnknownTopicOrPartition:
                raise UnknownTopicOrPartition(f"there is no topic '{name}'") from None
        return {name: connection.topics[name] for name in names}

    # -- offsets ----------------------------------------------------------------------------------

    async def _bounds(self, places: list[Place]) -> dict[tuple[Place, int], int]:
        """One request per leader; what could not be answered is asked for again."""
        wanted = [
            (place, bound)
            for place in places
            for bound in (pb.OffsetQuery.EARLIEST, pb.OffsetQuery.LATEST)
        ]
        answers: dict[tuple[Place, int], int] = {}
        backoff = Backoff(self._connection.rng)
        last: SuiroError = TimedOut(f"no answer within {self._timeout_s:g} s")
        try:
            async with asyncio.timeout(self._timeout_s):
                while wanted:
                    try:
                        answers |= await self._ask_leaders(wanted)
                        wanted = [each for each in wanted if each not in answers]
                        continue
                    except SuiroError as error:
                        if not error.retriable:
                            raise
                        last = error
                    await asyncio.sleep(backoff.next_s())
                    await self._connection.refresh(
                        {place.topic for place, _ in wanted}, timeout_s=self._timeout_s
                    )
        except TimeoutError:
            raise last from None
        return answers

    async def _ask_leaders(
        self, wanted: list[tuple[Place, pb.OffsetQuery.Bound]]
    ) -> dict[tuple[Place, int], int]:
        by_leader: dict[Address, list[tuple[Place, pb.OffsetQuery.Bound]]] = {}
        for place, bound in wanted:
            leader = self._connection.leader(TopicPartition(place.topic, place.partition))
            if leader is None:
                raise LeaderNotAvailable(f"{place.topic}-{place.partition} has no leader")
            by_leader.setdefault(leader[1], []).append((place, bound))
        replies = await asyncio.gather(*(self._ask(*each) for each in by_leader.items()))
        return {each: offset for reply in replies for each, offset in reply.items()}

    async def _ask(
        self, leader: Address, wanted: list[tuple[Place, pb.OffsetQuery.Bound]]
    ) -> dict[tuple[Place, int], int]:
        request = pb.ListOffsetsRequest(
            isolation=self._isolation,
            queries=[
                pb.OffsetQuery(topic=place.topic, partition=place.partition, bound=bound)
                for place, bound in wanted
            ],
        )
        reply = await self._connection.transport.call(
            leader, BrokerMethods.LIST_OFFSETS, request, timeout_s=self._timeout_s
        )
        found: dict[tuple[Place, int], int] = {}
        for (place, bound), answer in zip(wanted, reply.answers, strict=True):
            if answer.error.code:
                raise error_from_proto(answer.error)
            found[place, bound] = answer.offset
        return found

    async def _at_time(self, times_ms: Mapping[Place, int]) -> Offsets:
        found = await asyncio.gather(
            *(
                find_offset(
                    self._connection,
                    TopicPartition(place.topic, place.partition),
                    time_ms,
                    isolation=self._isolation,
                    timeout_s=self._timeout_s,
                )
                for place, time_ms in times_ms.items()
            )
        )
        return dict(zip(times_ms, found, strict=True))


def _every(topic: TopicInfo) -> list[Place]:
    return [Place(topic.name, number, topic.topic_id.hex()) for number in range(_count(topic))]


def _one(topic: TopicInfo, partition: int) -> Place:
    if partition >= _count(topic):
        raise InvalidSetting(
            f"topic {topic.name} has {_count(topic)} partitions, from 0 on: 'assign' must not name "
            f"partition {partition}"
        )
    return Place(topic.name, partition, topic.topic_id.hex())


def _count(topic: TopicInfo) -> int:
    return len(topic.partitions)
