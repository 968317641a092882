"""How often partitions are ticked: those at rest seldom, but not so seldom that it hides a lag."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from suiro._proto.common_pb2 import Hello

from cluster.broker.leader import PAUSE_MS
from cluster.broker.replication_hub import REST_TICKS, RESTLESS_MS, TICK_S, ReplicationHub
from cluster.host.events import NO_EVENTS
from cluster.log.config import Flush
from tests.sim.loop import LoopClock, run

if TYPE_CHECKING:
    from random import Random


class Counted:
    """As much of a partition as the hub's clockwork looks at."""

    def __init__(self) -> None:
        self.log = SimpleNamespace(config=SimpleNamespace(flush=Flush.OS))
        self.ticked_s: list[float] = []

    def tick(self) -> None:
        self.ticked_s.append(asyncio.get_running_loop().time())


async def hub_with(partitions: list[Counted]) -> ReplicationHub:
    clock = LoopClock(asyncio.get_running_loop())
    env = SimpleNamespace(clock=clock, offload=None, events=NO_EVENTS)
    hub = ReplicationHub(
        cast("Any", env), Hello(), {}, cast("Any", None), cast("Any", lambda _: None)
    )
    for partition in partitions:
        hub.keep_ticking(cast("Any", partition), wanted=True)
    return hub


async def ticks_in(hub: ReplicationHub, partitions: list[Counted], for_s: float) -> None:
    """Let the clockwork run from now on, and forget what it did before."""
    for partition in partitions:
        partition.ticked_s.clear()
    ticking = asyncio.create_task(hub._tick_forever())
    await asyncio.sleep(for_s)
    ticking.cancel()
    await asyncio.wait([ticking])


def test_at_rest_seldom_and_evenly_spread() -> None:
    async def story(_: Random) -> None:
        partitions = [Counted() for _ in range(40)]
        hub = await hub_with(partitions)
        await ticks_in(hub, partitions, 2 * RESTLESS_MS / 1000)
        await ticks_in(hub, partitions, 20.1)
        assert {len(p.ticked_s) for p in partitions} == {round(20 / TICK_S / REST_TICKS)}
        rounds = [p.ticked_s[0] for p in partitions]
        assert {rounds.count(at) for at in rounds} == {40 // REST_TICKS}

    run(story, seed=1)


def test_busy_each_time() -> None:
    async def story(_: Random) -> None:
        partitions = [Counted() for _ in range(3)]
        hub = await hub_with(partitions)
        await ticks_in(hub, partitions, 2 * RESTLESS_MS / 1000)
        hub.appended(cast("Any", partitions[1]))
        await ticks_in(hub, partitions, RESTLESS_MS / 1000)
        assert len(partitions[1].ticked_s) >= RESTLESS_MS / 1000 / TICK_S - 1
        assert len(partitions[0].ticked_s) < len(partitions[1].ticked_s) / 2

    run(story, seed=1)


def test_a_rest_is_no_pause() -> None:
    """Else a leader would forgive its followers their lag for ever."""
    assert 1000 * TICK_S * REST_TICKS < PAUSE_MS
