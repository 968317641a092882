"""Controllers as a whole, on virtual time: what they promise to clients, brokers and each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro._proto import admin_pb2
from suiro.model.error_base import ErrorCode
from suiro.model.errors import ClusterIdMismatch, InvalidRequest, NotController
from suiro.model.records import ConfigResource
from suiro.transport.methods import AdminMethods

from cluster.controller_quorum.large_topics import STEP
from cluster.storage import random_cluster_id
from tests.sim.loop import run
from tests.unit.controller_quorum.quorum_sim import CALL_S, FeedFollower, quorum_world

if TYPE_CHECKING:
    from random import Random


def test_a_single_controller_serves() -> None:
    """Register a broker, create a topic, follow the feed."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(1)
            registered = await world.unfenced_broker(101)
            assert registered.broker_epoch == 1
            result = await world.create_topic("orders")
            assert not result.error.code
            follower = FeedFollower()
            node = await world.wait_for_leader()
            following = world.tasks.create_task(world.follow(node, follower))
            await follower.reach(node.controller.driver.end - 1)
            assert follower.image.topic("orders") is not None
            assert follower.image.state_hash() == node.controller.replica.machine.image.state_hash()
            await world.create_topic("payments")
            await follower.reach(node.controller.driver.end - 1)
            assert follower.image.topic("payments") is not None
            following.cancel()

    run(main, seed=1)


def test_everything_is_there_after_a_crash() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng, snapshot_entries=5) as world:
            world.found(1)
            await world.unfenced_broker(101)
            for number in range(20):
                await world.create_topic(f"topic-{number}")
            node = world.nodes[1]
            await asyncio.sleep(1)
            assert node.controller.driver.raft.log.snapshot.index > 0
            before = node.controller.replica.machine.image.state_hash()
            await node.crash()
            node.start()
            await world.wait_for_leader()
            image = node.controller.replica.machine.image
            assert sorted(image.topics_by_name) == sorted(f"topic-{n}" for n in range(20))
            assert image.state_hash() == before

    run(main, seed=2)


@pytest.mark.parametrize("seed", range(6))
def test_no_acknowledged_change_is_lost(seed: int) -> None:
    """The leader crashes again and again while clients create topics."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng, snapshot_entries=10) as world:
            world.found(3)
            await world.unfenced_broker(101)
            acknowledged: set[str] = set()

            async def create(client: int) -> None:
                for number in range(20):
                    name = f"topic-{client}-{number}"
                    result = await world.create_topic(name)
                    # Created by an earlier try whose answer was lost: it is there just as well.
                    assert result.error.code in (0, 31), result.error
                    acknowledged.add(name)

            async with asyncio.TaskGroup() as clients:
                for client in range(4):
                    clients.create_task(create(client))
                for _ in range(5):
                    await asyncio.sleep(rng.random() * 0.5)
                    leader = await world.wait_for_leader()
                    await leader.crash()
                    await asyncio.sleep(rng.random() * 0.5)
                    leader.start()
            await world.settle()
            assert len(await world.hashes()) == 1
            for node in world.nodes.values():
                if node.controller.replica.is_current or node.controller.is_serving:
                    image = node.controller.replica.machine.image
                    assert acknowledged <= set(image.topics_by_name)

    run(main, seed=seed, run_s_max=600)


@pytest.mark.parametrize("seed", range(4))
def test_a_power_loss_of_all_loses_nothing(seed: int) -> None:
    """All disks, which are slow, forget what was not synced, at one moment, again and again."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng, snapshot_entries=20) as world:
            world.disk_s_max = 0.03
            world.found(3)
            acknowledged: dict[str, int] = {}

            async def change(key: str) -> None:
                for number in range(100, 10_000):
                    await world.set_cluster(key, str(number))
                    acknowledged[key] = number

            changing = [
                world.tasks.create_task(change(key))
                for key in ("segment.ms", "retention.ms", "flush.ms", "flush.messages")
            ]
            for _ in range(4):
                await world.wait_for_leader()
                await asyncio.sleep(rng.random())
                told = dict(acknowledged)
                for node in world.nodes.values():
                    await node.crash()
                for node in world.nodes.values():
                    node.start()
                leader = await world.wait_for_leader()
                configs = leader.controller.replica.machine.image.configs(ConfigResource.CLUSTER)
                assert all(int(configs[key]) >= number for key, number in told.items())
            for task in changing:
                task.cancel()
            await world.settle()
            assert len(await world.hashes()) == 1

    run(main, seed=seed, run_s_max=600)


