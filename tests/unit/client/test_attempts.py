"""Trying again until there is no time left, in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro.attempts import until_done
from suiro.model.errors import InvalidRequest, TimedOut, Unavailable
from suiro.retry import Backoff

from tests.sim.loop import run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

TIMEOUT_S = 3.0


class Door:
    """Somebody who answers after so many knocks; `error` says why not before."""

    def __init__(self, opens_at: int, error: Exception) -> None:
        self.knocks = 0
        self._opens_at = opens_at
        self._error = error

    async def knock(self) -> int:
        self.knocks += 1
        if self.knocks < self._opens_at:
            raise self._error
        return self.knocks


async def hang() -> int:
    await asyncio.Event().wait()
    return 0


def trying(attempt: Callable[[], Awaitable[int]]) -> tuple[int, float]:
    """What came of it, and how long that took."""

    async def go(rng: Random) -> tuple[int, float]:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        found = await until_done(
            attempt, timeout_s=TIMEOUT_S, backoff=Backoff(rng), late="nobody is there"
        )
        return found, loop.time() - began_s

    return run(go, seed=1)


def test_a_retriable_error_is_tried_again() -> None:
    found, took_s = trying(Door(5, Unavailable("not yet")).knock)
    assert found == 5
    assert 0 < took_s < TIMEOUT_S


def test_the_last_error_is_raised_when_the_time_is_up() -> None:
    with pytest.raises(Unavailable, match="not yet"):
        trying(Door(1_000_000, Unavailable("not yet")).knock)


def test_an_error_that_stays_is_raised_at_once() -> None:
    door = Door(2, InvalidRequest("nonsense"))
    with pytest.raises(InvalidRequest):
        trying(door.knock)
    assert door.knocks == 1


def test_who_does_not_answer_at_all_is_late() -> None:
    with pytest.raises(TimedOut, match="nobody is there"):
        trying(hang)
