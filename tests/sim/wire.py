"""What one rpc of the simulated network is made of: two wires, two ends, and how it can break.

A `Link` is one direction between two nodes, with its delay and its faults. A `Wire` is one
direction of one rpc on it: reliable and in order, as gRPC is, so a lost message costs the rpc.
While the link is cut a wire holds what it carries, as TCP does, and goes on if the cut heals in
time. Endings travel on the wire like messages do. An `End` is what a client or a handler holds: a
`Stream` with a bounded window.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from suiro.model.error_registry import error_from_wire
from suiro.model.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from suiro.model.error_base import SuiroError
    from suiro.transport.api import Codec

NOBODYS: Final = Context()
"""What is under way belongs to no machine: it arrives also while its sender is paused."""

OPEN: Final = object()
"""The headers of a stream: they start the handler before any message has come."""

DROPPED: Final = object()
"""This side has gone away in the middle."""


class Ending:
    """Not a message, but the last that comes from a side."""

    __slots__ = ()


FINISHED: Final = Ending()
"""The client will send no more; the handler goes on."""

CLOSED: Final = Ending()
"""The handler has returned: the rpc is over."""


@dataclass(frozen=True, slots=True)
class Failed(Ending):
    """The handler's error, as it travels."""

    code: int
    message: str
    hints: Mapping[str, str]

    @classmethod
    def of(cls, error: SuiroError) -> Failed:
        hints = {name: str(value) for name, value in error.hints.items()}
        return cls(int(error.code), error.message, hints)


@dataclass(frozen=True, slots=True)
class Last(Ending):
    """The one reply of a unary call."""

    message: Any


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a link behaves. `loss` is the chance of a message to be lost, with the rpc it belongs to;
    `duplicate` the chance of a unary request to come again, up to `duplicate_s_max` later.
    """

    delay_s_min: float = 0.000_2
    delay_s_max: float = 0.002
    loss: float = 0.0
    duplicate: float = 0.0
    duplicate_s_max: float = 180.0


class Link:
    """One direction between two nodes."""

    __slots__ = ("_held", "_rng", "conditions", "cut_at_s", "refuses")

    def __init__(self, rng: Random, conditions: Conditions) -> None:
        self._rng = rng
        self.conditions = conditions
        self.cut_at_s: float | None = None
        self.refuses = False
        self._held: dict[Wire, None] = {}

    def delay_s(self) -> float:
        low_s = self.conditions.delay_s_min
        return low_s + (self.conditions.delay_s_max - low_s) * self._rng.random()

    def loses(self) -> bool:
        return self.conditions.loss > 0 and self._rng.random() < self.conditions.loss

    def hold(self, wire: Wire) -> None:
        self._held[wire] = None

    def cut(self, at_s: float, *, refuse: bool) -> None:
        self.refuses = refuse
        if self.cut_at_s is None:
            self.cut_at_s = at_s

    def heal(self) -> None:
        """What was held goes on its way, a delay later than it would have."""
        self.cut_at_s = None
        held, self._held = self._held, {}
        for wire in held:
            wire.resume()


class Wire:
    """One direction of one rpc. `arrive` gets each item in order; `lost` is told of the first loss,
    after which nothing arrives any more.
    """

    __slots__ = ("_arrive", "_closed", "_due_s", "_held", "_link", "_loop", "_lost", "_queue")

    def __init__(self, link: Link, arrive: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._link = link
        self._arrive = arrive
        self._lost = lost
        self._queue: deque[Any] = deque()
        self._due_s = 0.0
        self._held = 0
        self._closed = False

    def put(self, item: Any) -> None:
        """Send an item; after `close` it goes nowhere."""
        if self._closed:
            return
        if self._link.loses():
            self.close()
            self._lost()
            return
        self._queue.append(item)
        self._schedule()

    def resume(self) -> None:
        held, self._held = self._held, 0
        for _ in range(held):
            self._schedule()

    def close(self) -> None:
        self._closed = True
        self._queue.clear()

    def _schedule(self) -> None:
        """A late item holds back those behind it, and they arrive together, as with TCP.

        Arrivals are counted, not tied to an item, so equal times cannot change the order.
        """
        self._due_s = max(self._due_s, self._loop.time() + self._link.delay_s())
        self._loop.call_at(self._due_s, self._on_due, context=NOBODYS)

    def _on_due(self) -> None:
        if self._closed:
            return
        if self._link.cut_at_s is not None:
            self._held += 1
            self._link.hold(self)
            return
        self._arrive(self._queue.popleft())


class End:
    """One end of an rpc: a `Stream`. At most `window` of its messages are unread by the other side;
    `send` waits until there is room. With codecs, messages are really encoded and decoded.
    """

    __slots__ = (
        "_closed", "_dropped", "_failure", "_finished", "_inbox", "_out", "_peer_finished",
        "_reader", "_receive_codec", "_send_codec", "_unread", "_window", "_writer", "other",
    )  # fmt: skip

    def __init__(
        self,
        out: Wire,
        window: int,
        dropped: Callable[[], None],
        send_codec: Codec[Any] | None,
        receive_codec: Codec[Any] | None,
    ) -> None:
        self._out = out
        self._window = window
        self._send_codec = send_codec
        self._receive_codec = receive_codec
        self._inbox: deque[Any] = deque()
        self._unread = 0
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._failure: SuiroError | None = None
        self._finished = False
        self._peer_finished = False
        self._closed = False
        self._dropped = dropped
        self.other: End | None = None

    async def send(self, message: Any) -> None:
        assert not self._finished, "a finished stream sends nothing"
        self._check_writable()
        while self._unread >= self._window:
            assert self._writer is None, "one task sends at a time"
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await self._writer
            finally:
                self._writer = None
            self._check_writable()
        self.push(message)

    def push(self, message: Any) -> None:
        """Send without asking for room."""
        self._unread += 1
        self._out.put(self.encoded(message))

    async def receive(self) -> Any | None:
        while not self._inbox:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._peer_finished:
                return None
            assert self._reader is None, "one task receives at a time"
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        item = self._inbox.popleft()
        if self.other is not None:
            self.other.on_read()
        return item if self._receive_codec is None else self._receive_codec.decode(item)

    async def finish(self) -> None:
        if not self._finished:
            self._finished = True
            self._out.put(FINISHED)

    def cancel(self) -> None:
        """Drop the rpc; the other side is told by a message, if one gets through."""
        if self._failure is None:
            self._out.put(DROPPED)
            self._dropped()

    def encoded(self, message: Any) -> Any:
        return message if self._send_codec is None else self._send_codec.encode(message)

    def on_item(self, item: Any) -> None:
        """Something arrived."""
        if isinstance(item, Ending):
            self._on_ending(item)
        else:
            self._inbox.append(item)
        _set(self._reader)

    def _on_ending(self, ending: Ending) -> None:
        self._peer_finished = True
        self._closed = ending is not FINISHED
        if isinstance(ending, Failed):
            self._failure = error_from_wire(ending.code, ending.message, ending.hints)
        elif isinstance(ending, Last):
            self._inbox.append(ending.message)
        _set(self._writer)

    def on_read(self) -> None:
        """The other side has read one message: there is room for one more."""
        self._unread -= 1
        _set(self._writer)

    def fail(self, error: SuiroError, *, unread_lost: bool) -> None:
        """The rpc is over for this end; what was not read yet may be lost with it."""
        if self._failure is None:
            self._failure = error
            if unread_lost:
                self._inbox.clear()
        _set(self._reader)
        _set(self._writer)

    def _check_writable(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if self._closed:
            raise Unavailable("the other side has ended the stream")


def _set(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
