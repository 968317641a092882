"""The driver: one synced write per Ready, answers only after it, nothing after a failed one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro.model.errors import NotController, StorageFailed

from tests.sim.loop import run
from tests.unit.controller_quorum.quorum_sim import quorum_world

if TYPE_CHECKING:
    from random import Random

    from tests.sim.store import StoreDisk


def count_writes(disk: StoreDisk) -> list[bool]:
    """Notes each write from now on, and whether it was synced."""
    seen: list[bool] = []
    store = disk.store

    def counted(write: object, *, sync: bool) -> None:
        seen.append(sync)
        store(write, sync=sync)  # type: ignore[arg-type]

    disk.store = counted  # type: ignore[method-assign]
    return seen


def test_changes_that_come_together_share_one_synced_write() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(1)
            node = await world.wait_for_leader()
            driver = node.controller.driver
            driver.close()  # the machine's host makes way for the test
            writes = count_writes(node.disk)
            driver._is_open = True
            positions = [driver.append([b"record"]) for _ in range(100)]
            await driver.committed(positions[-1])
            assert positions == list(range(positions[0], positions[0] + 100))
            assert writes == [True]

    # The entries are no metadata; applying them is the host's part, and there is none here.
    run(main, seed=1)


def test_confirmations_share_rounds() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            driver = (await world.wait_for_leader()).controller.driver
            before = driver._rounds
            await asyncio.gather(*(driver.confirm() for _ in range(200)))
            assert driver._rounds - before == 1
            follower = next(n for n in world.nodes.values() if n is not world.leader())
            with pytest.raises(NotController):
                await follower.controller.driver.confirm()

    run(main, seed=2)


def test_a_failed_write_ends_the_controller() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.unfenced_broker(101)
            leader = await world.wait_for_leader()
            leader.disk.fail_writes = True
            asked = asyncio.gather(world.create_topic("orders"))
            with pytest.raises(ExceptionGroup) as failure:
                await leader.ended()
            assert failure.value.subgroup(StorageFailed) is not None
            (result,) = await asked  # by the next leader
            assert not result.error.code

    run(main, seed=3)
