"""The machine host on a log that can delay, fail and lose: nobody is told what did not last."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from suiro.model.errors import (
    InternalError,
    InvalidRequest,
    NotController,
    Overloaded,
    ShuttingDown,
    TimedOut,
    TopicExists,
    Unavailable,
)

from cluster.host.machine import Decision
from cluster.host.machine_host import MachineHost
from tests.sim.loop import run
from tests.sim.trace import Trace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from random import Random

    from suiro.model.error_base import SuiroError

GONE = NotController(None)


class Names:
    """A machine that keeps names, each once."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names)

    def apply(self, record: str) -> None:
        assert record != "cannot be applied"
        self.names.append(record)

    def decide_add(self, *names: str) -> Decision[int]:
        for name in names:
            if name in self.names:
                raise TopicExists(f"{name} is there already")
        effects = tuple(f"announce {name}" for name in names)
        return Decision(names, len(self.names) + len(names), effects)


@dataclass
class FakeLog:
    """A log whose commits and failures are the test's to make."""

    records: list[bytes] = field(default_factory=list)
    commit: int = 0
    failure: SuiroError | None = None
    refusal: SuiroError | None = None
    waits: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def append(self, records: Sequence[bytes]) -> int:
        if self.refusal is not None:
            raise self.refusal
        self.records.extend(records)
        return len(self.records)

    async def committed(self, position: int) -> int:
        self.waits += 1
        while self.commit < position:
            if self.failure is not None:
                raise self.failure
            await self.changed.wait()
        return self.commit

    def commit_to(self, position: int) -> None:
        self.commit = position
        self._wake()

    def fail(self, error: SuiroError) -> None:
        self.failure = error
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


@dataclass
class Stage:
    """A host that serves, its log, and what came of the serving."""

    log: FakeLog
    host: MachineHost[Names]
    effects: list[str]
    serving: asyncio.Task[SuiroError]

    async def ended(self) -> SuiroError:
        async with asyncio.timeout(1):
            return await self.serving


@asynccontextmanager
async def serving(names: Sequence[str] = (), **settings: Any) -> AsyncIterator[Stage]:
    log, effects = FakeLog([name.encode() for name in names]), list[str]()
    host: MachineHost[Names] = MachineHost(log, str.encode, effects.append, **settings)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(host.serve(Names(names), len(names)), name="serve")
        await settle()
        yield Stage(log, host, effects, task)
        task.cancel()


async def settle() -> None:
    """Let everything happen that can happen without time passing (much)."""
    await asyncio.sleep(0.000_001)


def add(*names: str) -> Callable[[Names], Decision[int]]:
    return lambda machine: machine.decide_add(*names)


def count(machine: Names) -> int:
    return len(machine.names)


