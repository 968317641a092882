"""An asyncio loop whose time is virtual: whoever waits, waits no real time at all.

When nothing is ready, the clock jumps to the next timer. When there is no timer either, everybody
waits for somebody else: that is a deadlock, and it is raised with the list of who waits where.
Nothing real gets in: no sockets, no threads, no signals. The same program gives the same order of
events in every process, because tasks hash by their number: a TaskGroup keeps its tasks in a set
and cancels them in its order, which would otherwise be that of their addresses.

(`asyncio.as_completed`, and a loop over the sets that `asyncio.wait` returns for bare futures,
would still depend on addresses: the product uses neither.)
"""

from __future__ import annotations

import asyncio
import selectors
from contextvars import ContextVar, copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from random import Random
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine, Mapping
    from contextvars import Context

T = TypeVar("T")

START_S: Final = 1000.0
"""Where the loop's clock starts. Small, so that microseconds stay exact for years."""

EPOCH_MS: Final = 1_800_000_000_000
"""What the wall clocks show at that moment."""

RUN_S_MAX: Final = 24 * 3600.0


MACHINE: ContextVar[str] = ContextVar("machine", default="")
"""On which machine a callback runs; "" is nobody's, such as the network's, and is never paused."""


def on_machine(name: str) -> Context:
    """The context for everything that is to stand still while `name` is paused."""
    context = copy_context()
    context.run(MACHINE.set, name)
    return context


class Deadlock(AssertionError):
    """Every task waits, and no timer will ever wake one."""


class VirtualTimeOver(AssertionError):
    """The run took more virtual time than it was given: something goes round in circles."""


class SimTask(asyncio.Task[Any]):
    """A task that hashes by its number in its loop, not by its address."""

    __slots__ = ("number",)

    def __init__(self, loop: VirtualLoop, coroutine: Any, context: Context | None = None) -> None:
        self.number = loop.number_task()  # first: asyncio puts the task into a set
        super().__init__(coroutine, loop=loop, name="unnamed", context=context)

    def __hash__(self) -> int:
        return self.number


class SimHandle:
    """A callback that is to run: what asyncio's own has, without what only real loops need."""

    __slots__ = ("args", "callback", "context", "is_cancelled")

    def __init__(self, callback: Any, args: tuple[Any, ...], context: Context | None) -> None:
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.callback = self.args = None  # type: ignore[assignment] # whatever they hold is free

    def cancelled(self) -> bool:
        return self.is_cancelled


