"""What a workload needs of the world, on virtual time and with real processes alike."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from suiro.aio import Bound
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from random import Random

    from suiro.aio import Admin, Consumer, Producer
    from suiro.model.record import Record

PAUSE_S = 0.2


class Clients(Protocol):
    """Makes clients; whatever runs under a name can be cut off, paused and killed by it."""

    rng: Random
    replication_factor: int

    @property
    def topic_configs(self) -> Mapping[str, str]:
        """For every topic of a workload."""

    def now_s(self) -> float: ...
    def producer(self, name: str, **settings: Any) -> Producer: ...
    def consumer(self, name: str, **settings: Any) -> Consumer: ...
    def admin(self) -> Admin: ...
    def spawn(self, name: str, life: Coroutine[Any, Any, None]) -> asyncio.Task[None]: ...


class Workload(Protocol):
    """Something that clients do, and the proof that it was done."""

    name: str

    @property
    def done(self) -> int:
        """How much was acknowledged so far: it has to grow whenever enough nodes are up."""

    async def prepare(self) -> None:
        """Make the topics."""

    async def run(self, stop: asyncio.Event) -> None:
        """Until stopped, and everything is answered for."""

    async def finish(self) -> list[str]:
        """After all has healed: read everything, and say what is wrong."""


async def make_topic(
    clients: Clients, name: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    factor = clients.replication_factor
    in_sync = {"min.insync.replicas": str(min(2, factor))}
    async with clients.admin() as admin:
        await admin.create_topic(
            name,
            partitions=partitions,
            replication_factor=factor,
            configs={**in_sync, **clients.topic_configs, **(configs or {})},
        )


async def read_topic(clients: Clients, topic: str, partitions: int) -> list[Record]:
    """Every committed record of a topic that is at rest, from the beginning."""
    wheres = [TopicPartition(topic, number) for number in range(partitions)]
    found: list[Record] = []
    async with clients.consumer(f"final reader of {topic}") as consumer:
        await consumer.assign(wheres)
        while not await is_at_end(consumer, wheres):
            found += await consumer.poll(PAUSE_S, max_records=10_000)
    return found


async def is_at_end(consumer: Consumer, wheres: list[TopicPartition]) -> bool:
    for where in wheres:
        if consumer.position(where) < await consumer.offset_of(where, Bound.LATEST):
            return False
    return True


async def keep_trying(attempt: Any, stop: asyncio.Event) -> int:
    """Run `attempt()` again and again until stopped: an application whose client gave up makes
    a new one. How many attempts that took.
    """
    lives = 0
    while not stop.is_set():
        lives += 1
        try:
            await attempt()
        except SuiroError:
            await asyncio.sleep(PAUSE_S)
    return lives
