"""A quorum that has grown serves a cluster whose nodes were configured with its first member."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro._proto import admin_pb2 as pb
from suiro._proto.common_pb2 import NodeAddress
from suiro.aio import Admin
from suiro.client_env import ClientEnv
from suiro.transport.methods import AdminMethods

from tests.sim.loop import LoopClock, run
from tests.sim.swarm_world import next_controller
from tests.sim.world import CONTROLLER_FROM, world

if TYPE_CHECKING:
    from random import Random

    from tests.sim.world import World

TOLD_S = 1.0
RECOVERY_S_MAX = 10.0


def operator(cluster: World, rng: Random) -> Admin:
    clock = LoopClock(cluster.loop)
    env = ClientEnv(cluster.network.transport("operator"), rng, clock.now_ms)
    return Admin(",".join(map(str, cluster.bootstrap)), env=env)


async def add_controller(cluster: World, admin: Admin) -> None:
    node = cluster.add(next_controller(cluster), "controller")
    node.format([])
    node.start()
    address = NodeAddress(node_id=node.node_id, host=node.address.host, port=node.address.port)
    request = pb.AddControllerRequest(address=address, directory_id=node.directory_id)
    await admin.ask(AdminMethods.ADD_CONTROLLER, request)


def test_nodes_that_know_only_the_first_controller_find_those_that_were_added() -> None:
    """Seed 1138 of the whole system: the first one died, and nobody had another address."""

    async def main(rng: Random) -> None:
        async with (
            world(rng, controllers=1, brokers=3) as cluster,
            operator(cluster, rng) as admin,
        ):
            await add_controller(cluster, admin)
            await add_controller(cluster, admin)
            await asyncio.sleep(TOLD_S)
            cluster.nodes[CONTROLLER_FROM + 1].kill()
            async with asyncio.timeout(RECOVERY_S_MAX):
                await admin.create_topic("after", partitions=1, replication_factor=3)

    run(main, seed=1)
