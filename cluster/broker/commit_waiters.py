"""Producers whose records are in the log and not committed yet: who waits for which offset.

On the path of every acknowledged append, so no task and no asyncio.timeout per wait: a future, a
heap and a timer of the loop's.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from suiro.model.errors import Overloaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import Offset


class CommitWaiters:
    """Of one partition; at most `waiters_max` of them."""

    __slots__ = ("_arrivals", "_heap", "_waiters_max")

    def __init__(self, waiters_max: int) -> None:
        self._waiters_max = waiters_max
        self._heap: list[tuple[Offset, int, asyncio.Future[None]]] = []
        self._arrivals = 0

    async def wait(self, end: Offset, timeout_s: float, late: Callable[[], SuiroError]) -> None:
        """Return once everything below `end` is released; raises `late()` if that takes too long,
        and whatever the others were failed with.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._park(end, waiter)
        timer = loop.call_later(timeout_s, _fail, waiter, late)
        try:
            await waiter
        finally:
            timer.cancel()

    def release(self, offset: Offset) -> None:
        """Everything below `offset` is committed."""
        heap = self._heap
        while heap and heap[0][0] <= offset:
            waiter = heappop(heap)[2]
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, error: Callable[[], SuiroError]) -> None:
        """Everyone who waits has to be told that this broker cannot say."""
        waiting, self._heap = self._heap, []
        for _, _, waiter in sorted(waiting, key=lambda each: each[1]):
            _fail(waiter, error)

    def _park(self, end: Offset, waiter: asyncio.Future[None]) -> None:
        if len(self._heap) >= self._waiters_max:
            self._heap = [each for each in self._heap if not each[2].done()]
            heapify(self._heap)
            if len(self._heap) >= self._waiters_max:
                raise Overloaded(f"{len(self._heap)} requests are waiting already")
        self._arrivals += 1
        heappush(self._heap, (end, self._arrivals, waiter))


def _fail(waiter: asyncio.Future[None], error: Callable[[], SuiroError]) -> None:
    if not waiter.done():
        waiter.set_exception(error())