class SimTimer(SimHandle):
    """One that runs at some time."""

    __slots__ = ("_loop", "_when_s", "is_waiting")

    def __init__(
        self,
        when_s: float,
        loop: VirtualLoop,
        callback: Any,
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.is_cancelled = False
        self._when_s = when_s
        self._loop = loop
        self.is_waiting = True

    def cancel(self) -> None:
        if not self.is_cancelled:
            super().cancel()
            if self.is_waiting:
                self._loop.on_timer_cancelled()

    def when(self) -> float:
        return self._when_s


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop. `end_s` is the virtual time at which a run is given up.

    It has its own heart, `_run_once`: there is nothing to select, timers that are due together
    fire in the order in which they were set, and it is several times as fast. An exception in a
    callback ends the run, where asyncio would log it and go on.
    """

    _ready: deque[SimHandle]
    _stopping: bool

    def __init__(self, *, run_s_max: float = RUN_S_MAX) -> None:
        self._now_s = START_S
        self.end_s = START_S + run_s_max
        self.complaints: list[str] = []
        self._timers: list[tuple[float, int, SimTimer]] = []
        self._timers_made = 0
        self._timers_cancelled = 0
        self._tasks_made = 0
        self._paused: dict[str, list[SimHandle]] = {}
        super().__init__(_NoSelector())
        self.set_task_factory(SimTask)  # type: ignore[arg-type]
        # Called for every future; this way no Python runs for it.
        self.create_future = partial(asyncio.Future, loop=self)  # type: ignore[method-assign]
        self.get_debug = bool  # type: ignore[method-assign] # its answer is False

    def stand_still(self, seconds: float) -> None:
        """As a process that is stopped: time goes on, and nobody runs."""
        self._now_s += seconds

    def time(self) -> float:
        return self._now_s

    def number_task(self) -> int:
        self._tasks_made += 1
        return self._tasks_made

    def open_tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that have not ended, in the order in which they were made."""
        return sorted((t for t in asyncio.all_tasks(self) if not t.done()), key=hash)

    def describe_tasks(self) -> str:
        return "\n".join(
            f"  #{hash(task)} {task.get_name()}: {_where(task)}" for task in self.open_tasks()
        )

    def pause(self, machine: str) -> None:
        """As by SIGSTOP: nothing of it runs, and its timers are late."""
        self._paused.setdefault(machine, [])

    def resume(self, machine: str) -> None:
        self._ready.extend(self._paused.pop(machine, ()))

    # The typing of *args in asyncio cannot be repeated in 3.11; hence the three ignores.

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        handle = SimHandle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        timer = SimTimer(when, self, callback, args, context)
        self._timers_made += 1
        heappush(self._timers, (when, self._timers_made, timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """asyncio's complaints, such as a failure that nobody saw, fail the run at its end."""
        self.complaints.append(f"{context.get('message')}: {context.get('exception')!r}")

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        """What offloaded work calls: here it is done inline, in the loop's own thread."""
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("there are no threads in the simulator: use the Offload handed in")

    def _run_once(self) -> None:
        """Run what is ready; if nothing is, let the time of the next timer come first. Until the
        loop is stopped: asyncio would ask after each round.
        """
        ready, timers, paused = self._ready, self._timers, self._paused
        while not self._stopping:
            if not ready:
                self._pass_time()
            while timers and timers[0][0] <= self._now_s:
                timer = heappop(timers)[2]
                timer.is_waiting = False
                if timer.is_cancelled:
                    self._timers_cancelled -= 1
                else:
                    ready.append(timer)
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle.is_cancelled or (paused and self._holds(handle)):
                    continue
                handle.context.run(handle.callback, *handle.args)

    def _holds(self, handle: SimHandle) -> bool:
        held = self._paused.get(handle.context.get(MACHINE, ""))
        if held is not None:
            held.append(handle)
        return held is not None

    def _pass_time(self) -> None:
        timers = self._timers
        while timers and timers[0][2].is_cancelled:
            heappop(timers)[2].is_waiting = False
            self._timers_cancelled -= 1
        if not timers:
            raise Deadlock("everybody waits and no timer is set:\n" + self.describe_tasks())
        self._now_s = max(self._now_s, timers[0][0])
        if self._now_s > self.end_s:
            raise VirtualTimeOver(f"not done at {self._now_s} s:\n" + self.describe_tasks())

    def on_timer_cancelled(self) -> None:
        """Most timers are deadlines that are cancelled: do not keep them until they are due."""
        self._timers_cancelled += 1
        if self._timers_cancelled > 100 + len(self._timers) // 2:
            self._timers[:] = [entry for entry in self._timers if not entry[2].is_cancelled]
            heapify(self._timers)
            self._timers_cancelled = 0

    def _make_self_pipe(self) -> None:
        """No thread will ever wake this loop."""

    def _close_self_pipe(self) -> None:
        """See above."""


class LoopClock:
    """A node's clocks on virtual time. Its wall clock can be wrong, and made to jump."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, wall_skew_ms: int = 0) -> None:
        self._loop = loop
        self.wall_skew_ms = wall_skew_ms

    def now_ms(self) -> int:
        elapsed_ms = int((self._loop.time() - START_S) * 1000)
        return EPOCH_MS + elapsed_ms + self.wall_skew_ms

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000


class InlineOffload:
    """Blocking work done inline, at the beginning or at the end of a delay drawn from `rng`.

    So a cancelled caller may or may not have had its work done, as with real threads and a crash.
    """

    def __init__(self, rng: Random, *, delay_s_max: float = 0.001) -> None:
        self._rng = rng
        self.delay_s_max = delay_s_max

    async def run(self, work: Callable[[], T]) -> T:
        chance = self._rng.random()
        delay_s = abs(2 * chance - 1) * self.delay_s_max
        if chance < 0.5:
            await asyncio.sleep(delay_s)
            return work()
        try:
            return work()
        finally:
            await asyncio.sleep(delay_s)


def run(
    main: Callable[[Random], Coroutine[Any, Any, T]], *, seed: int, run_s_max: float = RUN_S_MAX
) -> T:
    """Run `main` on a loop of its own with the one Random that everything draws from.

    A task that is still there when `main` has returned was forgotten by somebody: that is raised.
    """
    loop = VirtualLoop(run_s_max=run_s_max)
    try:
        result = loop.run_until_complete(main(Random(seed)))
        forgotten = loop.describe_tasks()
        assert not forgotten, f"tasks were left behind:\n{forgotten}"
        assert not loop.complaints, "\n".join(loop.complaints)
        return result
    finally:
        _close(loop)


def _close(loop: VirtualLoop) -> None:
    """Cancel what is left, let it end, close."""
    left = loop.open_tasks()
    for task in left:
        task.cancel()
    if left:
        loop.end_s = loop.time() + RUN_S_MAX
        loop.run_until_complete(asyncio.wait(left))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _where(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    if not frames:
        return "not begun"
    frame = frames[-1]
    return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})"


class _NoSelector(selectors.BaseSelector):
    """Watches no file, and is never asked to wait."""

    def register(self, fileobj: object, events: int, data: object = None) -> NoReturn:
        raise AssertionError("there are no sockets in the simulator")

    def unregister(self, fileobj: object) -> NoReturn:
        raise KeyError(fileobj)

    def select(self, timeout: float | None = None) -> NoReturn:
        raise AssertionError("the virtual loop passes the time itself")

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}
