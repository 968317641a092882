"""One of a broker's disks fails, on whole nodes (A6, F10, F16): it takes its own replicas and no
others, nothing acknowledged is lost, and the broker and the controllers go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from typing import TYPE_CHECKING

import pytest
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition

from tests.sim.disk_scene import (
    PARTITIONS,
    TOPIC,
    A,
    B,
    DiskScene,
    break_directory,
    disk_scene,
    held,
    is_alive,
    lose_directory,
    mend_directory,
    replicas_of,
)
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

    from tests.sim.disk import Operation
    from tests.sim.world import SimNode

WRITES = frozenset({"append", "create", "sync", "sync_directory", "truncate", "rename", "remove"})


async def check_only_a_is_offline(scene: DiskScene, broker: SimNode, before: set[int]) -> None:
    assert is_alive(broker)
    assert not held(broker, A)
    assert {p.partition.partition for p in held(broker, B)} == before, "the other disk goes on"
    offline = set(range(PARTITIONS)) - before
    for number in range(PARTITIONS):
        details = await scene.partition(number)
        assert (broker.node_id in details.isr) is (number not in offline), details
        assert details.leader is not None
        if number in offline:
            assert details.leader != broker.node_id
    assert broker.metrics.replicas_offline.of().value >= len(offline)


def numbers_on_b(broker: SimNode) -> set[int]:
    return {p.partition.partition for p in held(broker, B)}


@pytest.mark.parametrize("how", ["eio", "read_only"])
def test_a_failing_directory_takes_only_its_replicas(how: str) -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin()
            await scene.send(40)
            broker = scene.cluster.brokers[0]
            before = numbers_on_b(broker)
            assert 0 < len(before) < PARTITIONS, "replicas are spread over the disks"
            if how == "eio":
                break_directory(broker, A)
            else:
                break_directory(broker, A, errno.EROFS, WRITES)
            await scene.send(40)
            await scene.led()
            await scene.send(40)
            await check_only_a_is_offline(scene, broker, before)
            await scene.check_all_there()

            await broker.stop()  # mended, and started again: everything is in sync again
            mend_directory(broker, A)
            broker.start()
            await broker.ready()
            await scene.all_in_sync()
            assert len(held(broker)) == PARTITIONS
            await scene.check_all_there()

    run(main, seed=21)


@pytest.mark.parametrize("how", ["read_only", "gone"])
def test_a_directory_that_nobody_writes_to_is_found_out_too(how: str) -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin()
            await scene.send(40)
            broker = scene.cluster.brokers[1]
            before = numbers_on_b(broker)
            if how == "gone":
                broker.fs.remove_tree(A)
            else:
                break_directory(broker, A, errno.EROFS, WRITES)
            await asyncio.sleep(10)
            await check_only_a_is_offline(scene, broker, before)

    run(main, seed=22)


def test_a_lost_directory_is_filled_again_from_the_leaders() -> None:
    """F16 for one disk: the broker comes back with an empty one."""

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin()
            await scene.send(60)
            broker = scene.cluster.brokers[2]
            await broker.stop()
            lose_directory(broker, A)
            await scene.send(20)
            broker.start()
            await broker.ready()
            await scene.all_in_sync()
            assert len(held(broker)) == PARTITIONS
            for other in scene.cluster.brokers:
                if other is not broker:
                    other.kill()  # what it holds now is all there is
            await asyncio.sleep(5)
            for other in scene.cluster.brokers:
                if other is not broker:
                    other.start()
            await scene.led()
            await scene.check_all_there()

    run(main, seed=23)


def test_the_only_replica_is_never_replaced_by_an_empty_log() -> None:
    """Row 37, M10, P15: without its disk a partition of one replica has no leader, and says so;
    also after further restarts. With the disk back it has everything.
    """

    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin(replication_factor=1)
            await scene.send(40)
            broker = next(b for b in scene.cluster.brokers if held(b, A))
            lost = {p.partition.partition for p in held(broker, A)}
            kept = {p.partition.partition for p in held(broker, B)}
            await broker.stop()
            aside, store = broker.fs.snapshot(A), broker.stores[A / "state"]
            lose_directory(broker, A)
            for _ in range(2):
                broker.start()
                await broker.ready()
                await asyncio.sleep(5)
                for number in range(PARTITIONS):
                    leader = (await scene.partition(number)).leader
                    if number in lost:
                        assert leader is None
                    elif number in kept:
                        assert leader == broker.node_id
                assert len(replicas_of(broker).offline) >= len(lost)
                await broker.stop()
            broker.fs.restore(A, aside)
            broker.stores[A / "state"] = store
            broker.start()
            await broker.ready()
            await scene.led()
            await scene.check_all_there()

    run(main, seed=24)


def test_a_node_that_starts_with_a_failed_directory_serves_the_other() -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            await scene.begin()
            await scene.send(40)
            broker = scene.cluster.brokers[0]
            before = numbers_on_b(broker)
            await broker.stop()
            break_directory(broker, A)
            broker.start()
            await broker.ready()
            await scene.send(40)
            await asyncio.sleep(5)
            await check_only_a_is_offline(scene, broker, before)
            await scene.admin.create_topic("new", partitions=2, replication_factor=3)
            await asyncio.sleep(1)
            for number in range(2):
                found = replicas_of(broker).find(TopicPartition("new", number))
                assert found is not None
                assert found.log.home.root == B, "new replicas go where a disk works"
            await scene.check_all_there()

    run(main, seed=25)


def test_new_replicas_go_where_there_is_room() -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng, brokers=1, internal_replication_factor=1) as scene:
            broker = scene.cluster.brokers[0]
            broker.fs.capacities = {A: 30_000_000, B: 300_000_000}
            await scene.admin.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=1)
            await asyncio.sleep(2)
            assert len(held(broker, B)) == PARTITIONS

    run(main, seed=26)


@pytest.mark.parametrize("who", ["leader", "follower", "only one"])
def test_a_replica_moves_to_another_disk_under_load(who: str) -> None:
    async def main(rng: Random) -> None:
        async with disk_scene(rng) as scene:
            factor = 1 if who == "only one" else 3
            await scene.begin(replication_factor=factor, configs={"segment.bytes": "16384"})
            await scene.send(300)
            broker, partition = next(
                (broker, partition)
                for broker in scene.cluster.brokers
                for partition in held(broker, A)
                if partition.leads is (who != "follower")
            )
            where = partition.partition
            await scene.admin.move_replica(where, broker=broker.node_id, to=str(B))
            await scene.send(100)
            await asyncio.sleep(5)
            assert where in {p.partition for p in held(broker, B)}
            assert not broker.fs.exists(A / str(where))
            await scene.all_in_sync()
            await scene.check_all_there()
            broker.kill()  # it is there for good
            await asyncio.sleep(5)
            broker.start()
            await broker.ready()
            await scene.all_in_sync()
            assert where in {p.partition for p in held(broker, B)}
            await scene.check_all_there()

    run(main, seed=27)


def test_a_crash_at_any_point_of_a_move_leaves_the_whole_log() -> None:
    """The power fails after each step of the disk in turn; the partition has this one replica."""

    async def attempt(rng: Random, steps: int) -> bool:
        async with disk_scene(rng) as scene:
            await scene.begin(replication_factor=1, configs={"flush.policy": "ack"})
            await scene.send(12)
            broker = next(b for b in scene.cluster.brokers if held(b, A))
            where = held(broker, A)[0].partition
            left = steps

            def after(operation: Operation) -> None:
                nonlocal left
                if (
                    "moved" in str(operation.path)
                    or "moving" in str(operation.path)
                    or left < steps
                ):
                    left -= 1
                    if left == 0:
                        broker.fs.after = None
                        asyncio.get_running_loop().call_soon(broker.crash)

            broker.fs.after = after
            with contextlib.suppress(SuiroError):  # the answer may be lost with the power
                await scene.admin.move_replica(where, broker=broker.node_id, to=str(B))
            await asyncio.sleep(5)
            is_over = broker.fs.after is not None
            broker.fs.after = None
            if not is_over:
                broker.start()
                await broker.ready()
            await scene.led()
            await scene.check_all_there()
            return is_over

    steps = 1
    while not run(lambda rng, steps=steps: attempt(rng, steps), seed=28):  # type: ignore[misc]
        steps += 2
    assert steps > 10
