"""The world of the group simulation: a heap of callbacks, a network, a coordinator, processes.

Messages are lost, repeated, late and overtake one another, on session streams too: harsher than any
transport. Nothing depends on wall time, on the address of an object or on the order of a set: a
seed is a story that can be told again.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from suiro._proto import groupcoord_pb2 as pb
from suiro._proto.common_pb2 import Error
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicId

from cluster.groupcoord import wire
from cluster.groupcoord.subscriptions import TopicFact
from cluster.host.machine import Decision
from tests.sim.group_checker import GroupChecker, Violation
from tests.sim.group_coordinator import Coordinator
from tests.sim.group_member import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.requests import CommitRequest, Settle, Standing
    from tests.sim.group_plan import Plan

SLOW_MS: Final = 4_000
"""A message that takes the long way arrives after a session or two."""

EVENTS_MAX: Final = 200_000
ASK_MS: Final = 100


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
        self.starts_held = False
        self.resetting: frozenset[TopicPartition] = frozenset()
        self._heap: list[tuple[int, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._scheduled = 0
        self._numbers = 0
        self.topics = {
            f"t{number}": TopicFact(TopicId(bytes([number]) * 16), plan.partitions)
            for number in range(plan.topics)
        }
        self.checker = GroupChecker()
        self.processes: list[Process] = []
        self.coordinator = Coordinator(self)
        for number in range(plan.processes):
            self.at(random.randrange(300), self.start, number)

    def start(self, number: int) -> None:
        if self.starts_held:
            self.at(200, self.start, number)
            return
        instance_id = f"i{number}" if number < self.plan.static else ""
        self.processes.append(Process(self, number, instance_id))

    def on_death(self, process: Process) -> None:
        """Something starts it again after a while, unless it was one too many."""
        self.processes.remove(process)
        if not process.is_twin:
            self.at(self.random.choice((50, 500, 3_000)), self.start, process.number)

    def subscription(self) -> tuple[str, ...]:
        names = sorted(self.topics)
        if self.is_calm or self.random.random() < 0.8:
            return tuple(names)
        return tuple(sorted(self.random.sample(names, self.random.randrange(1, len(names) + 1))))

    def set_topics(self, topics: dict[str, TopicFact]) -> None:
        self.topics = topics
        if self.coordinator.machine is not None:
            self.coordinator.machine.on_topics(topics)
            self.coordinator.plan_deadline()

    # -- time -------------------------------------------------------------------------------------

    def at(self, delay: int, action: Callable[..., Any], *arguments: Any) -> None:
        self._scheduled += 1
        heappush(self._heap, (self.now + delay, self._scheduled, action, arguments))

    def run_until(self, end: int, is_done: Callable[[], bool] | None = None) -> bool:
        """Run to `end`, or until `is_done`, which is asked now and then; says whether it was."""
        ask_at = self.now
        while self._heap and self._heap[0][0] <= end:
            self.now, _, action, arguments = heappop(self._heap)
            self.events += 1
            action(*arguments)
            if self.events > EVENTS_MAX:
                raise Violation(f"G4: {self.events} events, this is a storm")
            if is_done is not None and self.now >= ask_at:
                if is_done():
                    return True
                ask_at = self.now + ASK_MS
        self.now = end
        return is_done is not None and is_done()

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    # -- the story --------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        if self.story is not None:
            self.story.append(f"{self.now:6} {text}")

    def note(self, what: str) -> None:
        """A fault: counted, hashed, told."""
        self.counts[what] += 1
        self.trace_event(len(what))
        self.tell(f"-- {what}")

    def trace_event(self, kind: int) -> None:
        self.trace = (self.trace * 1_000_003 + self.now * 31 + kind) & 0xFFFFFFFFFFFF

    # -- the network ------------------------------------------------------------------------------

    def delay(self) -> int:
        chance = self.random.random
        delay = 1 + int(chance() * self.plan.delay_max_ms)
        if not self.is_calm and chance() < self.plan.slow_rate:
            delay += int(chance() * SLOW_MS)
        return delay

    def send(self, action: Callable[..., Any], *arguments: Any) -> None:
        """One message: it may be late, be overtaken, come twice, or not at all."""
        if not self.is_calm and self.random.random() < self.plan.drop_rate:
            return
        self.at(self.delay(), self._deliver, action, arguments)
        if not self.is_calm and self.random.random() < self.plan.duplicate_rate:
            self.at(self.delay(), self._deliver, action, arguments)

    def _deliver(self, action: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.trace_event(3)
        action(*arguments)

    def _at_coordinator(self, action: Callable[..., Any], *arguments: Any) -> None:
        """One that is paused finds the message when it wakes up."""
        if self.coordinator.paused_until > self.now:
            wait = self.coordinator.paused_until - self.now
            self.at(wait + 1, self._at_coordinator, action, *arguments)
            return
        action(*arguments)

    def to_coordinator(self, process: Process, stream: int, message: pb.MemberMessage) -> None:
        if self.story is not None:
            self.tell(f"{message.member_id} says {message.member_epoch} {_short(message.owned)}")

        def answer(notice: pb.MemberNotice) -> None:
            self.send(process.later, 0, process.on_notice, notice, stream)

        self.send(self._at_coordinator, self.coordinator.on_message, message, stream, answer)

    def push(self, standing: Standing) -> None:
        if self.story is not None:
            self.tell(f"{standing.member_id} told {standing.member_epoch} {standing.assigned}")
        for process in self.processes:
            if process.membership.member_id == standing.member_id:
                self.send(process.later, 0, process.on_notice, wire.notice(standing, 0), 0)

    def push_error(self, member_id: str, error: SuiroError) -> None:
        self.tell(f"{member_id} fenced: {error}")
        for process in self.processes:
            if process.membership.member_id == member_id:
                notice = self.error_notice(error)
                self.send(process.later, 0, process.on_notice, notice, process.stream)

    @staticmethod
    def error_notice(error: SuiroError) -> pb.MemberNotice:
        return pb.MemberNotice(error=Error(code=int(error.code), message=error.message))  # type: ignore[arg-type]

    # -- offsets ----------------------------------------------------------------------------------

    def ask_offsets(
        self,
        process: Process,
        partitions: Sequence[TopicPartition],
        answer: Callable[[Any], None],
    ) -> None:
        def serve() -> None:
            self.coordinator.serve(
                lambda m: Decision((), m.fetch("g", partitions, require_stable=True)),
                lambda found: self.send(process.later, 0, answer, found),
            )

        self.send(self._at_coordinator, serve)

    def commit(
        self,
        process: Process,
        request: CommitRequest,
        grants: dict[TopicPartition, int | None],
        answer: Callable[[Any], None],
    ) -> None:
        def answered(outcomes: Any) -> None:
            if self.story is not None:
                self.tell(f"{request.member_id} commit answered: {outcomes}"[:200])
            if not isinstance(outcomes, SuiroError):
                for outcome in outcomes:
                    if outcome.error is None:
                        self.counts["accepted"] += 1
                    else:
                        self.counts["refused"] += 1
            else:
                self.counts["refused"] += 1
            self.send(process.later, 0, answer, outcomes)

        def serve() -> None:
            self.coordinator.serve(
                lambda m: self._checked(m.decide_commit(request, self.now), request, grants),
                answered,
            )

        self.send(self._at_coordinator, serve)

    def _checked(
        self,
        decision: Decision[Any],
        request: CommitRequest,
        grants: dict[TopicPartition, int | None],
    ) -> Decision[Any]:
        """G3 is checked where it is decided: by the state that the machine has then."""
        machine = self.coordinator.machine
        assert machine is not None
        member = machine.groups["g"].members.get(request.member_id)
        for outcome in decision.reply:
            if outcome.error is None:
                owned = () if member is None else member.owned
                now = {o.partition: o.granted_epoch for o in owned}.get(outcome.partition)
                self.checker.on_accepted(
                    request.member_id, outcome.partition, grants[outcome.partition], now
                )
        return decision

    def settle(self, end: Settle, answer: Callable[[Any], None]) -> None:
        def serve() -> None:
            self.coordinator.serve(
                lambda m: m.decide_settle(end, self.now), lambda reply: self.send(answer, reply)
            )

        self.send(self._at_coordinator, serve)


def _short(partitions: Any) -> str:
    return ",".join(f"{p.topic}-{p.partition}" for p in partitions)
