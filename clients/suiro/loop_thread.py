"""A thread that runs an event loop, so that ordinary code can use the asyncio clients."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from suiro.model.errors import ClientClosed

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class LoopThread:
    """Starts at once; `run` hands it work and waits; `close` ends it."""

    def __init__(self, name: str) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns or raises."""
        if not self._thread.is_alive():
            work.close()
            raise ClientClosed("the client has been closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where there is one: gRPC runs on it about a third faster."""
    try:
        import uvloop
    except ImportError:  # not on this platform
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