def test_a_cut_off_leader_serves_no_stale_read() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.unfenced_broker(101)
            old = await world.wait_for_leader()
            others = [node.name for node in world.nodes.values() if node is not old]
            world.network.partition([old.name], others)
            # The client still reaches the old leader, which still believes that it leads.
            assert old.controller.is_serving
            with pytest.raises(NotController):
                await world.client.call(
                    old.address,
                    AdminMethods.DESCRIBE_CLUSTER,
                    admin_pb2.DescribeClusterRequest(),
                    timeout_s=CALL_S,
                )
            new = await world.wait_for_leader(but=old)
            assert new is not old
            world.network.heal_all()
            await world.settle()
            assert len(await world.hashes()) == 1

    run(main, seed=4)


# -- sessions -------------------------------------------------------------------------------------


def test_a_dead_broker_is_fenced_within_a_second_and_a_silent_one_after_its_timeout() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            dead = await world.unfenced_broker(101)
            silent = await world.unfenced_broker(102)
            dead.die()
            assert await world.fenced_after(101) < 0.5
            silent.is_silent = True
            assert 2 < await world.fenced_after(102) < 4
            silent.is_silent = False  # it was only slow: the same incarnation may come back
            await world.until(lambda image: not image.nodes[102].fenced)

    run(main, seed=5)


def test_a_change_of_leader_fences_nobody() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            broker = await world.unfenced_broker(101)
            for _ in range(5):
                leader = await world.wait_for_leader()
                await leader.crash()
                await world.wait_for_leader()
                await asyncio.sleep(5)
                leader.start()
                image = (await world.wait_for_leader()).controller.replica.machine.image
                assert not image.nodes[101].fenced
                assert image.nodes[101].broker_epoch == broker.broker_epoch

    run(main, seed=6)


def test_a_broker_is_unfenced_only_when_its_image_is_far_enough() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(1)
            reply = await world.register(101)
            broker = world.broker(101, reply.broker_epoch)
            broker.image_index = reply.registered_at_index - 1
            await asyncio.sleep(1)
            assert broker.notice.fenced
            broker.image_index = reply.registered_at_index
            async with asyncio.timeout(5):
                await broker.unfenced.wait()

    run(main, seed=7)


def test_a_clean_shutdown_moves_the_leaders_first() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(1)
            leaving = await world.unfenced_broker(101)
            await world.unfenced_broker(102)
            topic = admin_pb2.NewTopic(name="orders", partitions=4, replication_factor=2)
            await world.ask(
                AdminMethods.CREATE_TOPICS, admin_pb2.CreateTopicsRequest(topics=[topic])
            )
            leaving.want_shutdown = True
            await world.until(lambda image: image.nodes[101].shutting_down)
            image = world.nodes[1].controller.replica.machine.image
            assert {state.leader for state in image.topic("orders").partitions} == {102}
            async with asyncio.timeout(5):
                while not leaving.notice.may_shut_down:  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.1)

    run(main, seed=8)


# -- members --------------------------------------------------------------------------------------


def test_controllers_are_added_and_removed() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng, snapshot_entries=10) as world:
            world.found(3)
            for number in range(1, 30):
                await world.set_default(number)
            await world.add(world.join(4))
            await world.remove(1)
            leader = await world.wait_for_leader()
            await world.remove(leader.node_id)
            for number in range(1, 10):
                await world.set_default(number)
            await world.settle()
            assert len(await world.hashes()) == 1
            conf = (await world.wait_for_leader()).controller.driver.raft.conf
            expected = {2, 3, 4, 1} - {1, leader.node_id}
            assert {voter.node for voter in conf.voters} == expected

    run(main, seed=9)


