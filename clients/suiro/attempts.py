"""Doing something again until it works or there is no time left: the one loop for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from suiro.model.error_base import SuiroError
from suiro.model.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from suiro.retry import Backoff

R = TypeVar("R")


async def until_done(
    attempt: Callable[[], Awaitable[R]],
    *,
    timeout_s: float,
    backoff: Backoff,
    late: str,
    is_worth_it: Callable[[SuiroError], bool] = lambda error: error.retriable,
) -> R:
    """What `attempt` returns in the end. An error that another attempt may mend is raised when the
    time is up; if not even that has come by then, TimedOut with `late`.

    An attempt that was cut off may have been carried out, so it must bear being made twice.
    """
    last: SuiroError | None = None
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    return await attempt()
                except SuiroError as error:
                    if not is_worth_it(error):
                        raise
                    last = error
                await asyncio.sleep(backoff.next_s())
    except TimeoutError:
        raise (last or TimedOut(late)) from None
