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
from suiro.model.batch import walk

from tests.sim import loop
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
from tests.sim.test_damage_world import SMALL, check_replicas_equal, flip, segments

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from random import Random

    from tests.sim.disk import Operation
    from tests.sim.disk_scene import DiskScene
    from tests.sim.world import SimNode


COMPACTED = {
    **SMALL,
    "cleanup.policy": "compact",
    "segment.ms": "10000",
    "min.cleanable.dirty.ratio": "0",
}
ENOUGH_S = 300.0
"""Of virtual time; who is not done by then waits for something that will never come."""


def run(main: Callable[[Random], Coroutine[None, None, None]], seed: int) -> None:
    loop.run(main, seed=seed, run_s_max=ENOUGH_S)


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
            if suffix == ".log":
                await asyncio.sleep(5)  # a clean start trusts what was synced; scrubbing does not
            await check_whole_again(scene)

    run(main, seed=44)


LEADER_EPOCH_AT = 12
"""In a batch's header; its CRC begins behind it."""


@pytest.mark.parametrize("bits", [1 << 24, 1], ids=["there never was", "began later"])
def test_the_leader_epoch_of_the_last_record_is_not_what_it_was(bits: int) -> None:
    """No checksum covers it, and there is no next record whose epoch would be lower. An epoch that
    the metadata do not know: the log is put aside. One that began later: it is cut.
    """

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=SMALL)
            await scene.send(40)
            broker = next(b for b in scene.cluster.brokers if any(p.leads for p in held(b)))
            number = next(p.partition.partition for p in held(broker) if p.leads)
            broker.kill()
            await scene.send(40)  # in a new leader epoch
            flip_epoch(broker, segments(broker, number)[-1], bits)
            broker.start()
            await broker.ready()
            await check_whole_again(scene)
            assert broker.metrics.logs_repaired.of().value == (bits > 1)

    run(main, seed=47)


def test_the_only_replica_with_an_impossible_leader_epoch_is_not_given_up() -> None:
    """There is nobody to fetch it from: it stays as it is, and nobody leads."""

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(replication_factor=1, configs=SMALL)
            await scene.send(40)
            broker = next(b for b in scene.cluster.brokers if held(b))
            number = held(broker)[0].partition.partition
            path = segments(broker, number)[-1]
            broker.kill()
            flip_epoch(broker, path, 1 << 24)
            damaged = broker.fs.content(path)
            broker.start()
            await broker.ready()
            await asyncio.sleep(30)
            assert broker.fs.content(path) == damaged
            assert broker.metrics.logs_damaged.of().value == 1
            assert broker.metrics.logs_repaired.of().value == 0

    run(main, seed=48)


def flip_epoch(broker: SimNode, path: Path, bits: int) -> None:
    """In the last batch of a file."""
    content = bytearray(broker.fs.content(path))
    last = max(position for position, _ in walk(bytes(content)))
    field = slice(last + LEADER_EPOCH_AT, last + LEADER_EPOCH_AT + 4)
    content[field] = (int.from_bytes(content[field], "big") ^ bits).to_bytes(4, "big")
    broker.fs.replace(path, bytes(content))


@pytest.mark.parametrize(
    "ending", ["/recovery_point", "/high_watermark", "/log_start", "/cleaned", "snapshot", "clean"]
)
def test_a_bit_flips_in_the_state_of_every_log(ending: str) -> None:
    """In the values of the directories' stores: recovery points, snapshots of producers and epochs,
    log starts, when the log was compacted, the mark of the clean shutdown. Each carries a checksum,
    and counts as lost.
    """

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(configs=COMPACTED if ending == "/cleaned" else SMALL)
            await scene.send(200)
            if ending == "/cleaned":
                await asyncio.sleep(60)
            broker = scene.cluster.brokers[0]
            await broker.stop()
            flipped = sum(
                broker.stores[root / "state"].flip_bits(ending.encode(), rng) for root in (A, B)
            )
            assert flipped
            broker.start()
            await broker.ready()
            await check_whole_again(scene)

    run(main, seed=45)


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
