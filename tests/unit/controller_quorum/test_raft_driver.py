"""The driver: one synced write per Ready, answers only after it, nothing after a failed one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from suiro._proto import admin_pb2
from suiro.model.error_base import ErrorCode
from suiro.model.errors import NotController, StorageFailed
from suiro.transport.methods import AdminMethods

from cluster.controller_quorum.messages import MessageKind
from cluster.host.offload import Inline
from tests.sim.loop import run
from tests.unit.controller_quorum.quorum_sim import quorum_world

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from cluster.controller_quorum.messages import Entry, HardState, Message, Snapshot
    from cluster.controller_quorum.raft_driver import RaftDriver
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
            (result,) = await asked  # by the next leader, or by this one without an answer
            assert result.error.code in (0, ErrorCode.TOPIC_EXISTS)

    run(main, seed=3)


def test_nothing_is_acknowledged_or_promised_before_it_is_stored() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.disk_s_max = 0.02
            world.found(3)
            watched = [Watched(node.controller.driver) for node in world.nodes.values()]
            await asyncio.gather(*(world.set_default(number) for number in range(1, 20)))
            leader = await world.wait_for_leader()
            await world.ask(
                AdminMethods.TRANSFER_CONTROLLER, admin_pb2.TransferControllerRequest(to=-1)
            )
            await world.wait_for_leader(but=leader)
            assert all(one.acknowledged for one in watched)
            assert any(one.promised for one in watched)

    run(main, seed=5)


def test_appends_are_on_the_wire_before_the_leader_writes() -> None:
    """Its write stops the loop: what still lay in a link would leave after it, not during it."""

    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            leader = (await world.wait_for_leader()).controller
            leader.driver._env = replace(leader.env, store_offload=Inline())
            write, left_behind = leader.driver._store.write, []

            def watched_write(*what: Any, sync: bool) -> None:
                left_behind.append([len(link._queue) for link in leader.peers._links.values()])
                write(*what, sync=sync)

            leader.driver._store.write = watched_write
            for number in range(1, 6):
                await world.set_default(number)
            assert len(left_behind) >= 5
            assert {count for counts in left_behind for count in counts} == {0}

    run(main, seed=5)


class Watched:
    """Stands between a driver, its store and its links, and compares what they are told."""

    def __init__(self, driver: RaftDriver) -> None:
        self.acknowledged = self.promised = 0
        self._stored_index = 0
        self._stored_term = 0
        self._write = driver._store.write
        self._send = driver._send
        driver._store.write = self.write  # type: ignore[method-assign]
        driver._send = self.send

    def write(
        self,
        snapshot: Snapshot | None,
        entries: Sequence[Entry],
        hard_state: HardState | None,
        *,
        sync: bool,
    ) -> None:
        self._write(snapshot, entries, hard_state, sync=sync)
        assert sync
        if entries:
            self._stored_index = entries[-1].index
        if hard_state is not None:
            self._stored_term = hard_state.term

    def send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if message.kind is MessageKind.APPEND_REPLY and not message.reject:
                assert message.index <= self._stored_index
                self.acknowledged += 1
            if message.kind is MessageKind.VOTE_REPLY and not message.reject:
                assert message.term <= self._stored_term
                self.promised += 1
        self._send(messages)
