"""How a node calls the controllers: whoever of them is active, found by asking."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from suiro.model.errors import NotController, TimedOut, Unavailable
from suiro.retry import Backoff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import Address
    from suiro.transport.api import Method, Stream

    from cluster.host.env import Env

Q = TypeVar("Q")
R = TypeVar("R")

CALL_TIMEOUT_S = 5.0


class QuorumClient:
    """Remembers which controller answered last and begins there."""

    def __init__(self, env: Env, controllers: Sequence[Address]) -> None:
        assert controllers, "a node must know where the quorum is"
        self._env = env
        self._controllers = list(controllers)

    @property
    def first_choice(self) -> Address:
        return self._controllers[0]

    async def call(self, method: Method[Q, R], request: Q, *, timeout_s: float) -> R:
        """One call of the active controller; raises the last reason after `timeout_s`.

        What is not about finding it (a refusal of the request itself) is raised at once. A call
        that timed out may have been carried out, so a request must bear being made twice.
        """
        backoff = Backoff(self._env.rng)
        last: SuiroError | None = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    try:
                        return await self._env.transport.call(
                            self.first_choice, method, request, timeout_s=CALL_TIMEOUT_S
                        )
                    except (NotController, Unavailable, TimedOut) as error:
                        last = error
                        self.try_next()
                    await asyncio.sleep(backoff.next_s())
        except TimeoutError:
            raise (last or TimedOut(f"{method} was not answered")) from None

    async def open(self, method: Method[Q, R]) -> Stream[Q, R]:
        """A stream to the first choice; `try_next` if it turns out to be the wrong one."""
        return await self._env.transport.open(self.first_choice, method)

    def try_next(self) -> None:
        self._controllers.append(self._controllers.pop(0))
