"""kill -9 of one node after another, each started again at once, for as long as a block lasts."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from cluster.local_cluster import LocalCluster, LocalNode

UP_MIN = {"broker": 2, "group": 1, "txn": 1}
"""So many of a kind are left alone: with fewer, nothing is promised but to wait."""


class Killing:
    """Every `every_s` a node is killed, unless too few of every kind are up again by then."""

    def __init__(self, cluster: LocalCluster, rng: Random, every_s: float) -> None:
        self.killed: Counter[str] = Counter()
        self.skipped = 0
        self._cluster = cluster
        self._rng = rng
        self._every_s = every_s
        self._down: set[str] = set()
        self._returning: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """At the end every node is up again."""
        task = asyncio.create_task(self._kill_forever())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.gather(*self._returning)

    async def _kill_forever(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            victims = self._candidates()
            if not victims:
                self.skipped += 1
                continue
            kind = self._rng.choice(sorted({kind_of(node) for node in victims}))
            victim = self._rng.choice([node for node in victims if kind_of(node) == kind])
            self.killed[kind] += 1
            self._down.add(victim.name)
            victim.kill()
            task = asyncio.create_task(self._bring_back(victim))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    def _candidates(self) -> list[LocalNode]:
        nodes = [*self._cluster.brokers, *self._cluster.coordinators]
        up = Counter(kind_of(node) for node in nodes if node.name not in self._down)
        return [
            node
            for node in nodes
            if node.name not in self._down and up[kind_of(node)] > UP_MIN[kind_of(node)]
        ]

    async def _bring_back(self, victim: LocalNode) -> None:
        victim.start()
        await asyncio.to_thread(victim.wait_ready)
        self._down.discard(victim.name)


def kind_of(node: LocalNode) -> str:
    return node.name.partition("-")[0]
