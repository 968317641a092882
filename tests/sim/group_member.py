"""A process of the simulation: the real membership core, and a consumer around it.

It reads the committed offset of what it is assigned, processes records, commits now and then (some
in transactions), and commits before it gives a partition up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.membership import (
    Assign,
    Compute,
    Connect,
    Fail,
    Lost,
    MemberConfig,
    Membership,
    Revoke,
    Say,
)
from suiro.model.error_base import SuiroError
from suiro.model.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId, TopicPartition

from cluster.groupcoord.requests import Commit, CommitRequest
from tests.sim.group_checker import leader_epoch_of
from tests.sim.group_txn import Transactions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro._proto import groupcoord_pb2 as pb
    from suiro.membership import Intention

    from tests.sim.group_world import World

ANSWER_MS = 400
"""How long a process waits for an answer before it asks again."""


class Process:
    """One consumer, from its start to its end."""

    def __init__(
        self, world: World, number: int, instance_id: str = "", *, is_twin: bool = False
    ) -> None:
        self.world = world
        self.is_twin = is_twin
        self.number = number
        self.is_alive = True
        self.is_stuck = False
        self.paused_until = 0
        self.stream = 0
        self.positions: dict[TopicPartition, int] = {}
        """Where it is; absent while the committed offset is being asked for."""
        self.grants: dict[TopicPartition, int | None] = {}
        plan = world.plan
        config = MemberConfig(
            group="g",
            topics=world.subscription(),
            assignors=plan.assignors,
            instance_id=instance_id,
            session_timeout_ms=plan.session_timeout_ms,
            rebalance_timeout_ms=plan.rebalance_timeout_ms,
            heartbeat_interval_ms=plan.heartbeat_ms,
        )
        self.membership = Membership(config, lambda: f"m{world.next_number():03}")
        self.transactions = Transactions(world, self)
        self.do(self.membership.start(world.now))
        world.at(1, self._tick)
        world.at(1, self._work)

    # -- intentions -------------------------------------------------------------------------------

    def do(self, intentions: Sequence[Intention]) -> None:
        for intention in intentions:
            match intention:
                case Say(message):
                    self.world.to_coordinator(self, self.stream, message)
                case Connect():
                    self.stream = 0
                    self.later(self.world.delay(), self._connect)
                case Assign(partitions):
                    self._take_all(partitions)
                case Revoke(partitions):
                    self._give_up(partitions)
                case Lost(partitions):
                    self._drop_all(partitions)
                case Compute(request):
                    self._compute(request)
                case Fail():
                    self.die()

    def _connect(self) -> None:
        if self.stream == 0:
            self.stream = self.world.next_number()
            self.do(self.membership.on_connected(self.world.now))

    def _take_all(self, partitions: Sequence[TopicPartition]) -> None:
        member_id = self.membership.member_id
        for partition in partitions:
            self.world.checker.on_hold(self, partition)
            self.grants[partition] = self.world.checker.grant(member_id, partition)
            self.positions.pop(partition, None)
            self._ask_offset(partition, member_id)

    def _drop_all(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            self.positions.pop(partition, None)
            self.grants.pop(partition, None)
            self.world.checker.on_release(self, partition)

    def _give_up(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Stop, commit, and say so when the commit is answered, or has taken too long."""
        if self.is_stuck:
            return
        life = self.membership.member_id
        wait = self.world.random.choice((1, 30, 300, 300 + ANSWER_MS))

        def give_up() -> None:
            if self.membership.member_id == life:
                self._drop_all(partitions)
                self.do(self.membership.on_given_up(partitions, self.world.now))

        self.commit(partitions)
        self.later(wait, give_up)

    def _compute(self, request: pb.ComputeAssignment) -> None:
        """A user's own assignor: everything in turn, now and then nonsense."""
        if self.world.random.random() < 0.1:
            return
        members = list(request.members)
        result: dict[str, list[TopicPartition]] = {view.member_id: [] for view in members}
        for number, found in enumerate(request.partitions):
            takers = [view.member_id for view in members if found.topic in view.topics]
            taker = takers[number % len(takers)]
            result[taker].append(TopicPartition(found.topic, found.partition))
        if self.world.random.random() < 0.1 and result:
            result[members[0].member_id] = []
        epoch = request.group_epoch
        self.later(
            self.world.random.choice((1, 50)),
            lambda: self.do(self.membership.on_computed(epoch, result, self.world.now)),
        )

    # -- what it hears ----------------------------------------------------------------------------

    def on_notice(self, notice: pb.MemberNotice, stream: int) -> None:
        if stream == self.stream or not notice.HasField("error"):
            self.do(self.membership.on_notice(notice, self.world.now))

    def on_stream_broken(self) -> None:
        if self.is_alive and self.stream:
            self.do(self.membership.on_disconnected())

    # -- offsets ----------------------------------------------------------------------------------

    def _ask_offset(self, partition: TopicPartition, life: str) -> None:
        """Until it is answered: where does this partition begin?"""
        if self.membership.member_id != life or partition not in self.grants:
            return
        if partition in self.positions:
            return
        floor = self.world.checker.floor[partition]

        def answer(found: Any) -> None:
            is_ours = self.membership.member_id == life and partition in self.grants
            if isinstance(found, SuiroError) or not is_ours or partition in self.positions:
                return
            (offset,) = found
            if offset.error is not None:
                return
            begin = -1 if offset.committed is None else int(offset.committed.offset)
            epoch = -1 if offset.committed is None else int(offset.committed.leader_epoch)
            self.world.checker.on_read(partition, begin, epoch, floor)
            self.world.checker.on_start(partition, max(begin, 0))
            self.positions[partition] = max(begin, 0)

        self.world.ask_offsets(self, (partition,), answer)
        self.later(ANSWER_MS, self._ask_offset, partition, life)

    def commit(self, partitions: Sequence[TopicPartition]) -> None:
        self.send_commit(
            [p for p in partitions if p in self.positions], metadata="plain", txn=None, done=None
        )

    def send_commit(
        self,
        partitions: Sequence[TopicPartition],
        *,
        metadata: str,
        txn: tuple[int, int] | None,
        done: Any,
    ) -> None:
        """What was processed so far; what is accepted must be under the grant it was sent under."""
        if not partitions:
            return
        ahead = {p: Offset(self.positions[p]) for p in partitions}
        grants = {p: self.grants[p] for p in partitions}
        resets = self.world.checker.resets
        request = CommitRequest(
            group="g",
            member_id=self.membership.member_id,
            member_epoch=self.membership.told_epoch,
            offsets=tuple(
                Commit(p, offset, LeaderEpoch(leader_epoch_of(offset)), metadata)
                for p, offset in ahead.items()
            ),
            producer_id=ProducerId(txn[0] if txn else -1),
            producer_epoch=ProducerEpoch(txn[1] if txn else -1),
        )

        def answer(outcomes: Any) -> None:
            if not isinstance(outcomes, SuiroError) and txn is None:
                for outcome in outcomes:
                    if outcome.error is None:
                        at = outcome.partition
                        self.world.checker.on_acked(at, ahead[at], resets)
            if done is not None:
                done(outcomes)

        self.world.commit(self, request, grants, answer)

    # -- life -------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self.is_alive:
            self.do(self.membership.on_time(self.world.now))
        if self.is_alive:
            wait = max(1, min(50, self.membership.next_deadline_ms() - self.world.now))
            self.later(int(wait), self._tick)

    def _work(self) -> None:
        """Process some records of each partition, and commit now and then."""
        for partition in sorted(self.positions):
            if partition in self.membership.held and not self.is_stuck:
                self.positions[partition] += self.world.random.randrange(1, 4)
                self.world.checker.on_processed(partition, self.positions[partition])
        chance = self.world.random.random()
        if self.positions and chance < 0.5 * self.world.plan.txn_rate:
            self.transactions.begin()
        elif self.world.is_calm or chance < 0.5:
            self.commit(sorted(self.positions))
        self.later(self.world.plan.step_ms, self._work)

    def later(self, delay: int, action: Any, *arguments: Any) -> None:
        """Do it then, if this process still lives; a pause puts it off."""
        self.world.at(delay, self._run, action, arguments)

    def _run(self, action: Any, arguments: tuple[Any, ...]) -> None:
        if not self.is_alive:
            return
        if self.paused_until > self.world.now:
            self.world.at(self.paused_until - self.world.now, self._run, action, arguments)
            return
        action(*arguments)

    def leave(self) -> None:
        """In order: commit, then say good-bye."""
        self.commit(sorted(self.positions))
        self.do(self.membership.leave("done", self.world.now))
        self.die()

    def die(self) -> None:
        """The process ends, and its connection with it."""
        if not self.is_alive:
            return
        self.is_alive = False
        for partition in sorted(self.grants):
            self.world.checker.on_release(self, partition)
        self.grants.clear()
        self.positions.clear()
        if self.stream:
            self.world.at(self.world.delay(), self.world.coordinator.on_broken,
                          self.membership.member_id, self.stream)  # fmt: skip
        self.world.on_death(self)
