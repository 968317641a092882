"""How a node calls the controllers: whoever of them is active, found by asking."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from suiro.attempts import until_done
from suiro.model.errors import NotController, TimedOut, Unavailable
from suiro.model.ids import Address
from suiro.retry import Backoff

from cluster.host.call_line import CallLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.error_base import SuiroError
    from suiro.transport.api import Method, Stream

    from cluster.host.env import Env

Q = TypeVar("Q")
R = TypeVar("R")

CALL_TIMEOUT_S = 5.0

_ELSEWHERE = (NotController, Unavailable, TimedOut)
"""Not about what was asked: another controller may answer it."""


class QuorumClient:
    """Remembers which controller answered last and begins there.

    While `run` is a task of its owner, calls share one stream per controller (see `CallLine`);
    before that, and for whoever does not run it, each is an rpc of its own.
    """

    def __init__(self, env: Env, controllers: Sequence[Address]) -> None:
        assert controllers, "a node must know where the quorum is"
        self._env = env
        self._configured = tuple(controllers)
        self._controllers = list(controllers)
        self._hinted: Address | None = None
        """Where another controller said that the active one is; it need not be in our list."""
        self._tasks: asyncio.TaskGroup | None = None
        self._lines: dict[Address, CallLine] = {}

    @property
    def first_choice(self) -> Address:
        return self._hinted or self._controllers[0]

    async def run(self) -> None:
        """Hold the streams, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    def learn(self, controllers: Sequence[Address]) -> None:
        """Where the quorum is now, of which the configuration may know a part, or nobody any more.

        What is configured stays: it may be a name that leads to whoever is there.
        """
        still = [a for a in self._controllers if a in self._configured or a in controllers]
        self._controllers = [*still, *(a for a in controllers if a not in still)]

    async def call(self, method: Method[Q, R], request: Q, *, timeout_s: float) -> R:
        """One call of the active controller; raises the last reason after `timeout_s`.

        What is not about finding it (a refusal of the request itself) is raised at once. A call
        that timed out may have been carried out, so a request must bear being made twice.
        """

        async def attempt() -> R:
            address = self.first_choice
            try:
                return await self._call_at(address, method, request)
            except _ELSEWHERE as error:
                self.leave(address, error)
                raise

        return await until_done(
            attempt,
            timeout_s=timeout_s,
            backoff=Backoff(self._env.rng),
            late=f"{method} was not answered",
            is_worth_it=lambda error: isinstance(error, _ELSEWHERE),
        )

    async def open(self, method: Method[Q, R]) -> tuple[Address, Stream[Q, R]]:
        """A stream to the first choice; `leave` that if it turns out to be the wrong one."""
        address = self.first_choice
        return address, await self._env.transport.open(address, method)

    def leave(self, address: Address, error: SuiroError | None = None) -> None:
        """The controller there did not serve: begin elsewhere, where the error says if it does.

        Nothing changes if somebody else has found out before and the choice is another by now.
        """
        if address != self.first_choice:
            return
        if self._hinted is None:
            self._controllers.append(self._controllers.pop(0))
        self._hinted = _hint_of(error)

    async def _call_at(self, address: Address, method: Method[Q, R], request: Q) -> R:
        if self._tasks is None:
            return await self._env.transport.call(
                address, method, request, timeout_s=CALL_TIMEOUT_S
            )
        line = self._lines.get(address)
        if line is None or line.is_broken:
            line = self._lines[address] = CallLine(self._env.transport, address)
            self._tasks.create_task(line.run(), name=f"line to {address}")
        return await line.call(method, request, timeout_s=CALL_TIMEOUT_S)


def _hint_of(error: SuiroError | None) -> Address | None:
    if not isinstance(error, NotController):
        return None
    host, _, port = str(error.hints.get("address", "")).rpartition(":")
    return Address(host.strip("[]"), int(port)) if host and port.isdigit() else None
