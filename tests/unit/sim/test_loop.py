"""The virtual loop: no real time, no real world, the same order in every process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sim.loop import (
    EPOCH_MS,
    START_S,
    Deadlock,
    InlineOffload,
    LoopClock,
    VirtualTimeOver,
    run,
)
from tests.sim.trace import FOLD_EVENTS, Trace

if TYPE_CHECKING:
    from random import Random


ROOT = Path(__file__).parents[3]


async def tick(times: int, every_s: float) -> None:
    for _ in range(times):
        await asyncio.sleep(every_s)


def test_virtual_time_costs_no_real_time() -> None:
    async def main(_rng: Random) -> float:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(5):
                tasks.create_task(tick(100, 1.0))
        return asyncio.get_running_loop().time()

    began_s = time.perf_counter()
    assert run(main, seed=1) == START_S + 100
    assert time.perf_counter() - began_s < 1, "measured: 5 ms; the bound only forbids real sleeping"


def test_a_deadlock_names_who_waits() -> None:
    async def main(_: Random) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.Event().wait(), name="the forgotten one")

    with pytest.raises(Deadlock, match=r"the forgotten one: Event.wait"):
        run(main, seed=1)


def test_a_run_in_circles_is_given_up() -> None:
    with pytest.raises(VirtualTimeOver):
        run(lambda _: tick(10**9, 1.0), seed=1, run_s_max=60)


def test_a_forgotten_task_is_a_failure() -> None:
    async def main(_: Random) -> None:
        asyncio.get_running_loop().create_task(tick(10, 1.0), name="stray")

    with pytest.raises(AssertionError, match=r"left behind:\n.*stray"):
        run(main, seed=1)


def test_an_exception_in_a_callback_ends_the_run() -> None:
    def fail() -> None:
        raise KeyError("in a callback")

    async def main(_: Random) -> None:
        asyncio.get_running_loop().call_later(1, fail)
        await asyncio.sleep(2)

    with pytest.raises(KeyError, match="in a callback"):
        run(main, seed=1)


def test_a_failure_that_nobody_looked_at_fails_the_run() -> None:
    async def fail() -> None:
        raise KeyError("unseen")

    async def main(_: Random) -> None:
        await asyncio.wait([asyncio.get_running_loop().create_task(fail())])

    with pytest.raises(AssertionError, match="unseen"):
        run(main, seed=1)


def test_nothing_real_gets_in() -> None:
    async def threads(_: Random) -> None:
        await asyncio.to_thread(print)

    async def sockets(_: Random) -> None:
        await asyncio.open_connection("127.0.0.1", 1)

    for main in (threads, sockets):
        with pytest.raises(AssertionError, match="in the simulator"):
            run(main, seed=1)


def test_timers_of_the_same_moment_fire_in_the_order_of_setting() -> None:
    async def main(_: Random) -> list[int]:
        order: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(100):
            loop.call_at(START_S + 5, order.append, number)
        await asyncio.sleep(6)
        return order

    assert run(main, seed=1) == list(range(100))


def test_cancelled_timers_neither_fire_nor_pile_up() -> None:
    async def main(_rng: Random) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(10_000):
            loop.call_later(3600, pytest.fail, "it was cancelled").cancel()
        assert len(loop._timers) < 300  # type: ignore[attr-defined]
        async with asyncio.timeout(10):
            await asyncio.sleep(1)
        assert loop.time() == START_S + 1

    run(main, seed=1)


def test_a_timeout_comes_at_its_time() -> None:
    async def main(_: Random) -> float:
        try:
            async with asyncio.timeout(2.5):
                await asyncio.Event().wait()
        except TimeoutError:
            return asyncio.get_running_loop().time()
        raise AssertionError

    assert run(main, seed=1) == START_S + 2.5


def test_clocks_follow_the_loop_each_with_its_own_error() -> None:
    async def main(_: Random) -> None:
        loop = asyncio.get_running_loop()
        right, wrong = LoopClock(loop), LoopClock(loop, wall_skew_ms=-5000)
        before_ms = right.monotonic_ms()
        await asyncio.sleep(1.5)
        assert right.now_ms() == EPOCH_MS + 1500
        assert wrong.now_ms() == EPOCH_MS - 3500
        assert right.monotonic_ms() - before_ms == pytest.approx(1500)
        wrong.wall_skew_ms = 0
        assert wrong.now_ms() == right.now_ms()

    run(main, seed=1)


def test_offloaded_work_takes_virtual_time_and_a_cancelled_one_may_have_happened() -> None:
    async def main(rng: Random) -> int:
        offload = InlineOffload(rng, delay_s_max=1.0)
        assert await offload.run(lambda: 42) == 42
        assert asyncio.get_running_loop().time() > START_S
        done: list[int] = []
        for number in range(100):
            try:
                async with asyncio.timeout(0.2):
                    await offload.run(lambda number=number: done.append(number))  # type: ignore[misc]
            except TimeoutError:
                done.append(-1)
        return len([number for number in done if number >= 0]) + done.count(-1)

    assert 100 < run(main, seed=1) < 200, "some were cut off after they had happened, some before"


async def cancelled_together(rng: Random) -> str:
    """A group whose tasks are cancelled by the failure of one: they note the order in which."""
    trace = Trace(asyncio.get_running_loop().time)

    async def member(number: int) -> None:
        try:
            await asyncio.sleep(rng.random() * 10)
        except asyncio.CancelledError:
            trace.add("cancelled", number)
            raise

    async def fail() -> None:
        await asyncio.sleep(3)
        raise KeyError

    try:
        async with asyncio.TaskGroup() as tasks:
            for number in range(200):
                tasks.create_task(member(number))
            tasks.create_task(fail())
    except* KeyError:
        trace.add("over", len(trace))
    return trace.digest()


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    code = (
        "from tests.sim.loop import run\n"
        "from tests.unit.sim.test_loop import cancelled_together\n"
        "print(run(cancelled_together, seed=7))\n"
    )
    digests = {run(cancelled_together, seed=7)}
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert run(cancelled_together, seed=8) not in digests


def test_a_trace_keeps_the_last_events_and_hashes_all() -> None:
    def make(first: str) -> Trace:
        trace = Trace(lambda: 1.5, kept=3)
        trace.add(first)
        for number in range(FOLD_EVENTS * 2 + 10):
            trace.add("event", number, "text", None)
        return trace

    one, same, other = make("a"), make("a"), make("b")
    assert one.story().splitlines()[-1].split() == ["1.500000", "event", "1033", "text", "None"]
    assert len(one.story().splitlines()) == 3
    assert len(one) == FOLD_EVENTS * 2 + 11
    assert one.digest() == same.digest() != other.digest()
    same.add("more")
    assert one.digest() != same.digest()
