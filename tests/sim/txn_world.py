"""The world of the transaction simulation: a heap of callbacks and a network that loses things.

Nothing here depends on wall time, on the address of an object or on the order of a set: a seed is a
story that can be told again. The actors are in the modules beside this one.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from suiro.model.ids import TopicPartition

from tests.sim.txn_checker import TxnChecker, Violation
from tests.sim.txn_coordinator import Coordinator
from tests.sim.txn_places import Group, Partition
from tests.sim.txn_producer import Producer
from tests.sim.txn_query import Query

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.sim.txn_plan import Plan

EVENTS_MAX: Final = 200_000
LATE_MS: Final = 6_000
GROUP: Final = "copiers"


class World:
    """One run of one plan."""

    def __init__(self, seed: int, plan: Plan, random: Random, *, verbose: bool = False) -> None:
        self.plan = plan
        self.random = random
        self.now = 0
        self.events = 0
        self.trace = seed
        self.story: list[str] | None = [] if verbose else None
        self.counts: Counter[str] = Counter()
        self.is_calm = False
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._scheduled = 0
        self.checker = TxnChecker(plan.epoch_max)
        self.coordinator = Coordinator(self)
        self.partitions = {
            TopicPartition("t", n): Partition(self, TopicPartition("t", n))
            for n in range(plan.partitions)
        }
        self.group = Group(self, GROUP)
        self.producers: list[Producer] = []
        for number in range(plan.ids):
            self.start_producer(f"id{number}")
        self.queries = [Query(self, f"query{number}") for number in range(plan.queries)]

    def start_producer(self, transactional_id: str) -> None:
        """Another instance; those before it may be dead, or only think that they are alive."""
        number = len(self.producers)
        self.producers.append(Producer(self, transactional_id, f"{transactional_id}#{number}"))

    # -- time -------------------------------------------------------------------------------------

    def after(self, delay_ms: int, act: Callable[..., None], *arguments: Any) -> None:
        self._scheduled += 1
        heappush(self._heap, (self.now + delay_ms, self._scheduled, act, arguments))

    def run_until(self, end_ms: int, done: Callable[[], bool] | None = None) -> bool:
        while self._heap and self._heap[0][0] <= end_ms:
            self.now, _, act, arguments = heappop(self._heap)
            self.events += 1
            if self.events > EVENTS_MAX:
                raise Violation("L1: it does not come to rest")
            act(*arguments)
            if done is not None and done():
                return True
        self.now = max(self.now, end_ms)
        return False

    # -- network ----------------------------------------------------------------------------------

    def send(
        self, what: str, act: Callable[..., None], *arguments: Any, may_be_late: bool = False
    ) -> None:
        """Deliver once, twice, or never; and what may be late, perhaps long after all is over."""
        plan, random = self.plan, self.random
        copies = 1
        if not self.is_calm:
            if random.random() < plan.drop_rate:
                self.counts["messages lost"] += 1
                copies = 0
            elif random.random() < plan.duplicate_rate:
                self.counts["messages doubled"] += 1
                copies = 2
        for _ in range(copies):
            delay_ms = random.randint(1, plan.delay_ms)
            if not self.is_calm and random.random() < plan.slow_rate:
                delay_ms += random.randint(1, plan.slow_ms)
            if may_be_late and not self.is_calm and random.random() < plan.late_rate:
                delay_ms += random.randint(1, LATE_MS)
                self.counts["messages very late"] += 1
            self.after(delay_ms, self._deliver, what, act, arguments)

    def _deliver(self, what: str, act: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.tell(what)
        act(*arguments)

    # -- story ------------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        self.trace = crc32(f"{self.now} {text}".encode(), self.trace)
        if self.story is not None:
            self.story.append(f"{self.now:6} {text}")
