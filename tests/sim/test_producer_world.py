"""The SDK's producer against real nodes on virtual time: leaders die, each record is there once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from suiro._proto import admin_pb2 as admin
from suiro._proto import broker_pb2 as pb
from suiro.aio import Producer
from suiro.client_env import ClientEnv
from suiro.model.columns import decode
from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.error_base import ErrorCode, SuiroError
from suiro.model.errors import ClientClosed, DeliveryTimedOut, TimedOut
from suiro.model.ids import NodeId
from suiro.transport.framing import Framed
from suiro.transport.methods import AdminMethods, BrokerMethods

from tests.sim.loop import LoopClock, run
from tests.sim.world import World, world

if TYPE_CHECKING:
    from random import Random

    from suiro.handle import Sent

KEYS = 5
PARTITIONS = 2


def producer(cluster: World, rng: Random, **settings: Any) -> Producer:
    clock = LoopClock(asyncio.get_running_loop())
    env = ClientEnv(cluster.network.transport("client"), rng, clock.now_ms)
    bootstrap = ",".join(map(str, cluster.bootstrap))
    return Producer(bootstrap, env=env, **settings)


async def create_topic(cluster: World, name: str) -> None:
    topic = admin.NewTopic(name=name, partitions=PARTITIONS, replication_factor=3)
    topic.configs["min.insync.replicas"] = "2"
    transport = cluster.network.transport("admin")
    request = admin.CreateTopicsRequest(topics=[topic])
    await transport.call(cluster.bootstrap[0], AdminMethods.CREATE_TOPICS, request, timeout_s=10.0)


async def read_all(cluster: World, sender: Producer, topic: str) -> list[list[bytes | None]]:
    """The values of each partition, as its leader has them committed."""
    await sender.connection.refresh([topic], timeout_s=30)
    logs = []
    for number in range(PARTITIONS):
        values: list[bytes | None] = []
        leader = sender.connection.topics[topic].partitions[number].leader
        assert leader is not None
        while True:
            part = pb.FetchPart(
                topic=topic, partition=number, offset=len(values), max_bytes=1 << 20, last_epoch=-1
            )
            reply = await cluster.network.transport("reader").call(
                sender.connection.brokers[leader],
                BrokerMethods.FETCH,
                pb.FetchRequest(parts=[part], max_bytes=1 << 20),
                timeout_s=10,
            )
            body, at = reply.body, 0
            if not body:
                break
            while at < len(body):
                columns = decode(body, at)
                values += columns.values_list()
                at += columns.header.size
        logs.append(values)
    return logs


async def sending_through_kills(rng: Random) -> None:
    async with world(rng) as cluster:
        await create_topic(cluster, "exact")
        sent: list[tuple[bytes, Sent]] = []
        async with producer(cluster, rng, linger_ms=1.0, batch_size=500) as sender:
            stop = asyncio.Event()

            async def send() -> None:
                while not stop.is_set():
                    for _ in range(rng.randint(1, 30)):
                        value = b"%d" % len(sent)
                        key = b"key-%d" % (len(sent) % KEYS)
                        sent.append((value, sender.send("exact", value, key=key)))
                    await asyncio.sleep(rng.uniform(0, 0.4))

            sending = asyncio.create_task(send(), name="send")
            for _ in range(3):
                await asyncio.sleep(rng.uniform(0.2, 2.0))
                victim = rng.choice(cluster.brokers)
                victim.kill()
                await asyncio.sleep(rng.uniform(0.2, 12.0))
                victim.start()
                await victim.ready()
            stop.set()
            await sending
            await sender.flush(timeout_s=110)
            logs = await read_all(cluster, sender, "exact")
        check(logs, sent)


def check(logs: list[list[bytes | None]], sent: list[tuple[bytes, Sent]]) -> None:
    stored = sorted(int(value or b"") for log in logs for value in log)
    assert stored == list(range(len(sent))), "each record once, none missing"
    for log in logs:
        for key in range(KEYS):
            numbers = [int(v or b"") for v in log if int(v or b"") % KEYS == key]
            assert numbers == sorted(numbers), "out of order within a key"
    for value, handle in sent:
        where = handle.result(0)
        assert logs[where.partition][where.offset] == value


@pytest.mark.parametrize("seed", range(3))
def test_every_record_once_and_in_order_while_leaders_die(seed: int) -> None:
    run(sending_through_kills, seed=seed)


async def sending_to_nobody(rng: Random) -> None:
    async with world(rng) as cluster:
        await create_topic(cluster, "gone")
        settings = {"delivery_timeout_ms": 3_000.0, "buffer_memory": 100_000, "batch_size": 10_000}
        async with producer(cluster, rng, **settings) as sender:
            await sender.send("gone", b"first")
            for broker in cluster.brokers:
                broker.kill()
            handles = []
            refused: SuiroError | None = None
            while refused is None:
                try:
                    handles.append(sender.send("gone", b"x" * 100))
                except SuiroError as error:
                    refused = error
                if len(handles) % 100 == 0:
                    await asyncio.sleep(0.01)
            assert len(handles) < 1_000, "the buffer is bounded"
            with pytest.raises(
                DeliveryTimedOut, match=r"within 3000 ms, in \d+ attempts; last: .*n\d"
            ):
                await handles[0]
            await sender.flush(timeout_s=10)
            assert sender.stager.buffered < 20_000


def test_without_brokers_the_buffer_is_bounded_and_the_error_says_why() -> None:
    run(sending_to_nobody, seed=1)


async def retrying_what_is_not_committed(rng: Random) -> None:
    async with world(rng) as cluster:
        await create_topic(cluster, "exact")
        async with producer(cluster, rng) as sender:
            await sender.connection.refresh(["exact"], timeout_s=30)
            leader = sender.connection.topics["exact"].partitions[0].leader
            followers = [node for node in cluster.brokers if node.node_id != leader]
            leader_name = cluster.nodes[int(leader or 0)].name
            options = BatchOptions(producer_id=5, producer_epoch=0, base_sequence=0)
            batch = encode_lists(None, [b"once"], timestamps_ms=0, options=options)
            part = pb.ProducePart(topic="exact", partition=0, size=len(batch))
            header = pb.ProduceRequest(acks=-1, timeout_ms=50, parts=[part])

            async def produce() -> pb.ProduceResult:
                reply = await cluster.network.transport("client").call(
                    sender.connection.brokers[NodeId(leader or 0)],
                    BrokerMethods.PRODUCE,
                    Framed(header, (batch,)),
                    timeout_s=10,
                )
                return reply.results[0]

            for node in followers:
                cluster.network.cut(node.name, leader_name)  # they count as in sync for a while
            first = await produce()
            again = await produce()
            codes = [int(first.error.code), int(again.error.code)]
            assert codes == [ErrorCode.TIMED_OUT, ErrorCode.TIMED_OUT]
            cluster.network.heal_all()
            stored = await produce()
            while stored.error.code:
                await asyncio.sleep(0.2)
                stored = await produce()
            assert stored.base_offset == 0
            assert (await read_all(cluster, sender, "exact"))[0] == [b"once"]


def test_a_duplicate_is_acknowledged_only_when_it_is_committed() -> None:
    """I2: that the leader has it is not enough."""
    run(retrying_what_is_not_committed, seed=1)


async def closing_in_a_hurry(rng: Random) -> None:
    async with world(rng) as cluster:
        await create_topic(cluster, "exact")
        async with producer(cluster, rng) as sender:
            await sender.send("exact", b"first")
            for broker in cluster.brokers:
                broker.kill()
            on_its_way = sender.send("exact", b"second")
            await asyncio.sleep(0.1)
            staged = sender.send("exact", b"third")
            with pytest.raises(TimedOut):
                await sender.close(timeout_s=0)
            for handle in (on_its_way, staged):
                with pytest.raises(ClientClosed):
                    handle.result(0)
            with pytest.raises(ClientClosed):
                sender.send("exact", b"fourth")


def test_every_handle_has_an_end_when_the_producer_is_closed() -> None:
    run(closing_in_a_hurry, seed=1)
