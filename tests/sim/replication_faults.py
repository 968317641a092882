"""The nemesis of the replication simulation, and the peace after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.errors import InvalidRequest, LeaderNotAvailable
from suiro.model.ids import NO_LEADER, NodeId, Offset

from tests.sim.replication_controller import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.replication_broker import Broker
    from tests.sim.replication_world import World


class Nemesis:
    """Does one of the plan's faults after the other, and undoes most of them after a while."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self._actions: dict[str, Callable[[], None]] = {
            "kill one": lambda: self._kill(self._any()),
            "kill leader": lambda: self._kill(self._leader()),
            "kill all": self._kill_all,
            "power one": lambda: self._power(self._any()),
            "power leader": lambda: self._power(self._leader()),
            "power some": self._power_some,
            "wipe": self._wipe,
            "restart": self._restart,
            "pause one": lambda: self._pause(self._any()),
            "pause leader": lambda: self._pause(self._leader()),
            "isolate one": lambda: self._isolate(self._any()),
            "isolate leader": lambda: self._isolate(self._leader()),
            "one way": self._one_way,
            "from controller": self._from_controller,
            "split": self._split,
            "break stream": self._break_stream,
            "break session": self._break_session,
            "failover": lambda: world.controller.fail_over(self.random.randrange(200, 4_000)),
            "slow feed": self._slow_feed,
            "elect": self._elect,
            "reassign": self._reassign,
            "cancel": lambda: world.controller.reassign(()),
            "trim": self._trim,
        }
        if world.plan.faults:
            world.at(self.random.randrange(world.plan.fault_gap_ms), self._strike)

    def _strike(self) -> None:
        if self.world.is_calm:
            return
        name = self.random.choice(self.world.plan.faults)
        self.world.note(name)
        self._actions[name]()
        gap = self.world.plan.fault_gap_ms
        self.world.at(self.random.randrange(gap // 2, 2 * gap), self._strike)

    def _any(self) -> Broker:
        return self.random.choice(list(self.world.brokers.values()))

    def _leader(self) -> Broker:
        state = self.world.controller.state
        assert state is not None
        return self._any() if state.leader == NO_LEADER else self.world.brokers[state.leader]

    def _again(self, broker: Broker) -> None:
        wait = self.random.choice((100, 1_000, 8_000))
        self.world.at(self.random.randrange(20, 20 + wait), broker.start)

    # -- processes --------------------------------------------------------------------------------

    def _kill(self, broker: Broker) -> None:
        broker.crash()
        self._again(broker)

    def _kill_all(self) -> None:
        for broker in self.world.brokers.values():
            self._kill(broker)

    def _power(self, broker: Broker) -> None:
        if broker.is_up:
            log = broker.log
            kept = self.random.choice(
                (log.synced_end, self.random.randrange(log.synced_end, log.log_end + 1))
            )
            broker.crash(Offset(kept))
            self._again(broker)

    def _power_some(self) -> None:
        count = self.random.randrange(2, len(self.world.brokers) + 1)
        for broker in self.random.sample(list(self.world.brokers.values()), count):
            self._power(broker)

    def _wipe(self) -> None:
        broker = self._any()
        if broker.is_up:
            broker.wipe()
            self._again(broker)

    def _restart(self) -> None:
        """Leave in order; whoever is not let go in time is killed."""
        broker = self._any()
        broker.is_leaving = True
        self.world.at(4_000, self._end_leaving, broker, broker.life)

    def _end_leaving(self, broker: Broker, life: int) -> None:
        if broker.life == life:
            broker.crash()
            self._again(broker)

    def _pause(self, broker: Broker) -> None:
        pause = self.random.choice((500, 2_000, 6_000))
        broker.paused_until = self.world.now + self.random.randrange(50, pause)

    # -- the network ------------------------------------------------------------------------------

    def _cut(self, pairs: list[tuple[int, int]]) -> None:
        self.world.cut.update(pairs)
        self.world.at(self.random.randrange(100, self.world.plan.heal_ms), self._heal, pairs)

    def _heal(self, pairs: list[tuple[int, int]]) -> None:
        self.world.cut.difference_update(pairs)

    def _isolate(self, broker: Broker) -> None:
        others = [CONTROLLER, *(n for n in self.world.brokers if n != broker.node)]
        self._cut([p for n in others for p in ((broker.node, n), (n, broker.node))])

    def _one_way(self) -> None:
        nodes = [CONTROLLER, *self.world.brokers]
        source, target = self.random.sample(nodes, 2)
        self._cut([(source, target)])

    def _from_controller(self) -> None:
        node = self._any().node
        ways = [(CONTROLLER, node), (node, CONTROLLER)]
        self._cut(self.random.sample(ways, self.random.randrange(1, 3)))

    def _split(self) -> None:
        nodes = [CONTROLLER, *self.world.brokers]
        side = set(self.random.sample(nodes, self.random.randrange(1, len(nodes))))
        self._cut([(a, b) for a in nodes for b in nodes if (a in side) != (b in side)])

    def _break_stream(self) -> None:
        for stream in list(self._any().streams_out.values()):
            stream.close()

    def _break_session(self) -> None:
        """A reset: it proves nothing, and the broker acts on until its lease is over."""
        broker = self._any()
        if broker.is_up and broker.paused_until <= self.world.now:
            self.world.controller.on_session_broken(
                broker.node, broker.broker_epoch, broker.session_stream
            )
            broker.on_session_lost()

    def _slow_feed(self) -> None:
        self._any().feed_blocked_until = self.world.now + self.random.randrange(100, 6_000)

    # -- operators --------------------------------------------------------------------------------

    def _elect(self) -> None:
        try:
            self.world.controller.elect_preferred()
        except (InvalidRequest, LeaderNotAvailable):
            self.world.counts["no election"] += 1

    def _reassign(self) -> None:
        nodes = sorted(self.world.brokers)
        replicas = self.random.sample(nodes, min(len(nodes), self.world.plan.replicas))
        self.world.controller.reassign(tuple(map(NodeId, replicas)))

    def _trim(self) -> None:
        """Retention at the leader: never beyond what it knows to be committed, nor so soon that a
        producer still sends again what is deleted.
        """
        broker = self._leader()
        if broker.is_up and broker.leader is not None and broker.leader.high_watermark_known:
            log = broker.log
            wanted = [producer.value for producer in self.world.producers]
            known = [log.offset_of[value] for value in wanted if value in log.offset_of]
            end = min([broker.high_watermark, *known])
            log.trim_to(Offset(self.random.randrange(log.log_start, end + 1)))


def make_peace(world: World) -> None:
    """Heal the network and start everyone; nothing more will happen."""
    world.note("calm")
    world.is_calm = True
    world.cut.clear()
    for broker in world.brokers.values():
        broker.paused_until = 0
        broker.feed_blocked_until = 0
        broker.is_leaving = False
        broker.start()
