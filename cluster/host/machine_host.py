"""Serve a `Machine` from a replicated log: decide, apply, append, wait for the commit, reply.

What always holds:
- The machine's state is the log's, in the log's order: nothing is awaited between apply and append.
- A reply, refusals and reads included, leaves only when everything that its decision saw is
  committed. So nobody is ever told of a write that was lost afterwards.
- Nothing is rolled back. When an append fails or the leadership is gone, the machine is thrown
  away, everyone who waits gets the (retriable) reason, and whoever owns the host loads a new one.

How the log commits, and whether a deposed leader still thinks that it leads, is the log's part: a
read on a position that is known to be committed is answered without asking the log again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from suiro.model.error_base import SuiroError
from suiro.model.errors import InternalError, Overloaded, ShuttingDown, TimedOut, Unavailable
from suiro.model.limits import COMMIT_WAIT_MS_MAX, DECISIONS_WAITING_MAX

from cluster.host.machine import Decision, Machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

M = TypeVar("M", bound=Machine[Any])
R = TypeVar("R")
Encoded = TypeVar("Encoded", contravariant=True)  # noqa: PLC0105 - Encoded reads better


class ReplicatedLog(Protocol[Encoded]):
    """The log behind a machine. A position is where the next record goes, so it is half-open."""

    def append(self, records: Sequence[Encoded]) -> int:
        """Put them at the end, in order, now; return the position after them.

        They are one unit: a replay sees all of them or none. Raises NotController, NotCoordinator
        and the like when this node may not write; then none of them is in the log.
        """

    async def committed(self, position: int) -> int:
        """Wait until everything before `position` is durable and committed; return how far that is
        true by now (`position` or later). Raises when it can no longer become true or be known.
        """


@dataclass(frozen=True, slots=True)
class _Parked:
    """A reply and its effects, until the log is committed up to `position`."""

    position: int
    effects: tuple[Any, ...]
    waiter: asyncio.Future[None]


class _Term(Generic[M]):
    """One machine from its loading to its end; positions only grow, so what waits is a queue."""

    __slots__ = ("arrived", "committed", "ended", "machine", "parked", "written")

    def __init__(self, machine: M, position: int) -> None:
        self.machine = machine
        self.written = position
        self.committed = -1  # what was loaded may be uncommitted: the first reply finds out
        self.parked: deque[_Parked] = deque()
        self.arrived = asyncio.Event()
        self.ended: asyncio.Future[SuiroError] = asyncio.get_running_loop().create_future()


class MachineHost(Generic[M]):
    """One machine, many callers. `serve` runs as a task of the owner; the rest is for handlers.

    `encode` turns a record into what the log takes; `perform` starts one effect and may not block.
    An effect is lost if the node is: whoever loads the machine next has to start what its state
    shows open.
    """

    def __init__(
        self,
        log: ReplicatedLog[Any],
        encode: Callable[[Any], Any],
        perform: Callable[[Any], None],
        *,
        waiting_max: int = DECISIONS_WAITING_MAX,
        commit_wait_ms: float = COMMIT_WAIT_MS_MAX,
    ) -> None:
        self._log = log
        self._encode = encode
        self._perform = perform
        self._waiting_max = waiting_max
        self._commit_wait_ms = commit_wait_ms
        self._term: _Term[M] | None = None
        self._refusal: SuiroError = Unavailable("the state has not been loaded yet")

    async def serve(self, machine: M, position: int) -> SuiroError:
        """Serve `machine`, which has seen everything before `position`; return why it ended.

        Afterwards the machine may not be used: it may know of records that the log does not.
        """
        assert self._term is None, "a host serves one machine at a time"
        term = self._term = _Term(machine, position)
        try:
            async with asyncio.TaskGroup() as tasks:
                releasing = tasks.create_task(self._release(term), name="release committed")
                error = await term.ended
                releasing.cancel()
        finally:
            if self._term is term:
                self.stop(ShuttingDown("the node is stopping"))
        return error

    def stop(self, error: SuiroError) -> None:
        """End the serving, if any: all who wait get `error`, and so does who comes until `serve`
        is called again.
        """
        self._refusal = error
        term, self._term = self._term, None
        if term is None:
            return
        for parked in term.parked:
            if not parked.waiter.done():
                parked.waiter.set_exception(error)
        term.parked.clear()
        if not term.ended.done():  # it is, when `serve` itself was cancelled
            term.ended.set_result(error)

    async def decide(self, choose: Callable[[M], Decision[R]]) -> R:
        """Let the machine choose, carry it out, and return its reply once that is committed."""
        term = self._admitted()
        try:
            decision = choose(term.machine)
        except SuiroError:
            await self._settled(term, ())  # a refusal is a reply: it tells what the machine saw
            raise
        if decision.records:
            self._write(term, decision.records)
        await self._settled(term, decision.effects)
        return decision.reply

    async def read(self, look: Callable[[M], R]) -> R:
        """What `look` sees, once all that it may have seen is committed."""
        return await self.decide(lambda machine: Decision((), look(machine)))

    def _admitted(self) -> _Term[M]:
        if self._term is None:
            raise self._refusal.with_traceback(None)
        if len(self._term.parked) >= self._waiting_max:
            raise Overloaded(f"{self._waiting_max} requests are waiting for their commit already")
        return self._term

    def _write(self, term: _Term[M], records: tuple[Any, ...]) -> None:
        """Apply and append with nothing in between, or end the term: the machine is ahead then."""
        try:
            for record in records:
                term.machine.apply(record)
            position = self._log.append([self._encode(record) for record in records])
            assert position > term.written, "the log went back"
            term.written = position
        except SuiroError as error:
            self.stop(error)
            raise
        except Exception as error:
            self.stop(InternalError(f"a decision could not be carried out: {error!r}"))
            raise

    async def _settled(self, term: _Term[M], effects: tuple[Any, ...]) -> None:
        """Wait until all that is written by now is committed and the effects have been started."""
        if term.written <= term.committed:
            self._start(effects)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        term.parked.append(_Parked(term.written, effects, waiter))
        term.arrived.set()
        try:
            async with asyncio.timeout(self._commit_wait_ms / 1000):
                await waiter
        except TimeoutError:
            raise TimedOut(f"not committed within {self._commit_wait_ms:.0f} ms") from None

    async def _release(self, term: _Term[M]) -> None:
        """Hand out what is parked, in order; one wait on the log serves everyone it covers.

        The effects belong to the commit and not to its caller, who may have gone meanwhile.
        """
        while True:
            await term.arrived.wait()
            if term.ended.done():
                return
            try:
                term.committed = await self._log.committed(term.parked[0].position)
            except SuiroError as error:
                self.stop(error)
                return
            while term.parked and term.parked[0].position <= term.committed:
                parked = term.parked.popleft()
                self._start(parked.effects)
                if not parked.waiter.done():
                    parked.waiter.set_result(None)
            if not term.parked:
                term.arrived.clear()

    def _start(self, effects: tuple[Any, ...]) -> None:
        for effect in effects:
            self._perform(effect)
