"""Real threads: the order of things is forced with events, never with time."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from cluster.host.clock import SystemClock
from cluster.host.offload import Threads

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def threads() -> Iterator[Threads]:
    offload = Threads("test", 1)
    yield offload
    offload.close()


async def test_work_runs_in_a_named_thread_and_its_result_comes_back(threads: Threads) -> None:
    name = await threads.run(lambda: threading.current_thread().name)
    assert name.startswith("test")


async def test_a_failure_is_raised_where_the_work_was_handed_in(threads: Threads) -> None:
    def fail() -> None:
        raise OSError("disk on fire")

    with pytest.raises(OSError, match="disk on fire"):
        await threads.run(fail)


async def test_a_cancelled_caller_waits_for_work_that_has_begun(threads: Threads) -> None:
    begun, go_on = threading.Event(), threading.Event()
    steps = []

    def work() -> None:
        begun.set()
        go_on.wait(timeout=30)
        steps.append("work ended")
        raise OSError("nobody is left to hear this")

    async def caller() -> None:
        try:
            await threads.run(work)
        except asyncio.CancelledError:
            steps.append("caller left")
            raise

    task = asyncio.create_task(caller())
    await asyncio.to_thread(begun.wait)
    for _ in range(2):  # a second cancellation is no reason to leave either
        task.cancel()
        await asyncio.wait([task], timeout=0)
        assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["work ended", "caller left"]


async def test_a_cancelled_caller_takes_back_work_that_has_not_begun(threads: Threads) -> None:
    begun, go_on = threading.Event(), threading.Event()
    done = []

    def block() -> None:
        begun.set()
        go_on.wait(timeout=30)

    first = asyncio.create_task(threads.run(block))
    await asyncio.to_thread(begun.wait)
    second = asyncio.create_task(threads.run(lambda: done.append("second")))
    await asyncio.wait([second], timeout=0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go_on.set()
    await first
    await threads.run(lambda: done.append("third"))
    assert done == ["third"]


def test_the_system_clock_tells_milliseconds() -> None:
    clock = SystemClock()
    before_ms = clock.monotonic_ms()
    assert clock.now_ms() > 1_700_000_000_000
    assert clock.monotonic_ms() >= before_ms
