"""The coordinator of the simulation: a host around the real machine, and the topic behind it.

Records are stored as bytes, batch by batch, and become durable a while after they were appended; a
reply leaves only then. A failover loses a tail of batches that were not durable yet, and the next
coordinator rebuilds its machine from what is left, compacted or not. A deposed one says nothing
more: that it cannot is the business of owner epochs and leases, which are not simulated here.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError

from cluster.groupcoord import wire
from cluster.groupcoord.codec import decode, encode
from cluster.groupcoord.machine import GroupMachine
from cluster.groupcoord.requests import Fenced, Notify
from tests.sim.group_checker import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from suiro._proto import groupcoord_pb2 as pb
    from suiro.model.ids import TopicPartition

    from cluster.groupcoord.records import GroupRecord, Key
    from cluster.host.machine import Decision
    from tests.sim.group_world import World

Batch = list[tuple[bytes, bytes | None]]


class Coordinator:
    """Whoever owns the shard: one term after the other."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.log: list[Batch] = []
        self.durable = 0
        self.term = 0
        self.machine: GroupMachine | None = None
        self.paused_until = 0
        self.streams: dict[str, int] = {}
        """The newest stream of each member."""
        self._heard: dict[str, float] = {}
        self._broken: dict[str, float] = {}
        self._wake_at: float | None = None
        self.begin()

    # -- terms ------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Replay, and serve."""
        self.machine = GroupMachine()
        for batch in self.log:
            for key, value in batch:
                self.machine.apply(decode(key, value))
        self.durable = len(self.log)
        self._check_replay()
        self.machine.on_topics(self.world.topics)
        self._heard = dict.fromkeys(self.world.checker.members(), self.world.now)
        self._broken.clear()
        self._wake_at = None
        self.plan_deadline()

    def _check_replay(self) -> None:
        """What was rebuilt from the log is what was committed."""
        assert self.machine is not None
        checker = self.world.checker
        found: dict[Key, GroupRecord] = {}
        for group in self.machine.groups.values():
            for table in (group.members, group.targets, group.offsets, group.producers):
                found.update({record.key: record for record in table.values()})
            found.update({done.key: done for done in group.history.values()})
            if group.state.key in checker.state:
                found[group.state.key] = group.state
        if found != checker.state:
            raise Violation("G2: a replay gives another state than what was committed")

    def fail_over(self, gap_ms: int) -> None:
        """Another one takes over after a while; of what was not durable, a part is."""
        if self.machine is None:
            return
        self.machine = None
        self.term += 1
        kept = self.world.random.randrange(self.durable, len(self.log) + 1)
        del self.log[kept:]
        for batch in self.log[self.durable :]:
            self.world.checker.on_committed([decode(*entry) for entry in batch], self._resets())
        self.durable = kept
        self.world.counts["failovers"] += 1
        for process in self.world.processes:
            process.on_stream_broken()
        self.world.at(gap_ms, self.begin)

    def _resets(self) -> Iterable[TopicPartition]:
        return self.world.resetting

    def compact(self) -> None:
        """The newest record of every key before some point is all that is left of them."""
        upto = self.world.random.randrange(self.durable + 1)
        newest: dict[bytes, tuple[int, bytes | None]] = {}
        for number, batch in enumerate(self.log[:upto]):
            for key, value in batch:
                newest[key] = (number, value)
        forget = self.world.random.random() < 0.5  # tombstones go as well, in the end
        compacted: list[Batch] = [[] for _ in range(upto)]
        for key, (number, value) in newest.items():
            if value is not None or not forget:
                compacted[number].append((key, value))
        self.log[:upto] = compacted

    # -- requests ---------------------------------------------------------------------------------

    def serve(
        self,
        choose: Callable[[GroupMachine], Decision[Any]],
        answer: Callable[[Any], None],
        resets: Iterable[TopicPartition] = (),
    ) -> None:
        """Decide, apply, append; answer once it is durable. An error is an answer too."""
        if self.machine is None:
            return
        try:
            decision = choose(self.machine)
        except SuiroError as error:
            self._when_durable(partial(answer, error))
            return
        for effect in decision.effects:
            if isinstance(effect, Fenced):
                self._check_fenced(effect)
        for record in decision.records:
            self.machine.apply(record)
        if decision.records:
            self.log.append([encode(record) for record in decision.records])
        self._when_durable(lambda: self._release(decision, answer), decision.records, resets)
        self.plan_deadline()

    def _when_durable(
        self,
        action: Callable[[], None],
        records: tuple[GroupRecord, ...] = (),
        resets: Iterable[TopicPartition] = (),
    ) -> None:
        delay = self.world.random.randrange(1, self.world.plan.commit_max_ms + 1)
        position, term = len(self.log), self.term
        self.world.at(delay, self._durable, position, term, records, tuple(resets), action)

    def _durable(
        self,
        position: int,
        term: int,
        records: tuple[GroupRecord, ...],
        resets: tuple[TopicPartition, ...],
        action: Callable[[], None],
    ) -> None:
        """Batches become durable in order: one that is early waits for those before it."""
        if term != self.term:
            return
        if position > self.durable + (1 if records else 0):
            self.world.at(1, self._durable, position, term, records, resets, action)
            return
        if records:
            self.durable = position
            self.world.checker.on_committed(records, resets)
        action()

    def _release(self, decision: Decision[Any], answer: Callable[[Any], None]) -> None:
        for effect in decision.effects:
            self._perform(effect)
        answer(decision.reply)

    def _perform(self, effect: Any) -> None:
        if isinstance(effect, Fenced):
            self.world.push_error(effect.member_id, effect.error)
            return
        assert isinstance(effect, Notify)
        if self.machine is None:
            return
        try:
            standing = self.machine.standing(effect.group, effect.member_id)
        except SuiroError:
            return  # it has gone again since
        self._when_durable(partial(self.world.push, standing))

    def _check_fenced(self, effect: Fenced) -> None:
        """Nobody is put out for silence who was heard."""
        self.world.counts["fenced"] += 1
        if "session timeout" not in str(effect.error):
            return
        silent_ms = self.world.now - self._heard.get(effect.member_id, 0)
        broken = self._broken.get(effect.member_id)
        if silent_ms < self.world.plan.session_timeout_ms and broken is None:
            raise Violation(f"G4: {effect.member_id} was heard {silent_ms} ms ago and is put out")

    # -- sessions ---------------------------------------------------------------------------------

    def on_message(
        self, message: pb.MemberMessage, stream: int, answer: Callable[[pb.MemberNotice], None]
    ) -> None:
        machine, now = self.machine, self.world.now
        if machine is None:
            return
        member_id = message.member_id
        if stream >= self.streams.get(member_id, 0):
            self.streams[member_id] = stream
        self._hear(member_id, stream)
        if message.leaving:
            self.serve(
                lambda m: m.decide_leave(message.group, member_id, message.leave_reason, now),
                lambda _: None,
            )
            return
        said = wire.member_message(message)

        def reply(standing: Any) -> None:
            if isinstance(standing, SuiroError):
                answer(self.world.error_notice(standing))
            else:
                self._hear(member_id, stream)
                answer(wire.notice(standing, message.member_epoch, message.number))

        self.serve(lambda m: m.decide_message(said, now), reply)

    def _hear(self, member_id: str, stream: int) -> None:
        assert self.machine is not None or self.term
        if self.machine is None:
            return
        self.machine.on_heard("g", member_id, stream, self.world.now)
        self._heard[member_id] = self.world.now
        if stream >= self.streams.get(member_id, 0):
            self._broken.pop(member_id, None)

    def on_broken(self, member_id: str, stream: int) -> None:
        """As the service does: the end of a stream counts if there is no newer one."""
        if self.machine is not None and stream >= self.streams.get(member_id, 0):
            self.machine.on_broken("g", member_id, stream, self.world.now)
            if stream == self.streams.get(member_id):
                self._broken[member_id] = self.world.now

    # -- time -------------------------------------------------------------------------------------

    def plan_deadline(self) -> None:
        assert self.machine is not None
        due = self.machine.next_deadline_ms(self.world.now)
        if due is None or (self._wake_at is not None and self._wake_at <= due):
            return
        self._wake_at = max(due, self.world.now)
        self.world.at(int(self._wake_at - self.world.now + 0.999), self._expire, self.term)

    def _expire(self, term: int) -> None:
        if term != self.term or self.machine is None:
            return
        if self.paused_until > self.world.now:
            self.world.at(self.paused_until - self.world.now, self._expire_late, term)
            return
        self._wake_at = None
        now = self.world.now
        self.serve(lambda m: m.decide_expire(now, now), lambda _: None)
        self.machine.on_swept(now)
        self.plan_deadline()

    def _expire_late(self, term: int) -> None:
        """It stood still: messages of that time arrive only now."""
        if term == self.term and self.machine is not None:
            self.machine.on_stood_still(self.world.now)
            self._expire(term)
