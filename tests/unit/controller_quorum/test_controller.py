"""Controllers as a whole, on virtual time: what they promise to clients, brokers and each other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro._proto import admin_pb2
from suiro.model.errors import NotController
from suiro.transport.methods import AdminMethods

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
            # The broker's session ran out meanwhile or not; its topics are all there.
            image = node.controller.replica.machine.image
            assert sorted(image.topics_by_name) == sorted(f"topic-{n}" for n in range(20))
            if not image.nodes[101].fenced:
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
