"""Producers and consumers of the replication simulation.

A producer has one value at a time on its way and sends it again until it is answered; the log's
index of values stands for the producer states, so a retry that was appended before is no duplicate.
A consumer reads on and on, from the leader or a follower, remembers the newest leader epoch it
heard of, and asks where the end is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from suiro.model.ids import NO_LEADER, NodeId

from tests.sim.replication_checker import Violation

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError

    from tests.sim.replication_broker import Broker
    from tests.sim.replication_world import World

TIMEOUT_MS: Final = 700
RETRIES_MAX: Final = 25


def _some_broker(world: World) -> Broker:
    """Mostly the leader, sometimes whoever."""
    state = world.controller.state
    assert state is not None
    if state.leader != NO_LEADER and world.random.random() < 0.8:
        return world.brokers[state.leader]
    return world.random.choice(list(world.brokers.values()))


class Producer:
    """Sends numbered values, forever."""

    def __init__(self, world: World, node: NodeId, *, acks_all: bool) -> None:
        self.world = world
        self.node = node
        self.acks_all = acks_all
        self.succeeded = 0
        self.value = 0
        self._attempt = 0
        self._tries = 0
        self._last_offset = -1
        self._has_stopped = False
        self._next()

    def stop(self) -> None:
        """Nothing new; what is on its way may still be answered."""
        self._has_stopped = True

    def _next(self) -> None:
        if self._has_stopped:
            return
        self.value = self.world.next_number()
        self._tries = 0
        self.world.at(self.world.random.randrange(1, self.world.plan.produce_gap_ms), self._send)

    def _send(self) -> None:
        if self._has_stopped:
            return
        self._attempt += 1
        self._tries += 1
        attempt, broker = self._attempt, _some_broker(self.world)

        def answer(error: SuiroError | None) -> None:
            self.world.send(broker.node, self.node, self._on_answer, attempt, error)

        value = self.value

        def produce() -> None:
            if value == self.value:  # an older sequence number is refused by the producer states
                broker.on_produce(value, self.acks_all, answer)

        self.world.send(self.node, broker.node, produce)
        self.world.at(TIMEOUT_MS, self._on_timeout, attempt)

    def _on_answer(self, attempt: int, error: SuiroError | None) -> None:
        if attempt != self._attempt:
            return
        self._attempt += 1
        if error is not None:
            self.world.counts["sends refused"] += 1
            self.world.at(self.world.random.randrange(20, 200), self._retry)
            return
        self.succeeded += 1
        if self.acks_all:
            self._check_order()
        self._next()

    def _check_order(self) -> None:
        """P4, P5: what is acknowledged later lies behind, unless a door took the earlier."""
        offset = self.world.checker.acked.get(self.value)
        if offset is not None:
            if offset <= self._last_offset and not self.world.checker.given_up:
                raise Violation(f"P4: {self.value} at {offset} behind {self._last_offset}")
            self._last_offset = offset

    def _on_timeout(self, attempt: int) -> None:
        if attempt == self._attempt:
            self._retry()

    def _retry(self) -> None:
        if self._tries >= RETRIES_MAX:
            self.world.counts["sends given up"] += 1
            self._next()
        else:
            self._send()


class Consumer:
    """Reads everything, in order, once."""

    def __init__(self, world: World, node: NodeId) -> None:
        self.world = world
        self.node = node
        self.position = 0
        self._epoch = -1
        self._latest = -1
        self._doors = 0
        self._poll()

    def _poll(self) -> None:
        self.world.at(self.world.random.randrange(1, self.world.plan.poll_gap_ms), self._poll)
        checker = self.world.checker
        if checker.doors != self._doors:  # committed records were lost, and it is known
            self._doors = checker.doors
            self.position = min(self.position, len(checker.truth))
            self._latest = -1
        broker, doors = _some_broker(self.world), self._doors
        asked = self.position

        def answer(reply: Any) -> None:
            self.world.send(broker.node, self.node, self._on_reply, asked, doors, reply)

        follower = self.world.random.random() < 0.3

        def fetch(offset: int, epoch: int) -> None:
            broker.on_fetch(offset, epoch, answer, follower=follower)

        self.world.send(self.node, broker.node, fetch, asked, self._epoch)

    def _on_reply(self, asked: int, doors: int, reply: Any) -> None:
        epoch, advertised, (start, records) = reply
        checker = self.world.checker
        if doors != checker.doors or epoch < self._epoch or asked != self.position:
            return
        if epoch < checker.door_epoch:
            return  # a follower that has not heard of the door still has what went through it
        self._epoch = epoch
        if advertised is not None:
            if advertised < self._latest:
                raise Violation(f"P10: latest went back from {self._latest} to {advertised}")
            self._latest = advertised
        for offset, record in enumerate(records, start):
            checker.on_read(offset, record)
        self.position = max(self.position, start + len(records))
