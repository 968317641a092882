"""Replication streams of the simulation: ordered while they live, and late when they have died.

A stream carries messages both ways in order. A cut direction stalls it; if it lasts the stream
breaks. What a follower had sent on a stream that broke may still reach the leader, after the
follower has come back on another one.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.sim.replication_broker import Broker
    from tests.sim.replication_world import World

STALLS_MAX: Final = 8
LATE_MS: Final = 4_000
"""How late what was sent on a stream that broke may come."""


class Stream:
    """From a follower to a leader, for as long as both processes live."""

    def __init__(self, world: World, follower: Broker, leader: Broker) -> None:
        self.world = world
        self.follower = follower
        self.leader = leader
        self.broker_epoch = follower.broker_epoch
        self.number = -1
        """Given by the leader when the first message arrives."""
        self.is_open = True
        self._lives = (follower.life, leader.life)
        self._queues: tuple[deque[tuple[int, Any]], deque[tuple[int, Any]]] = (deque(), deque())
        self._stalls = 0
        self._late_until = 0

    def to_leader(self, message: Any) -> None:
        self._send(0, message)

    def to_follower(self, message: Any) -> None:
        self._send(1, message)

    def close(self, notice_ms: int = 50) -> None:
        """It broke: both ends hear of it; what goes up may still come, what goes down not."""
        if not self.is_open:
            return
        self.is_open = False
        self.world.counts["streams broken"] += 1
        self._queues[1].clear()
        if self.world.random.random() < 0.5:
            self._queues[0].clear()
        else:
            self._late_until = self.world.now + self.world.random.randrange(LATE_MS)
        pick = self.world.random.randrange
        self.follower.later(pick(notice_ms), self.follower.on_stream_closed, self)
        self.leader.later(pick(notice_ms), self.leader.on_follower_gone, self)

    def _send(self, way: int, message: Any) -> None:
        if not self.is_open:
            return
        queue = self._queues[way]
        due = self.world.now + self.world.delay()
        if queue:
            due = max(due, queue[-1][0])
        queue.append((due, message))
        if len(queue) == 1:
            self.world.at(due - self.world.now, self._pump, way)

    def _pump(self, way: int) -> None:
        queue = self._queues[way]
        if not queue:
            return
        world = self.world
        source, target = (self.follower, self.leader) if way == 0 else (self.leader, self.follower)
        if not target.is_up or target.life != self._lives[1 - way]:
            queue.clear()
            self.close()
        elif target.paused_until > world.now:
            world.at(target.paused_until - world.now + world.random.randrange(20), self._pump, way)
        elif self._late_until > world.now:
            world.at(self._late_until - world.now, self._pump, way)
        elif (source.node, target.node) in world.cut:
            self._stall(way)
        else:
            _, message = queue.popleft()
            if queue:
                world.at(max(0, queue[0][0] - world.now), self._pump, way)
            world.trace_event(1 + way, target.node)
            if way == 0:
                target.on_follower_message(self, message)
            else:
                target.on_leader_message(self, message)

    def _stall(self, way: int) -> None:
        self._stalls += 1
        if self._stalls > STALLS_MAX:
            self._queues[way].clear()
            self.close()
        else:
            self.world.at(self.world.random.randrange(50, 500), self._pump, way)
