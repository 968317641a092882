"""The feed: any controller serves it, nothing uncommitted is in it, and the slow are cut off."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from suiro._proto import admin_pb2, controller_pb2
from suiro.model.error_base import SuiroError
from suiro.model.errors import ClusterIdMismatch, Unavailable
from suiro.model.ids import NodeId
from suiro.transport.methods import AdminMethods, ControllerMethods

from cluster.host.hello import make_hello
from tests.sim.loop import run
from tests.unit.controller_quorum.quorum_sim import FeedFollower, quorum_world

if TYPE_CHECKING:
    from random import Random


def test_every_controller_feeds_the_same() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng, snapshot_entries=8) as world:
            world.found(3)
            await world.unfenced_broker(101)
            for number in range(30):
                await world.create_topic(f"topic-{number}")
            await world.settle()
            followers = []
            for node in world.nodes.values():
                follower = FeedFollower()
                following = world.tasks.create_task(world.follow(node, follower))
                await follower.reach(node.controller.driver.end - 1)
                following.cancel()
                followers.append(follower)
            assert len({follower.image.state_hash() for follower in followers}) == 1
            assert {
                (follower.index, follower.image.state_hash().hex()) for follower in followers
            } == (await world.hashes())

    run(main, seed=1)


def test_a_follower_goes_on_where_it_was() -> None:
    """From one controller to the next, with deltas alone."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.unfenced_broker(101)
            follower = FeedFollower()
            for number, node in enumerate(world.nodes.values()):
                await world.create_topic(f"topic-{number}")
                following = world.tasks.create_task(world.follow(node, follower))
                await follower.reach((await world.wait_for_leader()).controller.driver.end - 1)
                following.cancel()
            assert follower.snapshots == 0
            assert len(follower.image.topics) == 3

    run(main, seed=2)


def test_what_is_not_committed_is_not_fed() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.unfenced_broker(101)
            old = await world.wait_for_leader()
            follower = FeedFollower()
            following = world.tasks.create_task(world.follow(old, follower))
            await follower.reach(old.controller.driver.end - 1)
            others = [node.name for node in world.nodes.values() if node is not old]
            world.network.partition([old.name], others)
            topic = admin_pb2.NewTopic(name="lost", partitions=1, replication_factor=1)
            with contextlib.suppress(SuiroError):
                await world.client.call(
                    old.address,
                    AdminMethods.CREATE_TOPICS,
                    admin_pb2.CreateTopicsRequest(topics=[topic]),
                    timeout_s=0.2,
                )
            assert old.controller.driver.raft.log.last >= follower.index + 1, "it was proposed"
            newcomer = FeedFollower()
            watching = world.tasks.create_task(world.follow(old, newcomer))
            await newcomer.reach(follower.index)
            assert newcomer.image.topic("lost") is None
            await world.wait_for_leader(but=old)
            await world.create_topic("kept")
            world.network.heal_all()
            await world.settle()
            await follower.reach(old.controller.driver.end - 1)
            assert follower.image.topic("lost") is None
            assert follower.image.topic("kept") is not None
            assert len(await world.hashes()) == 1, "the old leader has forgotten it as well"
            following.cancel()
            watching.cancel()

    run(main, seed=3)


def test_a_slow_follower_is_cut_off() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng, snapshot_entries=50) as world:
            world.found(1)
            node = await world.wait_for_leader()
            driver = node.controller.driver
            stream = await world.client.open(node.address, ControllerMethods.FOLLOW_METADATA)
            hello = make_hello(world.cluster_id, NodeId(77))
            await stream.send(controller_pb2.FollowMetadataRequest(hello=hello))
            await stream.finish()
            async with asyncio.timeout(600):
                while driver.raft.log.base < 200:
                    await asyncio.gather(*(world.set_default(n) for n in range(1, 9)))
            with pytest.raises(Unavailable, match="too slow"):
                await _read_all(stream)

    run(main, seed=4)


async def _read_all(stream: Any) -> None:
    while await stream.receive() is not None:
        pass


def test_a_node_of_another_cluster_is_refused() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(1)
            node = await world.wait_for_leader()
            stream = await world.client.open(node.address, ControllerMethods.FOLLOW_METADATA)
            await stream.send(
                controller_pb2.FollowMetadataRequest(hello=make_hello("another", NodeId(7)))
            )
            with pytest.raises(ClusterIdMismatch):
                await stream.receive()

    run(main, seed=5)
