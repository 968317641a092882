"""A transactional producer of the simulation: the real core, driven as a shell would drive it.

It begins a transaction, registers, writes to some partitions one batch at a time, perhaps commits a
group's offset, and ends. Whatever is not answered in time is asked again. It may die at any moment,
or be replaced while it lives on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition
from suiro.transaction import EndTxn, InitProducer, Register, State, Transaction, Verdict

from cluster.txncoord.requests import Init, Places
from tests.sim.txn_checker import Violation
from tests.sim.txn_places import Sent

if TYPE_CHECKING:
    from suiro.transaction import Step

    from cluster.host.machine import Decision
    from cluster.txncoord.machine import TxnMachine
    from tests.sim.txn_world import World

RETRY_MS = 80
THINK_MS = 30


class Producer:
    """One instance."""

    def __init__(self, world: World, transactional_id: str, name: str) -> None:
        self.world = world
        self.name = name
        self.core = Transaction(transactional_id)
        self.alive = True
        self.stopping = False
        self.succeeded = 0
        self.transactions = 0
        self._asked = 0
        self._writes: dict[TopicPartition | str, list[str]] = {}
        self._sent: dict[TopicPartition | str, int] = {}
        self._sequences: dict[TopicPartition | str, int] = {}
        self._wants_commit = False
        self._paused_until = 0
        self._turns = 0
        world.after(world.random.randint(0, THINK_MS), self._turn, 0)

    @property
    def uid(self) -> str:
        return f"{self.name}/{self.transactions}"

    def pause(self, time_ms: int) -> None:
        self._paused_until = self.world.now + time_ms

    def is_idle(self) -> bool:
        return not self.alive or self.core.state in {State.READY, State.FENCED}

    # -- one turn ---------------------------------------------------------------------------------

    def _go(self, delay_ms: int = 0) -> None:
        """Take a turn soon; a turn that was planned before is off."""
        self._turns += 1
        self.world.after(delay_ms, self._turn, self._turns)

    def _turn(self, number: int) -> None:
        if not self.alive or number != self._turns:
            return
        if self.world.now < self._paused_until:
            self._go(self._paused_until - self.world.now)
            return
        step = self.core.next_step()
        if step is not None:
            self._ask(step)
        elif self.core.state is State.READY:
            if not self.stopping:
                self._begin()
                self._go()
        elif self.core.state is State.MUST_ABORT:
            self.core.abort()
            self._go()
        elif self.core.state is State.OPEN:
            self._write()

    def _begin(self) -> None:
        world, random = self.world, self.world.random
        self.transactions += 1
        world.checker.on_begin(self.uid)
        self.core.begin()
        names = random.sample(sorted(world.partitions), random.randint(1, len(world.partitions)))
        self._writes = {
            name: [f"{self.uid}@{name}.{n}" for n in range(random.randint(1, 2))] for name in names
        }
        if random.random() < 0.4:
            self._writes[world.group.name] = [f"{self.uid}@offset"]
        self._sent = {}
        self._wants_commit = False
        self.core.write_to(self._writes)

    def _write(self) -> None:
        """Send the next batch of every place; end the transaction when there is none left."""
        idle = [place for place, values in self._writes.items() if values]
        for place in idle:
            if place not in self._sent and self.core.may_write(place):
                self._send(place)
        if not idle:
            if self.world.random.random() < self.world.plan.abort_rate:
                self.core.abort()
            else:
                self.world.checker.known[self.uid].commit_asked = True
                self._wants_commit = True
                self.core.commit()
            self._go()

    # -- batches ----------------------------------------------------------------------------------

    def _send(self, place: TopicPartition | str) -> None:
        world, value = self.world, self._writes[place][0]
        sequence = self._sequences.get(place, 0)
        self._asked += 1
        number = self._sent[place] = self._asked
        sent = Sent(self.core.transactional_id, self.core.identity, sequence, value)

        def reply(result: Any) -> None:
            self._batch_answered(place, number, result)

        if isinstance(place, TopicPartition):
            world.partitions[place].produce(sent, reply)
        else:
            world.group.commit(sent, reply)
        world.after(RETRY_MS, self._send_again, place, number)

    def _send_again(self, place: TopicPartition | str, number: int) -> None:
        if self.alive and self._sent.get(place) == number and self.core.state is State.OPEN:
            self._send(place)

    def _batch_answered(self, place: TopicPartition | str, number: int, result: Any) -> None:
        if not self.alive or self._sent.get(place) != number:
            return
        if self.core.state is not State.OPEN:
            return
        if isinstance(result, SuiroError):
            if self.core.on_refused(result) is not Verdict.RETRY:
                self._go()
            return
        value = self._writes[place].pop(0)
        self.world.checker.known[self.uid].acked.append(value)
        self._sequences[place] = self._sequences.get(place, 0) + 1
        del self._sent[place]
        self._go()

    # -- the coordinator --------------------------------------------------------------------------

    def _ask(self, step: Step) -> None:
        self._asked += 1
        number = self._asked
        self._sent = {"": number}
        now, name = self.world.now, self.core.transactional_id

        def choose(machine: TxnMachine) -> Decision[Any]:
            match step:
                case InitProducer(go_on):
                    timeout_ms = self.world.plan.timeout_ms
                    return machine.decide_init(Init(name, timeout_ms, self.name, go_on), now)
                case Register(identity, partitions, groups):
                    places = Places(partitions, groups)
                    return machine.decide_add(name, identity, places, now)
                case EndTxn(identity, commit):
                    return machine.decide_end(name, identity, commit=commit, now_ms=now)

        def reply(result: Any) -> None:
            self._step_answered(step, number, result)

        self.world.coordinator.ask(f"{self.uid} asks {step}", choose, reply)
        self._go(RETRY_MS)

    def _step_answered(self, step: Step, number: int, result: Any) -> None:
        if not self.alive or self._sent.get("") != number:
            return
        self._sent = {}
        if isinstance(result, SuiroError):
            if self.core.on_error(result) is Verdict.RETRY:
                self._go(self.world.random.randint(5, THINK_MS))
            else:
                self._go()
            return
        match step:
            case InitProducer():
                was_new = self.core.state is State.NEW
                self.world.checker.on_given(result, self.name)
                self.core.on_initialised(result)
                self._sequences = {}
                if not was_new:
                    self.world.checker.on_told(self.uid, commit=False)
            case Register():
                self.core.on_registered(step)
            case EndTxn(_, commit):
                if commit != self._wants_commit:
                    raise Violation(f"T5: {self.uid} asked for the opposite of what it wanted")
                self.world.checker.on_given(result, self.name)
                self.core.on_ended(result)
                self._sequences = {}
                self.world.checker.on_told(self.uid, commit=commit)
                self.succeeded += 1
        is_ready = self.core.state is State.READY
        self._go(self.world.random.randint(0, THINK_MS) if is_ready else 0)
