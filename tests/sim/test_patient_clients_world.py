"""While nobody may serve them, clients ask now and then: a cluster that is in trouble has to get
back on its feet under all of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro.aio import Admin, Consumer
from suiro.client_env import ClientEnv
from suiro.model.ids import TopicPartition

from tests.sim.loop import LoopClock, run
from tests.sim.world import CONTROLLER_FROM, world

if TYPE_CHECKING:
    from random import Random

    from tests.sim.world import World

LEASES_ARE_OVER_S = 5.0
ASKED_S = 20.0
CALLS_PER_S_MAX = 20


def client_env(cluster: World, rng: Random) -> ClientEnv:
    clock = LoopClock(cluster.loop)
    return ClientEnv(cluster.network.transport("client"), rng, clock.now_ms)


@pytest.mark.parametrize("group", [None, "readers"])
def test_a_consumer_asks_seldom_while_no_leader_and_no_coordinator_serves(
    group: str | None,
) -> None:
    async def main(rng: Random) -> None:
        async with world(rng, controllers=1, brokers=3, coordinators=1) as cluster:
            bootstrap = ",".join(map(str, cluster.bootstrap))
            env = client_env(cluster, rng)
            async with Admin(bootstrap, env=env) as admin:
                await admin.create_topic("t", partitions=1, replication_factor=3)
            async with Consumer(bootstrap, env=client_env(cluster, rng), group_id=group) as reader:
                if group is None:
                    await reader.assign({TopicPartition("t", 0): 0})
                else:
                    reader.subscribe("t")
                await reader.poll(1.0)
                cluster.nodes[CONTROLLER_FROM + 1].kill()
                await asyncio.sleep(LEASES_ARE_OVER_S)
                before = cluster.network.rpcs_made
                await asyncio.sleep(ASKED_S)
                assert cluster.network.rpcs_made - before < ASKED_S * CALLS_PER_S_MAX

    run(main, seed=1)
