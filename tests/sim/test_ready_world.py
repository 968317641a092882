"""Ready is a broker that is in sync: whoever restarts brokers in turn may go on then (L2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sim.client_scene import client_scene
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

BATCHES = 40
SLOW_S = 0.2


def test_a_broker_that_comes_back_is_ready_when_it_is_in_every_isr() -> None:
    async def main(rng: Random) -> None:
        async with client_scene(rng) as scene:
            await scene.create_topic("t", 1)
            broker = scene.cluster.brokers[0]
            broker.kill()
            async with scene.producer("writer") as producer:
                for number in range(BATCHES):
                    await producer.send("t", b"%d" % number, partition=0)
            broker.disk_delay.delay_s_max = SLOW_S
            broker.start()
            await broker.ready()
            assert broker.node is not None
            image = broker.node._feed.image
            topic = image.topic("t")
            assert topic is not None
            partition = image.partition(topic.id, 0)
            assert partition is not None
            assert broker.node_id in partition.isr

    run(main, seed=1)
