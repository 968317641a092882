"""The nemesis of the group simulation, and the peace after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.ids import LeaderEpoch, Offset, TopicId

from cluster.groupcoord.records import OffsetState
from cluster.groupcoord.requests import Commit, CommitRequest
from cluster.groupcoord.subscriptions import TopicFact
from tests.sim.group_checker import leader_epoch_of
from tests.sim.group_member import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.group_world import World

RESET_AGAIN_MS = 300
RESET_TRIES = 20


class Nemesis:
    """Does one of the plan's faults after the other."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self._actions: dict[str, Callable[[], None]] = {
            "kill member": lambda: self._with_one(Process.die),
            "leave": lambda: self._with_one(Process.leave),
            "pause member": lambda: self._with_one(self._pause),
            "break stream": lambda: self._with_one(self._break),
            "break all streams": self._break_all,
            "failover": lambda: world.coordinator.fail_over(self.random.randrange(1, 300)),
            "slow failover": lambda: world.coordinator.fail_over(self.random.randrange(6_000)),
            "pause coordinator": self._pause_coordinator,
            "compact": world.coordinator.compact,
            "double static": self._double,
            "subscribe": lambda: self._with_one(self._subscribe),
            "add partitions": self._add_partitions,
            "new topic": self._new_topic,
            "stuck handler": lambda: self._with_one(self._stick),
            "empty and reset": self._empty,
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

    def _with_one(self, action: Callable[[Process], None]) -> None:
        if self.world.processes:
            action(self.random.choice(self.world.processes))

    # -- processes --------------------------------------------------------------------------------

    def _pause(self, process: Process) -> None:
        pause = self.random.choice((300, 2_000, 4_000))
        process.paused_until = self.world.now + self.random.randrange(50, pause)

    def _break(self, process: Process) -> None:
        stream = process.stream
        if stream:
            member_id = process.membership.member_id
            process.on_stream_broken()
            broken = self.world.coordinator.on_broken
            self.world.at(self.world.delay(), broken, member_id, stream)

    def _break_all(self) -> None:
        for process in list(self.world.processes):
            self._break(process)

    def _double(self) -> None:
        """A second process with the same instance id, while the first one runs."""
        if self.world.plan.static:
            number = self.random.randrange(self.world.plan.static)
            twin = Process(self.world, number, f"i{number}", is_twin=True)
            self.world.processes.append(twin)
            self.world.at(1_000, twin.die)

    def _subscribe(self, process: Process) -> None:
        topics = self.world.subscription()
        process.do(process.membership.subscribe(topics, "", self.world.now))

    def _stick(self, process: Process) -> None:
        process.is_stuck = True
        self.world.at(self.random.choice((500, 2_000, 4_000)), process.die)

    # -- the coordinator and the topics -----------------------------------------------------------

    def _pause_coordinator(self) -> None:
        self.world.coordinator.paused_until = self.world.now + self.random.randrange(50, 4_000)

    def _add_partitions(self) -> None:
        name = self.random.choice(sorted(self.world.topics))
        fact = self.world.topics[name]
        if fact.partitions < 10:
            more = replace(fact, partitions=fact.partitions + 1)
            self.world.set_topics({**self.world.topics, name: more})

    def _new_topic(self) -> None:
        number = len(self.world.topics)
        if number < 5:
            fact = TopicFact(TopicId(bytes([number]) * 16), 2)
            self.world.set_topics({**self.world.topics, f"t{number}": fact})

    # -- resets -----------------------------------------------------------------------------------

    def _empty(self) -> None:
        """Everybody goes; then an administrator sets the offsets back."""
        if self.world.starts_held:
            return
        self.world.starts_held = True
        for process in list(self.world.processes):
            process.leave()
        self.world.at(RESET_AGAIN_MS, self._reset, RESET_TRIES)

    def _reset(self, tries: int) -> None:
        if not self.world.starts_held:
            return
        if tries == 0 or self.world.is_calm:
            self.world.starts_held = False
            return
        state = self.world.checker.state.values()
        lower = {
            record.partition: record.offset // 2
            for record in state
            if isinstance(record, OffsetState)
        }
        if not lower:
            self.world.starts_held = False
            return
        request = CommitRequest(
            group="g",
            offsets=tuple(
                Commit(p, Offset(o), LeaderEpoch(leader_epoch_of(o)), "reset", reset=True)
                for p, o in lower.items()
            ),
        )
        self.world.resetting |= frozenset(lower)
        now = self.world.now
        self.world.coordinator.serve(lambda m: m.decide_commit(request, now), self._on_reset, lower)
        self.world.at(RESET_AGAIN_MS, self._reset, tries - 1)

    def _on_reset(self, outcome: Any) -> None:
        if not isinstance(outcome, SuiroError):
            self.world.counts["resets"] += 1
            self.world.starts_held = False


def make_peace(world: World) -> None:
    """No more faults: everyone runs, and everything arrives."""
    world.note("peace")
    world.is_calm = True
    world.starts_held = False
    world.coordinator.paused_until = world.now
    for process in world.processes:
        process.paused_until = world.now
        process.is_stuck = False