def test_a_wiped_controller_has_no_vote_until_it_is_added_again() -> None:
    """M7: two of three lose their disks; they must not make up a quorum of their own."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.set_default(7)
            leader = await world.wait_for_leader()
            wiped = [node for node in world.nodes.values() if node is not leader]
            for node in wiped:
                await node.crash()
                node.wipe()
                node.directory_id = rng.randbytes(16)
                node.format([])
                node.start()
            await asyncio.sleep(30)
            assert world.leader() is None, "one of three is no majority, and the others are nobody"
            for node in wiped:
                assert node.controller.driver.raft.vote is None

    run(main, seed=10)


def test_one_wiped_controller_is_replaced() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.set_default(7)
            leader = await world.wait_for_leader()
            wiped = next(node for node in world.nodes.values() if node is not leader)
            await wiped.crash()
            wiped.wipe()
            wiped.directory_id = rng.randbytes(16)
            wiped.format([])
            wiped.start()
            with pytest.raises(InvalidRequest, match="remove it first"):
                await world.add(wiped)
            request = admin_pb2.RemoveControllerRequest(node_id=wiped.node_id)
            await world.ask(AdminMethods.REMOVE_CONTROLLER, request)
            await world.add(wiped)
            await world.settle()
            assert len(await world.hashes()) == 1

    run(main, seed=11)


def test_a_foreign_controller_is_refused() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(1)
            foreign = world.join(9, cluster_id=random_cluster_id(rng))
            with pytest.raises(ClusterIdMismatch):
                await world.add(foreign)

    run(main, seed=12)


def test_a_large_topic_is_made_in_steps() -> None:
    """Whole when it is answered for; what cannot be made is refused before anything is."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.unfenced_broker(101)

            async def create(**topics: int) -> list[admin_pb2.TopicResult]:
                wanted = [
                    admin_pb2.NewTopic(name=name, partitions=count, replication_factor=1)
                    for name, count in topics.items()
                ]
                request = admin_pb2.CreateTopicsRequest(topics=wanted)
                reply = await world.ask(AdminMethods.CREATE_TOPICS, request, timeout_s=60)
                return list(reply.results)

            results = await create(small=3, large=2 * STEP + 1, other=STEP, too_large=100_001)
            assert [result.partitions for result in results] == [3, 2 * STEP + 1, STEP, 0]
            assert int(results[3].error.code) == ErrorCode.INVALID_TOPIC
            grown = await world.ask(
                AdminMethods.ADD_PARTITIONS,
                admin_pb2.AddTopicPartitionsRequest(topic="other", total=3 * STEP),
            )
            assert grown.partitions == 3 * STEP
            leader = await world.wait_for_leader()
            image = leader.controller.replica.machine.image
            counts = {name: len(image.topic(name).partitions) for name in image.topics_by_name}
            assert counts == {"small": 3, "large": 2 * STEP + 1, "other": 3 * STEP}
            by_hand = admin_pb2.NewTopic(
                name="by-hand", assignment=[admin_pb2.ReplicaList(nodes=[101])] * (STEP + 1)
            )
            reply = await world.ask(
                AdminMethods.CREATE_TOPICS, admin_pb2.CreateTopicsRequest(topics=[by_hand])
            )
            assert reply.results[0].error.code == ErrorCode.INVALID_REQUEST
            assert await world.hashes()

    run(main, seed=9)


def test_a_large_node_comes_and_goes_in_steps() -> None:
    """It is fenced, comes back and leads everything again; its leader is the same all the while."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            broker = await world.unfenced_broker(101)
            wanted = admin_pb2.NewTopic(name="large", partitions=2 * STEP + 1, replication_factor=1)
            request = admin_pb2.CreateTopicsRequest(topics=[wanted])
            await world.ask(AdminMethods.CREATE_TOPICS, request, timeout_s=60)
            broker.is_silent = True
            await world.until(lambda image: len(image.leaderless) == 2 * STEP + 1)
            broker.is_silent = False
            await world.until(lambda image: not image.leaderless)
            leader = await world.wait_for_leader()
            assert leader.controller.driver.raft.term == 1

    run(main, seed=10)
