"""Groups of the SDK's consumers on real nodes and virtual time, while everything is killed.

What the members went through is judged by `suiro.verify.groups`, which knows nothing of how.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import pytest
from suiro._proto import admin_pb2
from suiro.aio import Consumer, Producer
from suiro.aio.coordinators import groups
from suiro.aio.group_offsets import OffsetAndMetadata
from suiro.client_env import ClientEnv
from suiro.model.errors import PositionTruncated
from suiro.model.ids import TopicPartition
from suiro.settings import ConsumerSettings
from suiro.transport.methods import AdminMethods
from suiro.verify.groups import Kind, check, ownerships

from tests.cluster.group_member import Journal, JournaledMember
from tests.sim.loop import LoopClock, VirtualLoop, run
from tests.sim.net import NetworkSettings
from tests.sim.world import World, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from suiro.handle import Sent
    from suiro.verify.groups import Event

    from tests.sim.world import SimNode

TOPIC = "orders"
PARTITIONS = 6
ROUNDS = 6
DRAIN_S = 60.0


@dataclass
class Scene:
    """A cluster, a producer, and members that come and go."""

    cluster: World
    rng: Random
    journal: Journal
    tasks: asyncio.TaskGroup
    members: dict[str, tuple[JournaledMember, asyncio.Task[None]]] = field(default_factory=dict)
    sent: list[tuple[int, Sent]] = field(default_factory=list)
    born: int = 0

    def env(self, name: str) -> ClientEnv:
        clock = LoopClock(asyncio.get_running_loop())
        return ClientEnv(self.cluster.network.transport(name), self.rng, clock.now_ms)

    @property
    def bootstrap(self) -> str:
        return ",".join(map(str, self.cluster.bootstrap))

    def join(self) -> None:
        self.born += 1
        name = f"m{self.born}"
        consumer = Consumer(
            self.bootstrap,
            group_id="g",
            client_id=name,
            env=self.env(name),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
        )
        member = JournaledMember(consumer, name, self.journal)
        task = self.tasks.create_task(member.live(TOPIC), name=name)
        self.members[name] = member, task

    def kill_member(self) -> None:
        """As by kill -9: what is left of it reaches nobody."""
        name = self.rng.choice(sorted(self.members))
        _, task = self.members.pop(name)
        self.journal.add(name, Kind.GONE)
        self.cluster.network.crash(name)
        task.cancel()

    def leave(self) -> None:
        name = self.rng.choice(sorted(self.members))
        member, _ = self.members.pop(name)
        member.stop.set()

    async def fail_over(self, victim: SimNode) -> None:
        victim.kill()
        await asyncio.sleep(self.rng.uniform(0.1, 4.0))
        victim.start()
        await victim.ready()

    async def produce(self, stop: asyncio.Event) -> None:
        async with Producer(self.bootstrap, env=self.env("producer"), linger_ms=1.0) as producer:
            while not stop.is_set():
                partition = self.rng.randrange(PARTITIONS)
                for _ in range(self.rng.randint(1, 5)):
                    self.sent.append((partition, producer.send(TOPIC, b"x", partition=partition)))
                await asyncio.sleep(self.rng.uniform(0, 0.1))
            await producer.flush(timeout_s=60)

    def ends(self) -> dict[str, int]:
        counted = Counter(partition for partition, _ in self.sent)
        return {f"{TOPIC}-{number}": counted[number] for number in range(PARTITIONS)}

    async def drained(self) -> None:
        """Until everything that was sent was given to somebody."""
        async with asyncio.timeout(DRAIN_S):
            while self.unseen():  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.5)

    def unseen(self) -> bool:
        return any("unseen" in line for line in check(self.journal.events, self.ends()))


@asynccontextmanager
async def scene(rng: Random) -> AsyncIterator[Scene]:
    async with world(rng, coordinators=2) as cluster, asyncio.TaskGroup() as tasks:
        topic = admin_pb2.NewTopic(name=TOPIC, partitions=PARTITIONS, replication_factor=3)
        admin = cluster.network.transport("admin")
        request = admin_pb2.CreateTopicsRequest(topics=[topic])
        await admin.call(cluster.bootstrap[0], AdminMethods.CREATE_TOPICS, request, timeout_s=10)
        yield Scene(cluster, rng, Journal(asyncio.get_running_loop().time), tasks)


async def killing_everything(rng: Random) -> tuple[list[Event], dict[str, int]]:
    async with scene(rng) as stage:
        stop = asyncio.Event()
        producing = stage.tasks.create_task(stage.produce(stop), name="produce")
        for _ in range(2):
            stage.join()
        for _ in range(ROUNDS):
            await asyncio.sleep(rng.uniform(0.5, 3.0))
            what = rng.randrange(5)
            if what == 0:
                await stage.fail_over(stage.cluster.nodes[rng.choice((11, 12))])
            elif what == 1:
                await stage.fail_over(rng.choice(stage.cluster.brokers))
            elif what == 2 and stage.members:
                stage.kill_member()
            elif what == 3 and len(stage.members) > 1:
                stage.leave()
            else:
                stage.join()
        stage.join()
        stop.set()
        await producing
        await stage.drained()
        for member, _ in stage.members.values():
            member.stop.set()
        ends = stage.ends()
    return stage.journal.events, ends


@cache
def story(seed: int) -> tuple[list[Event], dict[str, int]]:
    return run(killing_everything, seed=seed)


@pytest.mark.parametrize("seed", range(2))
def test_one_owner_nothing_skipped_and_commits_that_stay(seed: int) -> None:
    events, ends = story(seed)
    assert check(events, ends) == []
    spans = ownerships(events)
    assert sum(map(len, spans.values())) > len(spans), "partitions must have changed hands"


def test_the_same_seed_is_the_same_story() -> None:
    assert run(killing_everything, seed=0) == story(0)


async def standing_still(rng: Random) -> None:
    """As by SIGSTOP, longer than the session: a poll must not return what it had buffered."""
    settings = ConsumerSettings(group_id="g", auto_offset_reset="earliest")
    lost: list[TopicPartition] = []
    async with (
        scene(rng) as stage,
        Producer(stage.bootstrap, env=stage.env("producer")) as producer,
        Consumer(stage.bootstrap, settings=settings, env=stage.env("m")) as consumer,
    ):
        await producer.send(TOPIC, b"x", partition=0)
        consumer.subscribe(TOPIC, on_lost=lost.extend)
        assert (await consumer.poll(5))[0].offset == 0
        await producer.send(TOPIC, b"y", partition=0)
        await asyncio.sleep(0.5)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.stand_still(settings.session_timeout_ms / 1000)
        assert not await consumer.poll(0)
        assert len(lost) == PARTITIONS
        # The nodes stood still as well, and find one another again first.
        assert (await consumer.poll(60))[0].offset == 0


def test_who_stood_still_for_a_session_is_given_nothing_of_the_former_one() -> None:
    """G1: found by SIGSTOP in `group_kill`."""
    run(standing_still, seed=1)


async def losing_touch_with_the_coordinator(rng: Random) -> None:
    """It hangs, or is cut off: nothing breaks, nothing answers, and another one takes over."""
    settings = ConsumerSettings(group_id="g", auto_offset_reset="earliest")
    lost: list[TopicPartition] = []
    async with (
        scene(rng) as stage,
        Consumer(stage.bootstrap, settings=settings, env=stage.env("m")) as consumer,
    ):
        network = stage.cluster.network
        network.settings = NetworkSettings(keepalive_s=15.0)
        consumer.subscribe(TOPIC, on_lost=lost.extend)
        while len(consumer.assignment()) < PARTITIONS:
            await consumer.poll(1)
        owner = await groups(consumer.connection).owner("g", timeout_s=5)
        names = {node.address: node.name for node in stage.cluster.nodes.values()}
        silent = names.pop(owner)
        network.partition([silent], [*names.values(), "m"])
        for _ in range(15):
            await consumer.poll(1)
        assert not lost
        await consumer.commit()


def test_a_coordinator_that_falls_silent_is_replaced_and_nothing_is_lost() -> None:
    run(losing_touch_with_the_coordinator, seed=1)


async def resuming_behind_a_cut(rng: Random) -> None:
    """The group says that it read to 8 in epoch 0, which ended at 5: what it read is gone."""
    where = TopicPartition(TOPIC, 0)
    async with scene(rng) as stage:
        async with Producer(stage.bootstrap, env=stage.env("producer")) as producer:
            for _ in range(5):
                await producer.send(TOPIC, b"x", partition=0)
            leader = producer.connection.topics[TOPIC].partitions[0].leader
            assert leader is not None
            await stage.fail_over(stage.cluster.nodes[leader])
            for _ in range(10):
                await producer.send(TOPIC, b"y", partition=0)
        settings = ConsumerSettings(group_id="g", auto_offset_reset="earliest")
        async with Consumer(stage.bootstrap, settings=settings, env=stage.env("m1")) as consumer:
            await consumer.commit({where: OffsetAndMetadata(8, leader_epoch=0)})
            consumer.subscribe(TOPIC)
            with pytest.raises(PositionTruncated) as cut:
                await anext(aiter(consumer))
            assert cut.value.hints["offset"] == "5"
            consumer.seek(where, 5)
            assert (await consumer.poll(5))[0].value == b"y"


def test_a_position_behind_a_cut_is_an_error_and_no_reset() -> None:
    """G6."""
    run(resuming_behind_a_cut, seed=1)
