"""A thread that runs an event loop, so that ordinary code can use the asyncio clients.

All such clients of a process share one loop, and a thread that runs it while there is any. The loop
itself is never closed: gRPC's poller serves every loop of a process, and an event that arrives for
a closed one makes it drop events that belong to others.
"""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from suiro.model.errors import ClientClosed

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


@dataclass(slots=True)
class _Shared:
    """The loop of this process, and the thread that runs it for `users` clients."""

    process_id: int
    loop: asyncio.AbstractEventLoop
    thread: threading.Thread | None = None
    users: int = 0


_lock = threading.Lock()
_shared: _Shared | None = None


class LoopThread:
    """One client's hold on the shared loop: `run` hands it work and waits; `close` lets go."""

    def __init__(self) -> None:
        self._shared = _acquire()
        self._is_open = True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns or raises."""
        try:
            self.check_open()
        except ClientClosed:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._shared.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def check_open(self) -> None:
        """Raise ClientClosed if the client cannot be used, or not in this process."""
        if not self._is_open or self._shared.process_id != os.getpid():
            raise ClientClosed("the client has been closed, or belongs to the parent process")

    @property
    def is_open(self) -> bool:
        return self._is_open

    def close(self) -> None:
        """Let go; the last client to do so waits until the thread has ended."""
        if self._is_open and self._shared.process_id == os.getpid():
            _release(self._shared)
        self._is_open = False


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one: gRPC runs on it about a third faster."""
    try:
        import uvloop
    except ImportError:  # not on this platform
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _acquire() -> _Shared:
    global _shared  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _shared is None or _shared.process_id != os.getpid():
            _shared = _Shared(os.getpid(), new_loop())
        _shared.users += 1
        if _shared.thread is None:
            run = _shared.loop.run_forever
            _shared.thread = threading.Thread(target=run, name="suiro-clients", daemon=True)
            _shared.thread.start()
        return _shared


def _release(shared: _Shared) -> None:
    with _lock:
        shared.users -= 1
        if shared.users or shared.thread is None:
            return
        shared.loop.call_soon_threadsafe(shared.loop.stop)
        shared.thread.join()
        shared.thread = None
