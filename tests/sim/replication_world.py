"""The world of the replication simulation: a heap of callbacks, a network, brokers, a controller.

Nothing here depends on wall time, on the address of an object or on the order of a set: a seed is a
story that can be told again. The nemesis is in `replication_faults`, the command line in
`replication_sim`.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from suiro.model.ids import NodeId

from tests.sim.replication_broker import Broker
from tests.sim.replication_checker import ReplicationChecker, Violation
from tests.sim.replication_clients import Consumer, Producer
from tests.sim.replication_controller import Controller

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.sim.replication_life import Life
    from tests.sim.replication_plan import Plan

SLOW_MS: Final = 3_000
"""A message that takes the long way arrives after an election or two."""

CLIENTS: Final = 100
ASK_MS: Final = 100
EVENTS_MAX: Final = 50_000
"""Several times what any sound run needs."""


class World:
    """One run of one plan."""

    def __init__(self, seed: int, plan: Plan, random: Random, *, verbose: bool = False) -> None:
        self.plan = plan
        self.random = random
        self.now = 0
        self.events = 0
        self.trace = seed
        """A hash over every delivery and fault: equal traces mean equal runs."""
        self.story: list[str] | None = [] if verbose else None
        self.counts: Counter[str] = Counter()
        self.is_calm = False
        self.cut: set[tuple[int, int]] = set()
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._scheduled = 0
        self._numbers = 0
        self.brokers: dict[NodeId, Broker] = {}
        for number in range(1, plan.brokers + 1):
            self.brokers[NodeId(number)] = Broker(self, NodeId(number))
        self.checker = ReplicationChecker(self.brokers, syncs_first=plan.syncs_first)
        self.controller = Controller(self)
        self._found()
        self.producers = [
            Producer(self, NodeId(CLIENTS + n), acks_all=n < plan.all_producers)
            for n in range(plan.all_producers + plan.one_producers)
        ]
        self.consumer = Consumer(self, NodeId(2 * CLIENTS))

    def _found(self) -> None:
        """Every broker starts on an empty disk; the topic is made once they are all there."""
        for broker in self.brokers.values():
            broker.clock_rate = 1 + self.random.uniform(-0.02, 0.02)
            broker.clock_offset = self.random.randrange(1_000_000)
            broker.start()
        image = self.controller.machine.image
        ready = self.run_until(
            5_000,
            lambda: (
                len(image.nodes) == self.plan.brokers
                and all(node.available for node in image.nodes.values())
            ),
        )
        assert ready, "the cluster did not start"
        replicas = tuple(self.random.sample(sorted(self.brokers), self.plan.replicas))
        configs = {"min.insync.replicas": str(self.plan.min_isr)}
        if self.plan.allows_unclean:
            configs["unclean.leader.election.enable"] = "true"
        self.controller.create_topic(replicas, configs)

    # -- time -------------------------------------------------------------------------------------

    def at(self, delay: int, action: Callable[..., None], *arguments: Any) -> None:
        self._scheduled += 1
        heappush(self._heap, (self.now + delay, self._scheduled, action, arguments))

    def run_until(self, end: int, is_done: Callable[[], bool] | None = None) -> bool:
        """Run to `end`, or until `is_done`, which is asked now and then; says whether it was."""
        heap = self._heap
        ask_at = self.now
        while heap and heap[0][0] <= end:
            self.now, _, action, arguments = heappop(heap)
            self.events += 1
            action(*arguments)
            if self.events > EVENTS_MAX:
                raise Violation(f"L1: {self.events} events, this is a storm")
            if is_done is not None and self.now >= ask_at:
                if is_done():
                    return True
                ask_at = self.now + ASK_MS
        self.now = end
        return is_done is not None and is_done()

    def next_number(self) -> int:
        """A number that nobody else has: of a stream, of a value."""
        self._numbers += 1
        return self._numbers

    # -- the story --------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        if self.story is not None:
            self.story.append(f"{self.now:6} {text}")

    def note(self, what: str, node: int = 0) -> None:
        """A fault or another turn of the story: counted, hashed, told."""
        self.counts[what] += 1
        self.trace_event(len(what) + 10, node)
        if self.story is not None:
            self.tell(f"-- {what} {node}")

    def trace_event(self, kind: int, node: int) -> None:
        self.trace = (self.trace * 1_000_003 + self.now * 31 + kind * 7 + node) & 0xFFFFFFFFFFFF

    # -- the network ------------------------------------------------------------------------------

    def delay(self) -> int:
        chance = self.random.random
        delay = 1 + int(chance() * self.plan.delay_max_ms)  # several times as fast as randrange
        if not self.is_calm and chance() < self.plan.slow_rate:
            delay += int(chance() * SLOW_MS)
        return delay

    def part_records(self) -> int:
        """How many records a part holds; when it is calm enough to catch up with any producer."""
        most = 50 if self.is_calm else self.plan.part_records_max
        return self.random.randrange(1, most + 1)

    def send(self, source: int, target: int, action: Callable[..., None], *arguments: Any) -> None:
        """One message outside any stream: it may be late, be overtaken, or not come at all."""
        if not self.is_calm and self.random.random() < self.plan.drop_rate:
            return
        self.at(self.delay(), self._deliver, source, target, action, arguments)

    def _deliver(
        self, source: int, target: int, action: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        if (source, target) in self.cut:
            return
        broker = self.brokers.get(NodeId(target))
        if broker is not None:
            if not broker.is_up:
                return
            if broker.paused_until > self.now:
                delay = broker.paused_until - self.now + self.random.randrange(20)
                self.at(delay, self._deliver, source, target, action, arguments)
                return
        self.trace_event(3, target)
        action(*arguments)

    def feed_all(self) -> None:
        for broker in self.brokers.values():
            if broker.is_up:
                self.feed(broker)

    def feed(self, broker: Life) -> None:
        """The metadata as some controller has them: perhaps one that lags behind."""
        index = len(self.controller.log)
        if not self.is_calm and self.random.random() < 0.2:
            index -= self.random.randrange(min(index, 30) + 1)
        broker.later(self.delay(), broker.on_feed, index)
