"""Faults of one broker's disk on whole nodes, each by itself (F10, F12, F13, F16): nothing that was
acknowledged is lost (P1), the replicas end up equal (P11), and a log that cannot be proved is not
counted on (P13, P15). Full disks: `test_full_disk_world`; failing and lost directories:
`test_directories_world`; damage in what is open: `test_damage_world`; the quorum's own store:
`tests/unit/controller_quorum/test_raft_store_damage.py`.
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING

import pytest

from tests.sim.disk_scene import (
    PARTITIONS,
    A,
    B,
    disk_scene,
    held,
    is_alive,
    lose_directory,
    replicas_of,
)
from tests.sim.loop import run
from tests.sim.test_damage_world import SMALL, check_replicas_equal, flip, segments

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.sim.disk import Operation
    from tests.sim.disk_scene import DiskScene
    from tests.sim.world import SimNode


async def check_whole_again(scene: DiskScene) -> None:
    await scene.all_in_sync()
    await scene.send(20)
    await scene.check_all_there()
    await check_replicas_equal(scene)


def test_a_sync_that_failed_once_loses_the_log_although_the_next_one_succeeds() -> None:
    """fsyncgate: the kernel drops what it could not write, and tells it once."""

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs={"flush.policy": "ack"})
            await scene.send(20)
            broker = scene.cluster.brokers[0]
            failed: list[Path] = []

            def fault(operation: Operation) -> OSError | None:
                is_log = A in operation.path.parents and operation.path.suffix == ".log"
                if operation.kind == "sync" and is_log and not failed:
                    failed.append(operation.path)
                    return OSError(errno.EIO, os.strerror(errno.EIO))
                return None

            broker.fs.fault = fault
            await scene.send(20)
            await asyncio.sleep(2)
            assert failed
            assert not held(broker, A), "not used again, though the disk says that all is well"
            assert held(broker, B)
            assert is_alive(broker)
            await scene.check_all_there()
            broker.crash()  # what the failed sync lost is lost
            await asyncio.sleep(5)
            broker.start()
            await broker.ready()
            await check_whole_again(scene)

    run(main, seed=41)


def test_a_torn_tail_is_cut_and_fetched_again() -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(120)
            broker = scene.cluster.brokers[1]
            broker.kill()
            for number in range(PARTITIONS):
                last = segments(broker, number)[-1]
                content = broker.fs.content(last)
                broker.fs.replace(last, content[: len(content) - rng.randrange(1, 150)])
            await scene.send(20)
            broker.start()
            await broker.ready()
            await check_whole_again(scene)

    run(main, seed=42)


def test_zeros_at_the_end_are_cut() -> None:
    """The size was written, the bytes were not."""

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(120)
            broker = scene.cluster.brokers[1]
            broker.kill()
            for number in range(PARTITIONS):
                last = segments(broker, number)[-1]
                broker.fs.replace(last, broker.fs.content(last) + bytes(5_000))
            broker.start()
            await broker.ready()
            await check_whole_again(scene)

    run(main, seed=43)


def damage_files(broker: SimNode, suffix: str, rng: Random) -> int:
    hit = [
        path
        for path, content in broker.fs.contents().items()
        if path.name.endswith(suffix) and content and (A in path.parents or B in path.parents)
    ]
    for path in hit:
        flip(broker, path, rng)
    return len(hit)


@pytest.mark.slow  # not seen to its end yet: `.index` and `.timeindex` files are next
@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", "topic.id", "directory.id"])
def test_a_bit_flips_in_every_file_of_a_kind(suffix: str, how: str) -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs={**SMALL, "index.interval.bytes": "512"})
            await scene.send(400)
            broker = scene.cluster.brokers[2]
            if how == "stopped":
                await broker.stop()
            else:
                broker.kill()
            assert damage_files(broker, suffix, rng)
            broker.start()
            await broker.ready()
            await check_whole_again(scene)

    run(main, seed=44)


@pytest.mark.slow  # not seen to its end yet
@pytest.mark.parametrize(
    "ending", ["/recovery_point", "/high_watermark", "/log_start", "/cleaned", "snapshot", "clean"]
)
def test_a_bit_flips_in_the_state_of_every_log(ending: str) -> None:
    """In the values of the directories' stores: recovery points, snapshots of producers and epochs,
    log starts, the mark of the clean shutdown. Each carries a checksum, and counts as lost.
    """

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(200)
            broker = scene.cluster.brokers[0]
            await broker.stop()
            flipped = sum(
                broker.stores[root / "state"].flip_bits(ending.encode(), rng) for root in (A, B)
            )
            assert flipped or ending == "/cleaned"
            broker.start()
            await broker.ready()
            await check_whole_again(scene)

    run(main, seed=45)


@pytest.mark.slow  # not seen to its end yet
def test_a_broker_that_lost_all_of_its_disks_is_filled_again() -> None:
    """F16: it comes back under its id with nothing."""

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(200)
            broker = scene.cluster.brokers[0]
            broker.kill()
            lose_directory(broker, A)
            lose_directory(broker, B)
            await scene.send(20)
            broker.start()
            await broker.ready()
            await check_whole_again(scene)
            assert not replicas_of(broker).offline

    run(main, seed=46)
