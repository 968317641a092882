"""The whole system on virtual time: nodes of every role, the real SDK, and everything that fails.

    make sim SEED=7                                 one seed, with its story
    python -m tests.sim.swarm --seeds 2000 --jobs 2

Every seed draws its own cluster, faults and workloads (`swarm_plan`). The phases: warm-up, faults,
heal, liveness with only a quorum of every kind up, full heal, drain, check. A failure is a broken
promise, a process that ended by itself, a handler that raised what is no SuiroError, work that
stands still though enough nodes are up, or tasks that were left behind.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, TypeVar

from suiro.model.error_base import SuiroError

from tests.sim.loop import run
from tests.sim.seeds import Outcome, main
from tests.sim.swarm_faults import Nemesis
from tests.sim.swarm_plan import draw
from tests.sim.swarm_world import SwarmWorld, swarm_world

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tests.sim.swarm_plan import SwarmPlan
    from tests.sim.world import SimNode

T = TypeVar("T")

HEAL_S_MAX = 60.0
PROGRESS_S_MAX = 40.0
DRAIN_S_MAX = 240.0
RUN_S_MAX = 1_800.0
STORY_EVENTS = 40


class Broken(AssertionError):
    """A promise was broken; its text says which."""


class Run:
    """One seed."""

    def __init__(self, plan: SwarmPlan, *, verbose: bool) -> None:
        self.plan = plan
        self.counts: Counter[str] = Counter()
        self.events = 0
        self.digest = ""
        self.story: list[str] = []
        self._verbose = verbose

    async def tell(self, rng: Random) -> None:
        async with swarm_world(rng, self.plan) as world:
            world.cluster.trace.keep_notes()
            try:
                await self._phases(world)
            finally:
                trace = world.cluster.trace
                self.events, self.digest = len(trace), trace.digest()
                last = trace.story().splitlines()
                last = last if self._verbose else last[-STORY_EVENTS:]
                self.story = [str(self.plan), *trace.notes, "the last events:", *last]

    async def _phases(self, world: SwarmWorld) -> None:
        nemesis, stop = Nemesis(world), asyncio.Event()
        working = [asyncio.create_task(work.run(stop), name=work.name) for work in world.works]
        try:
            await asyncio.sleep(self.plan.warm_up_s)
            await nemesis.rage(self.plan.faults_s)
            await nemesis.peace()
            await _all_up(world, HEAL_S_MAX)
            await _alive(world, "all nodes are up")
            # Again: what a cut has done to sessions shows seconds after it has healed, and who is
            # alone in sync must not be taken away.
            await _all_up(world, HEAL_S_MAX)
            await self._quorum_only(world)
            await _all_up(world, HEAL_S_MAX)
            stop.set()
            await _within(asyncio.gather(*working), DRAIN_S_MAX, "what was sent is not answered")
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
        await self._check(world)
        self.counts.update({f"fault {name}": count for name, count in nemesis.counts.items()})

    async def _quorum_only(self, world: SwarmWorld) -> None:
        """As many as may be away are away; everyone must get on."""
        rng, away = world.rng, []
        away += rng.sample(world.controllers, (len(world.controllers) - 1) // 2)
        away += rng.sample(world.cluster.brokers, 1)
        away += rng.sample(world.coordinators, len(world.coordinators) - 1)
        for node in away:
            world.note("away for the liveness phase", node.name)
            node.kill()
        await asyncio.sleep(self.plan.quorum_only_s)
        await _alive(world, "a quorum is up")
        for node in away:
            node.start()

    async def _check(self, world: SwarmWorld) -> None:
        for work in world.works:
            self.counts[f"done {work.name}"] += work.done
            world.note("check", work.name, work.done)
            found = await _within(work.finish(), DRAIN_S_MAX, f"{work.name} does not drain")
            if found:
                raise Broken(f"{work.name}: {len(found)} wrong: {'; '.join(found[:5])}")
        if world.deaths:
            raise Broken("; ".join(world.deaths))


async def _all_up(world: SwarmWorld, seconds: float) -> None:
    """Every node is ready, and every replica in sync (L1)."""
    for node in list(world.cluster.nodes.values()):
        await _within(_ready(node), seconds, f"{node.name} is not ready after all healed,")
    await _within(_in_sync(world), seconds, "replicas are not in sync after all healed,")


async def _ready(node: SimNode) -> None:
    is_ready = False
    while not is_ready:
        try:
            await node.ready()
            is_ready = True
        except (SuiroError, OSError, ExceptionGroup):
            await asyncio.sleep(1)  # it died; its supervisor starts it again


async def _in_sync(world: SwarmWorld) -> None:
    async with world.clients.admin() as admin:
        while True:
            topics = (await admin.topics()).values()
            if all(set(p.isr) == set(p.replicas) for topic in topics for p in topic.partitions):
                return
            await asyncio.sleep(0.5)


async def _alive(world: SwarmWorld, when: str) -> None:
    """Every workload gets something done (L1)."""
    before = [work.done for work in world.works]
    for work, done in zip(world.works, before, strict=True):
        try:
            async with asyncio.timeout(PROGRESS_S_MAX):
                while work.done <= done:  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise Broken(f"L1 {work.name} stands still though {when}") from None


async def _within(work: Awaitable[T], seconds: float, what: str) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise Broken(f"L1 {what} in {seconds:.0f} s") from None


def run_seed(seed: int, *, verbose: bool = False) -> Outcome:
    """A violation is an outcome, not an exception."""
    one = Run(draw(Random(seed)), verbose=verbose)
    failure = None
    gc.disable()  # it would look through millions of objects that live on, and take a sixth
    try:
        run(one.tell, seed=seed, run_s_max=RUN_S_MAX)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        one.story.append(f"replay: make sim SEED={seed}")
    finally:
        gc.enable()
    return Outcome(seed, int(one.digest or "0", 16), one.events, one.counts, failure, one.story)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # nodes that are killed complain
    sys.exit(main(__doc__, run_seed))
