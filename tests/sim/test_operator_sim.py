"""Replicas are moved, leaders elected and brokers killed under load, on virtual time.

Whole nodes in racks, a consumer that reads from the nearest replica, and an operator who does not
wait: plans are carried out with and without a throttle, cancelled, and brokers die in between. What
was acknowledged must be there at its offset (P1, P2), and the consumer must see every offset once
and in order (P8), whichever replica it read from.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro import aio
from suiro._proto import broker_pb2 as pb
from suiro.client_env import ClientEnv
from suiro.model.encode import encode_lists
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition
from suiro.transport.framing import Framed
from suiro.transport.methods import BrokerMethods
from suiro.transport.wire_errors import raise_if_error

from tests.sim.loop import run
from tests.sim.world import World

if TYPE_CHECKING:
    from random import Random

WHERE = TopicPartition("t", 0)
BROKERS = (1, 2, 3, 4)
STEPS = 8
HEAL_S = 60


class Story:
    """One cluster, its clients, and what they were told."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.world = World(rng, {})
        self.acked: dict[int, bytes] = {}
        self.seen: list[tuple[int, bytes | None]] = []
        self.near = 0
        self.is_over = False
        self.all_is_sent = False

    async def start(self) -> None:
        world = self.world
        nodes = [world.add(101, "controller"), *(world.add(n, "broker") for n in BROKERS)]
        for node in nodes:
            node.format([nodes[0].founder])
            self.start_node(node.node_id)
        await world.ready(nodes)

    def start_node(self, node_id: int) -> None:
        self.world.settings["rack"] = f"r{node_id}"
        self.world.nodes[node_id].start()

    async def end(self) -> None:
        for node in reversed(self.world.nodes.values()):
            node.kill()
        await asyncio.wait(self.world.graveyard)
        await self.world.network.close()

    def env(self, name: str) -> ClientEnv:
        return ClientEnv(self.world.network.transport(name), self.rng, lambda: 0)

    @property
    def bootstrap(self) -> str:
        return ",".join(map(str, self.world.bootstrap))

    async def produce(self) -> None:
        """One record at a time; what fails may be there or not, and is sent as another."""
        number = 0
        async with aio.Admin(self.bootstrap, env=self.env("producer")) as admin:
            while not self.is_over:
                await asyncio.sleep(0.01)
                number += 1
                value = b"%d" % number
                try:
                    self.acked[await self.send(admin, value)] = value
                except SuiroError:
                    await asyncio.sleep(0.1)
        self.all_is_sent = True

    async def send(self, admin: aio.Admin, value: bytes) -> int:
        leader = admin.connection.leader(WHERE)
        if leader is None:
            await admin.describe_topic("t")
            return await self.send(admin, value)
        data = encode_lists(None, [value], timestamps_ms=1)
        part = pb.ProducePart(topic="t", partition=0, size=len(data))
        request = pb.ProduceRequest(acks=-1, timeout_ms=2_000, parts=[part])
        try:
            reply = await admin.connection.transport.call(
                leader[1], BrokerMethods.PRODUCE, Framed(request, (data,)), timeout_s=3
            )
            raise_if_error(reply.results[0].error)
        except SuiroError:
            await admin.describe_topic("t")
            raise
        return reply.results[0].base_offset

    async def consume(self) -> None:
        async with aio.Consumer(
            self.bootstrap,
            env=self.env("consumer"),
            client_rack="r3",
            auto_offset_reset="earliest",
        ) as consumer:
            await consumer.assign([WHERE])
            while not self.all_is_sent or len(self.seen) <= max(self.acked):
                self.seen += [(r.offset, r.value) for r in await consumer.poll(0.5)]
                self.near += consumer.fetcher.reads_from(WHERE) == self.world.nodes[3].address

    async def operate(self) -> None:
        async with aio.Admin(self.bootstrap, env=self.env("admin")) as admin:
            for _ in range(STEPS):
                await asyncio.sleep(self.rng.uniform(0.2, 3))
                try:
                    await self.step(admin)
                except SuiroError as error:
                    self.world.trace.add("refused", error.message)
            await admin.throttle(0)
            async with asyncio.timeout(HEAL_S):
                await self.settle(admin)

    async def settle(self, admin: aio.Admin) -> None:
        while True:
            if not await admin.reassignments():
                return
            await asyncio.sleep(0.2)

    async def step(self, admin: aio.Admin) -> None:
        match self.rng.choice(("spread", "spread", "drain", "cancel", "elect", "kill", "kill")):
            case "spread":
                chosen = self.rng.sample(BROKERS, 3)
                plan = await admin.plan_spread(["t"], chosen)
                rate = self.rng.choice((0, 2_000, 1_000_000))
                await admin.reassign(plan, throttle_bytes_per_s=rate)
            case "drain":
                await admin.reassign(await admin.plan_drain(self.rng.choice(BROKERS)))
            case "cancel":
                await admin.cancel_reassignments()
            case "elect":
                await admin.elect_leaders()
            case _:
                node = self.world.nodes[self.rng.choice(BROKERS)]
                node.kill()
                await asyncio.sleep(self.rng.uniform(0, 6))
                self.start_node(node.node_id)
                await node.ready()


async def tell(rng: Random) -> Story:
    story = Story(rng)
    await story.start()
    try:
        async with aio.Admin(story.bootstrap, env=story.env("maker")) as admin:
            configs = {"min.insync.replicas": "2"}
            await admin.create_topic("t", partitions=1, replication_factor=3, configs=configs)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(story.produce(), name="producer")
            tasks.create_task(story.consume(), name="consumer")
            await story.operate()
            await asyncio.sleep(5)
            story.is_over = True
    finally:
        await story.end()
    return story


@pytest.mark.parametrize("seed", range(2))
def test_replicas_move_under_load_and_faults(seed: int) -> None:
    story = run(tell, seed=seed)
    check(story)


def check(story: Story) -> None:
    assert len(story.acked) > 100, "nothing was acknowledged, so nothing was tested"
    assert story.near, "the nearest replica was never read from"
    assert [offset for offset, _ in story.seen] == list(range(len(story.seen)))
    values = [value for _, value in story.seen]
    lost = {o: v for o, v in story.acked.items() if values[o] != v}
    assert not lost
