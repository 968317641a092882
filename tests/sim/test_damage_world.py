"""Bits flip in the files of whole nodes (F13, P15): a bad batch is never served, counted as held or
elected on; the log is put aside and fetched again, as long as anybody else has it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition

from tests.sim.disk_scene import (
    PARTITIONS,
    TOPIC,
    DiskScene,
    disk_scene,
    held,
    is_alive,
)
from tests.sim.loop import run

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.sim.world import SimNode

SMALL = {"segment.bytes": "16384"}
SCRUB_S = 5


def segments(broker: SimNode, number: int) -> list[Path]:
    """The data files of a partition, oldest first."""
    name = f"{TOPIC}-{number}"
    return sorted(
        path for path in broker.fs.contents() if path.suffix == ".log" and path.parent.name == name
    )


def flip(broker: SimNode, path: Path, rng: Random) -> None:
    broker.fs.flip_bit(path, rng.randrange(len(broker.fs.content(path))), rng.randrange(8))


async def scrub_often(scene: DiskScene) -> None:
    await scene.admin.alter_configs({"scrub.interval.ms": str(SCRUB_S * 1000)})


def leader_of(scene: DiskScene, number: int) -> SimNode:
    where = TopicPartition(TOPIC, number)
    found = [
        b for b in scene.cluster.brokers if any(p.partition == where and p.leads for p in held(b))
    ]
    return found[0]


async def check_replicas_equal(scene: DiskScene) -> None:
    """P11: byte for byte, whatever happened to one of them."""
    for number in range(PARTITIONS):
        whole = {
            b"".join(broker.fs.content(path) for path in segments(broker, number))
            for broker in scene.cluster.brokers
        }
        assert len(whole) == 1, number


@pytest.mark.parametrize("who", ["leader", "follower"])
def test_scrubbing_finds_damage_and_the_replica_is_fetched_again(who: str) -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(600)
            leader = leader_of(scene, 0)
            others = [b for b in scene.cluster.brokers if b is not leader]
            broker = leader if who == "leader" else others[0]
            flip(broker, segments(broker, 0)[0], rng)
            await scrub_often(scene)
            await asyncio.sleep(4 * SCRUB_S)
            await scene.all_in_sync()
            assert broker.metrics.logs_damaged.of().value == 1
            assert broker.metrics.logs_repaired.of().value == 1
            assert is_alive(broker)
            await scene.send(20)
            await scene.check_all_there()
            await check_replicas_equal(scene)
            names = {path.parent.name for path in broker.fs.contents()}
            assert not [name for name in names if "quarantine" in name], "no longer needed"

    run(main, seed=31 if who == "leader" else 32)


def test_who_reads_a_bad_batch_is_served_by_another_replica() -> None:
    """Without scrubbing: the reader finds it, at the leader, and never gets it."""

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(600)
            leader = leader_of(scene, 0)
            flip(leader, segments(leader, 0)[1], rng)
            await scene.check_all_there()
            await scene.all_in_sync()
            assert leader.metrics.logs_repaired.of().value == 1
            await check_replicas_equal(scene)

    run(main, seed=33)


def test_the_only_copy_serves_what_is_good_of_it_and_refuses_the_rest() -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(replication_factor=1, configs=SMALL)
            await scene.send(600)
            leader = leader_of(scene, 0)
            flip(leader, segments(leader, 0)[1], rng)
            await scrub_often(scene)
            await asyncio.sleep(2 * SCRUB_S)
            assert leader.metrics.logs_damaged.of().value == 1
            assert (await scene.partition(0)).leader == leader.node_id, "nobody else could"
            with pytest.raises(SuiroError, match="the header says"):
                await scene.read_all(TOPIC, 1)
            await scene.send(20)

    run(main, seed=34)


def test_a_majority_of_damaged_replicas_stops_and_never_shortens() -> None:
    """P15: two of three are damaged at once; what only the third has is not thrown away."""

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(600)
            whole = leader_of(scene, 0)
            for broker in scene.cluster.brokers:
                if broker is not whole:
                    flip(broker, segments(broker, 0)[0], rng)
            await scrub_often(scene)
            await asyncio.sleep(6 * SCRUB_S)
            await scene.all_in_sync()
            await scene.check_all_there()
            await check_replicas_equal(scene)

    run(main, seed=35)
