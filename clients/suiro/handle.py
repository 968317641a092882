"""What `send` gives back: a light handle on a record that is on its way."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import TYPE_CHECKING, Any, NamedTuple

from suiro.model.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from suiro.model.error_base import SuiroError


class RecordMetadata(NamedTuple):
    """Where a record was stored; the offset is -1 with acks=0, as nobody knows."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Sent:
    """One record on its way.

    `await handle` (asyncio) or `handle.result()` (elsewhere) gives the RecordMetadata, or raises
    what went wrong. Its state changes only on the client's loop, so nothing here needs a lock.
    """

    __slots__ = ("_callbacks", "_loop", "_outcome")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._outcome: RecordMetadata | SuiroError | None = None
        self._callbacks: list[Callable[[Sent], None]] | None = None

    def done(self) -> bool:
        """Whether the record was stored or has failed."""
        return self._outcome is not None

    def succeeded(self) -> bool:
        """Whether the record is known to be stored."""
        return isinstance(self._outcome, RecordMetadata)

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait, and return where the record is; not for use on the client's own loop."""
        if self._outcome is None:
            waiter: concurrent.futures.Future[None] = concurrent.futures.Future()
            self.add_done_callback(lambda _: waiter.set_result(None))
            try:
                waiter.result(timeout_s)
            except concurrent.futures.TimeoutError:
                raise TimedOut(f"not delivered within {timeout_s} s; it still may be") from None
        return self._value()

    def add_done_callback(self, callback: Callable[[Sent], None]) -> None:
        """Call `callback(handle)` once it is done, on the client's loop."""
        self._loop.call_soon_threadsafe(self._register, callback)

    def settle(self, outcome: RecordMetadata | SuiroError) -> None:
        """The producer's part: say what became of the record; on the client's loop."""
        assert self._outcome is None, "a record is settled once"
        self._outcome = outcome
        if self._callbacks is not None:
            callbacks, self._callbacks = self._callbacks, None
            for callback in callbacks:
                callback(self)

    def _register(self, callback: Callable[[Sent], None]) -> None:
        if self._outcome is not None:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def _value(self) -> RecordMetadata:
        assert self._outcome is not None
        if isinstance(self._outcome, RecordMetadata):
            return self._outcome
        raise self._outcome

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if self._outcome is None:
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()

            def wake() -> None:
                if not waiter.done():
                    waiter.set_result(None)

            self.add_done_callback(lambda _: _call_on(loop, wake))
            yield from waiter.__await__()
        return self._value()


def _call_on(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(wake)
