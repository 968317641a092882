"""A Spark query of the simulation: batch after batch, each a shared transaction of many writers.

An attempt is a script that asks and waits for answers. It may be given up at any moment, and the
next attempt at the same batch begins while the words of the old one are still under way; or the old
one goes on beside it. Some writers of an attempt do not count, as with speculation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.errors import ConcurrentTransaction

from cluster.txncoord.requests import EndShared, Joined, Open, Places, SharedEnd
from tests.sim.txn_places import Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from suiro.model.ids import TopicPartition

    from cluster.host.machine import Decision
    from cluster.txncoord.machine import TxnMachine
    from tests.sim.txn_world import World

    Choose = Callable[[TxnMachine], Decision[Any]]
    Step = tuple[str, Choose] | tuple[TopicPartition, Sent]
    Script = Generator[Step, Any, None]

RETRY_MS = 80
TRIES_MAX = 12
"""Then the attempt is given up, as a driver would."""


class Query:
    """Batch after batch, until each is committed."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.sequence = 0
        self.attempts = 0
        self.succeeded = 0
        self.stopping = False
        self.begin_attempt()

    def begin_attempt(self) -> None:
        """A new attempt at the current batch; the one before may still be running."""
        if not self.stopping:
            self.attempts += 1
            Attempt(self, f"a{self.attempts}", self.sequence)

    def on_committed(self, sequence: int) -> None:
        if sequence == self.sequence:
            self.sequence += 1
            self.succeeded += 1
            self.world.counts["batches committed"] += 1
            self.world.after(self.world.random.randint(1, 30), self.begin_attempt)

    def on_failed(self, sequence: int, attempt: str) -> None:
        if sequence == self.sequence and attempt == f"a{self.attempts}":
            self.world.after(self.world.random.randint(1, 30), self.begin_attempt)


class Attempt:
    """One try at one batch: a script, and who waits for its next answer."""

    def __init__(self, query: Query, name: str, sequence: int) -> None:
        self.world = query.world
        self.query = query
        self.name = name
        self.sequence = sequence
        self._number = 0
        self._tries = 0
        self._script = self._run()
        self._step: Step = next(self._script)
        self._ask()

    def _run(self) -> Script:
        world, random = self.world, self.world.random
        counted: list[int] = []
        values: list[str] = []
        for number in range(random.randint(1, 3)):
            opened = yield self._open(f"w{number}")
            if isinstance(opened, SharedEnd):
                self.query.on_committed(self.sequence)
                return
            assert isinstance(opened, Joined)
            written = yield from self._write(opened, number)
            if random.random() < 0.7:
                counted.append(opened.identity.producer_id)
                values += written
        batch = (self.query.name, self.sequence)
        world.checker.batches.setdefault(batch, {})[self.name] = values
        end = EndShared(self.query.name, self.sequence, self.name, True, tuple(counted))
        result = yield (
            f"{self.name} commits {batch}",
            lambda machine: machine.decide_end_shared(end, world.now),
        )
        if random.random() < 0.3:  # as when the answer was lost to whoever asked
            abort = EndShared(self.query.name, self.sequence, self.name, commit=False)
            world.coordinator.ask(
                f"{self.name} aborts {batch}",
                lambda machine: machine.decide_end_shared(abort, world.now),
                lambda _: None,
            )
        if not result.already_committed:
            world.checker.told_batches[batch] = self.name
        self.query.on_committed(self.sequence)

    def _write(self, opened: Joined, number: int) -> Generator[Step, Any, list[str]]:
        """One writer: register, write, and say that this was all."""
        world, random = self.world, self.world.random
        names = random.sample(sorted(world.partitions), random.randint(1, 2))
        name, identity = opened.transactional_id, opened.identity
        places = Places(tuple(names))
        yield (
            f"{self.name} registers {number}",
            lambda machine: machine.decide_add(name, identity, places, world.now),
        )
        written = []
        for partition in names:
            value = f"{self.query.name}:{self.sequence}:{self.name}:{number}@{partition}"
            yield partition, Sent(name, identity, 0, value)
            written.append(value)
        yield (
            f"{self.name} prepares {number}",
            lambda machine: machine.decide_prepare_writer(name, identity, world.now),
        )
        return written

    def _open(self, writer: str) -> Step:
        request = Open(
            self.query.name, self.sequence, self.name, writer, self.world.plan.timeout_ms
        )
        return (
            f"{self.name} opens {self.sequence} for {writer}",
            lambda machine: machine.decide_open_shared(request, self.world.now),
        )

    # -- asking -----------------------------------------------------------------------------------

    def _ask(self) -> None:
        self._number += 1
        self._tries += 1
        number = self._number
        if self._tries > TRIES_MAX:
            self.query.on_failed(self.sequence, self.name)
            return
        first, second = self._step

        def reply(result: Any) -> None:
            self._answered(number, result)

        if isinstance(first, str):
            assert not isinstance(second, Sent)
            self.world.coordinator.ask(first, second, reply)
        else:
            assert isinstance(second, Sent)
            self.world.partitions[first].produce(second, reply)
        self.world.after(RETRY_MS, self._again, number)

    def _again(self, number: int) -> None:
        if number == self._number:
            self._ask()

    def _answered(self, number: int, result: Any) -> None:
        if number != self._number:
            return
        if isinstance(result, SuiroError):
            if not result.retriable:
                self._number += 1
                self.query.on_failed(self.sequence, self.name)
            elif isinstance(result, ConcurrentTransaction):
                self._tries = 0
            return
        self._number += 1
        self._tries = 0
        try:
            self._step = self._script.send(result)
        except StopIteration:
            return
        self._ask()
