"""The coordinator dies at each state of its machine, on virtual time: what the client was told is
what every partition and the group show. `tests.cluster.txn_failpoints` does it to real processes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro.aio.group_offsets import OffsetAndMetadata
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition

from cluster.txncoord.coordinator import TxnCoordinator
from cluster.txncoord.failpoint import Failpoint
from tests.cluster.txn_failpoints import POINTS, Point, Tried
from tests.sim.client_scene import client_scene
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

    import pytest

    from tests.sim.client_scene import ClientScene
    from tests.sim.world import SimNode

TOPIC = "orders"
PARTITIONS = 4
SOURCE = "source"
WANTED = 7
"""What the group is to have committed, in a partition of its own for each point."""


class SimFailpoint(Failpoint):
    """Kills its own simulated node; `wanted` and `scene` are those of the one test that runs."""

    scene: ClientScene | None = None
    wanted = ""

    @property
    def is_set(self) -> bool:
        return True

    def reached(self, *words: str) -> None:
        if SimFailpoint.wanted == " ".join(words):
            SimFailpoint.wanted = ""
            self._node().kill()

    def _node(self) -> SimNode:
        assert SimFailpoint.scene is not None
        for machine in SimFailpoint.scene.cluster.nodes.values():
            for role in [] if machine.node is None else machine.node._coordinators:
                if isinstance(role, TxnCoordinator) and role._program.failpoint is self:
                    return machine
        raise AssertionError("nobody has this failpoint")


async def dying(rng: Random) -> list[Tried]:
    """A transaction for each point; at the end everything is looked at."""
    async with client_scene(rng) as scene:
        SimFailpoint.scene = scene
        await scene.create_topic(TOPIC, PARTITIONS)
        await scene.create_topic(SOURCE, len(POINTS))
        told = [await die_at(scene, point, number) for number, point in enumerate(POINTS)]
        logs = await scene.read_all(TOPIC, PARTITIONS)
        values = [record.value for log in logs for record in log]
        async with scene.consumer("member", group_id="g") as consumer:
            offsets = await consumer.committed(
                TopicPartition(SOURCE, n) for n in range(len(POINTS))
            )
        tried = []
        for number, point in enumerate(POINTS):
            at = offsets.get(TopicPartition(SOURCE, number))
            fired, said = told[number]
            seen = values.count(b"%d" % number)
            offset = -1 if at is None else at.offset
            tried.append(Tried(point, fired, said, seen, offset, WANTED, 0.0))
        return tried


async def die_at(scene: ClientScene, point: Point, number: int) -> tuple[bool, str]:
    """Whether it died, and what the client was told; afterwards everybody is up again."""
    SimFailpoint.wanted = point.name
    told = await transact(scene, point, number)
    await asyncio.sleep(1)  # markers are sent after the answer
    fired, SimFailpoint.wanted = not SimFailpoint.wanted, ""
    for machine in scene.victims:
        if machine.node is None:
            machine.start()
            await machine.ready()
    return fired, told


async def transact(scene: ClientScene, point: Point, number: int) -> str:
    name = f"t{number}"
    async with (
        scene.consumer(f"c{number}", group_id="g", enable_auto_commit=False) as consumer,
        scene.producer(name, transactional_id=name) as producer,
    ):
        try:
            await producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.send(TOPIC, b"%d" % number, partition=partition)
            where = TopicPartition(SOURCE, number)
            await producer.send_offsets(consumer, {where: OffsetAndMetadata(WANTED)})
            if point.commit:
                await producer.commit_transaction()
                return "committed"
            await producer.abort_transaction()
        except SuiroError:
            if not producer.transactions.is_open:
                return "unknown"
            await producer.abort_transaction()
        return "aborted"


def test_what_was_told_is_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Failpoint, "from_environment", classmethod(lambda _: SimFailpoint("")))
    tried = run(dying, seed=1)
    assert [each.line() for each in tried if not each.is_right] == []