def story(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run an async test on the virtual loop."""

    def play() -> None:
        run(lambda _rng: test(), seed=1)

    return play


async def outcome(call: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await call
    except Exception as error:
        return error


@story
async def test_a_reply_waits_for_its_commit() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        reply = tasks.create_task(stage.host.decide(add("a", "b")))
        await settle()
        assert stage.log.records == [b"a", b"b"]
        stage.log.commit_to(1)
        await settle()
        assert not reply.done()
        stage.log.commit_to(2)
        assert await reply == 2


@story
async def test_a_read_waits_for_the_write_that_it_saw() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.host.decide(add("a")))
        await settle()
        read = tasks.create_task(stage.host.read(count))
        await settle()
        assert not read.done()
        stage.log.commit_to(1)
        assert await read == 1
        waits = stage.log.waits
        assert await stage.host.read(count) == 1
        assert stage.log.waits == waits, "a committed position need not be asked for again"


@story
async def test_what_was_loaded_may_be_uncommitted_too() -> None:
    async with serving(["a"]) as stage, asyncio.TaskGroup() as tasks:
        read = tasks.create_task(stage.host.read(count))
        await settle()
        assert not read.done()
        stage.log.commit_to(1)
        assert await read == 1


@story
async def test_a_refusal_waits_for_the_write_that_it_saw() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(outcome(stage.host.decide(add("a"))))
        await settle()
        second = tasks.create_task(outcome(stage.host.decide(add("a"))))
        await settle()
        assert not second.done()
        stage.log.fail(GONE)
        assert await first is GONE
        assert await second is GONE, "nobody may hear that `a` exists: it does not"


@story
async def test_a_failed_append_ends_the_machine_and_everyone_who_waits() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(outcome(stage.host.decide(add("a"))))
        await settle()
        stage.log.refusal = GONE
        assert await outcome(stage.host.decide(add("b"))) is GONE
        assert await waiting is GONE
        assert await stage.ended() is GONE
        assert await outcome(stage.host.read(count)) is GONE
        assert stage.effects == []


@story
async def test_lost_leadership_reaches_all_who_wait_and_a_new_machine_serves_again() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(outcome(stage.host.decide(add(n)))) for n in "abc"]
        await settle()
        stage.log.fail(GONE)
        assert [await task for task in waiting] == [GONE] * 3
        assert await stage.ended() is GONE
        stage.log.failure = None
        stage.log.commit_to(3)
        again = tasks.create_task(stage.host.serve(Names("abc"), 3))
        await settle()
        assert await stage.host.read(count) == 3
        stage.host.stop(GONE)
        assert await again is GONE


@story
async def test_stop_ends_the_serving_while_the_log_is_silent() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(outcome(stage.host.decide(add("a"))))
        stage.host.stop(Unavailable("another reason"))  # not waiting yet: refused at the door
        assert isinstance(await waiting, Unavailable)
        assert isinstance(await stage.ended(), Unavailable)


@story
async def test_stop_in_the_moment_in_which_a_call_begins_to_wait() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:

        async def decide_then_stop() -> None:
            call = tasks.create_task(outcome(stage.host.decide(add("a"))))
            tasks.create_task(stop())
            assert await call is GONE

        async def stop() -> None:
            stage.host.stop(GONE)

        await decide_then_stop()
        assert await stage.ended() is GONE


@story
async def test_before_it_has_been_loaded_it_is_unavailable() -> None:
    host: MachineHost[Names] = MachineHost(FakeLog(), str.encode, print)
    assert isinstance(await outcome(host.read(count)), Unavailable)
    host.stop(GONE)
    assert await outcome(host.read(count)) is GONE


@story
async def test_effects_follow_the_commit_in_order_even_when_the_callers_are_gone() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(stage.host.decide(add(name))) for name in "abc"]
        await settle()
        calls[1].cancel()
        await settle()
        assert stage.effects == []
        stage.log.commit_to(3)
        await settle()
        assert stage.effects == ["announce a", "announce b", "announce c"]
        assert calls[1].cancelled()


@story
async def test_an_effect_without_records_is_started_too() -> None:
    async with serving() as stage:
        reply = await stage.host.decide(lambda _: Decision((), "ok", ("look around",)))
        assert reply == "ok"
        assert stage.effects == ["look around"]


@story
async def test_one_wait_on_the_log_serves_everyone_it_covers() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(stage.host.decide(add(str(n)))) for n in range(1000)]
        await settle()
        stage.log.commit_to(1000)
        assert [await call for call in calls] == list(range(1, 1001))
        assert stage.log.waits <= 2


@story
async def test_a_bounded_number_may_wait() -> None:
    async with serving(waiting_max=2) as stage, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(outcome(stage.host.decide(add(name)))) for name in "abc"]
        await settle()
        assert isinstance(await calls[2], Overloaded)
        assert stage.log.records == [b"a", b"b"]
        stage.log.commit_to(2)
        assert [await call for call in calls[:2]] == [1, 2]


@story
async def test_a_commit_that_takes_too_long_is_unknown_and_its_effect_still_follows() -> None:
    async with serving(commit_wait_ms=500) as stage:
        began_s = asyncio.get_running_loop().time()
        assert isinstance(await outcome(stage.host.decide(add("a"))), TimedOut)
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(0.5)
        stage.log.commit_to(1)
        await settle()
        assert stage.effects == ["announce a"]
        assert await stage.host.read(count) == 1


@story
async def test_a_decision_that_cannot_be_applied_is_a_defect_and_ends_the_machine() -> None:
    async with serving() as stage:
        assert isinstance(
            await outcome(stage.host.decide(add("fine", "cannot be applied"))), AssertionError
        )
        assert isinstance(await stage.ended(), InternalError)
        assert stage.log.records == [], "nothing of it may reach the log"


@story
async def test_a_defect_in_choosing_harms_nobody_else() -> None:
    def choose(_: Names) -> Decision[None]:
        raise KeyError("a defect")

    async with serving() as stage:
        assert isinstance(await outcome(stage.host.decide(choose)), KeyError)
        assert await stage.host.read(count) == 0


@story
async def test_an_effect_that_cannot_be_started_fails_the_owner() -> None:
    def perform(effect: str) -> None:
        raise KeyError(effect)

    log = FakeLog()
    host: MachineHost[Names] = MachineHost(log, str.encode, perform)

    async def own() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(host.serve(Names(), 0))
            await settle()
            call = tasks.create_task(outcome(host.decide(add("a"))))
            await settle()
            log.commit_to(1)
            await call

    with pytest.raises(BaseExceptionGroup) as caught:
        await own()
    assert caught.group_contains(KeyError)
    assert isinstance(await outcome(host.read(count)), ShuttingDown)


@story
async def test_a_node_that_stops_tells_those_who_wait() -> None:
    async with serving() as stage, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(outcome(stage.host.decide(add("a"))))
        await settle()
        stage.serving.cancel()
        assert isinstance(await waiting, ShuttingDown)


@story
async def test_a_refusal_that_saw_nothing_uncommitted_is_raised_at_once() -> None:
    def refuse(_: Names) -> Decision[None]:
        raise InvalidRequest("no name is empty")

    async with serving() as stage:
        assert isinstance(await outcome(stage.host.decide(refuse)), InvalidRequest)
        assert await stage.host.read(count) == 0


# -- whole histories ------------------------------------------------------------------------------


class ShakyCluster:
    """Commits at random moments; loses its leader now and then, and some of the tail with it."""

    def __init__(self, rng: Random, trace: Trace) -> None:
        self.rng = rng
        self.trace = trace
        self.log = FakeLog()
        self.host: MachineHost[Names] = MachineHost(self.log, str.encode, self.on_effect)
        self.acknowledged: list[str] = []
        self.announced: list[str] = []
        self.over = False

    def on_effect(self, effect: str) -> None:
        name = effect.removeprefix("announce ")
        assert name.encode() in self.log.records[: self.log.commit]
        self.announced.append(name)

    async def serve(self) -> None:
        while not self.over:
            self.log.failure = self.log.refusal = None
            names = [record.decode() for record in self.log.records]
            await self.host.serve(Names(names), len(names))
            self.trace.add("reload", len(self.log.records))
            await asyncio.sleep(self.rng.random())

    async def shake(self) -> None:
        for _ in range(200):
            await asyncio.sleep(self.rng.random() * 0.1)
            if self.rng.random() < 0.1:
                self.lose_the_leader()
            else:
                self.log.commit_to(self.rng.randint(self.log.commit, len(self.log.records)))
        self.over = True
        self.log.commit_to(len(self.log.records))
        self.host.stop(GONE)

    def lose_the_leader(self) -> None:
        keep = self.rng.randint(self.log.commit, len(self.log.records))
        self.trace.add("lose", keep, len(self.log.records))
        match self.rng.randrange(3):
            case 0:
                self.host.stop(GONE)
            case 1:
                self.log.fail(GONE)
            case _:
                self.log.refusal = GONE
        del self.log.records[keep:]
        self.log.failure = self.log.refusal = GONE

    async def client(self, number: int) -> None:
        for serial in range(100):
            await asyncio.sleep(self.rng.random() * 0.2)
            name = f"{number}-{serial}"
            reply = await outcome(self.host.decide(add(name)))
            self.trace.add("reply", name, str(reply))
            if isinstance(reply, int):
                assert self.log.records[reply - 1] == name.encode()
                assert reply <= self.log.commit
                self.acknowledged.append(name)
            seen = await outcome(self.host.read(lambda machine: tuple(machine.names)))
            if isinstance(seen, tuple):
                assert len(seen) <= self.log.commit
                assert [name.encode() for name in seen] == self.log.records[: len(seen)]


async def shaky_history(rng: Random) -> tuple[str, int, int]:
    trace = Trace(asyncio.get_running_loop().time)
    cluster = ShakyCluster(rng, trace)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cluster.serve())
        tasks.create_task(cluster.shake())
        for number in range(5):
            tasks.create_task(cluster.client(number))
    kept = [record.decode() for record in cluster.log.records]
    assert len(set(kept)) == len(kept)
    assert set(cluster.acknowledged) <= set(kept)
    assert set(cluster.acknowledged) <= set(cluster.announced)
    return trace.digest(), len(cluster.acknowledged), len(kept)


def test_nothing_acknowledged_or_read_is_ever_lost() -> None:
    acknowledged = lost_replies = 0
    for seed in range(15):
        digest, told, kept = run(shaky_history, seed=seed)
        assert run(shaky_history, seed=seed)[0] == digest
        acknowledged += told
        lost_replies += kept - told
    assert acknowledged > 1000, "the histories must get somewhere"
    assert lost_replies > 15, "and must lose their leader between write and reply"
