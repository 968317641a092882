"""Who waits for a commit is told once: that it came, that it takes too long, or that it is over."""

from __future__ import annotations

import asyncio

import pytest
from suiro.model.error_base import SuiroError
from suiro.model.errors import Overloaded, TimedOut
from suiro.model.ids import Offset

from cluster.broker.commit_waiters import CommitWaiters


def late() -> SuiroError:
    return TimedOut("too late")


class Waiting:
    """Some waits, by the name of each, and what became of them in order."""

    def __init__(self, waiters_max: int = 10) -> None:
        self.waiters = CommitWaiters(waiters_max)
        self.told: list[str] = []

    def begin(self, name: str, end: int, timeout_s: float = 60) -> asyncio.Task[None]:
        async def wait() -> None:
            try:
                await self.waiters.wait(Offset(end), timeout_s, late)
                self.told.append(name)
            except SuiroError as error:
                self.told.append(f"{name}: {error}")

        return asyncio.create_task(wait())


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_an_offset_releases_those_below_it_in_their_order() -> None:
    waiting = Waiting()
    tasks = [waiting.begin("c", 7), waiting.begin("a", 5), waiting.begin("b", 5)]
    await settle()
    waiting.waiters.release(Offset(4))
    await settle()
    assert waiting.told == []
    waiting.waiters.release(Offset(6))
    await settle()
    assert waiting.told == ["a", "b"]
    waiting.waiters.release(Offset(7))
    await asyncio.gather(*tasks)
    assert waiting.told == ["a", "b", "c"]


async def test_a_wait_ends_at_its_deadline() -> None:
    waiting = Waiting()
    await waiting.begin("a", 5, timeout_s=0)
    assert waiting.told == ["a: too late"]
    waiting.waiters.release(Offset(5))


async def test_all_are_failed_once_in_the_order_of_their_arrival() -> None:
    waiting = Waiting()
    tasks = [waiting.begin("a", 9), waiting.begin("b", 5)]
    await settle()
    waiting.waiters.fail(lambda: TimedOut("over"))
    waiting.waiters.release(Offset(9))
    await asyncio.gather(*tasks)
    assert waiting.told == ["a: over", "b: over"]


async def test_one_too_many_is_refused_until_another_has_gone() -> None:
    waiting = Waiting(waiters_max=1)
    first = waiting.begin("a", 5)
    await settle()
    with pytest.raises(Overloaded):
        await waiting.waiters.wait(Offset(6), 1, late)
    first.cancel()
    await settle()
    second = waiting.begin("b", 6)
    await settle()
    waiting.waiters.release(Offset(6))
    await second
    assert waiting.told == ["b"]
