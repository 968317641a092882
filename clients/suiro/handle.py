"""What `send` gives back: a light handle on a record that is on its way.

A handle is a pair: the outcomes of the chunk that its record was staged in, and the record's
place there. Nothing is done per record when a batch is stored; a handle looks its offset up when
somebody asks.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from suiro.model.error_base import SuiroError
from suiro.model.errors import TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray

    Places = range | NDArray[np.int64]


FEW_PIECES: Final = 4
"""So many are searched one by one: a line at rest has one record in each."""
NO_TABLE: Final = np.empty((0, 2), np.int32)


class RecordMetadata(NamedTuple):
    """Where a record was stored; the offset is -1 with acks=0, as nobody knows.

    >>> stored = producer.send("orders", b"two apples", partition=0).result(10)
    >>> stored.partition, stored.offset
    (0, 0)
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Piece(NamedTuple):
    """Records of one chunk that went to one partition in one batch, and how that ended."""

    places: Places
    """Their places in the chunk, rising."""
    partition: int
    timestamps_ms: NDArray[np.int64]
    base_offset: int
    error: SuiroError | None


class Outcomes:
    """What became of the records of one chunk. Changes only on the client's loop."""

    __slots__ = (
        "_after", "_callbacks", "_loop", "_pieces", "_table", "_tabled", "_topic", "settled"
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, topic: str) -> None:
        self._loop = loop
        self._topic = topic
        self._pieces: list[Piece] = []
        self._callbacks: dict[int, list[Callable[[], None]]] = {}
        self._after: list[tuple[int, Callable[[], None]]] = []
        self._table = NO_TABLE
        self._tabled = 0
        self.settled = 0

    def settle(self, piece: Piece) -> None:
        """The producer's part: say how some of the records ended."""
        self._pieces.append(piece)
        self.settled += len(piece.places)
        if self._callbacks:
            for place in piece.places:
                for callback in self._callbacks.pop(int(place), ()):
                    callback()
        self._call_those_after()

    def find(self, place: int) -> RecordMetadata | SuiroError | None:
        """The outcome of one record; None while it is on its way."""
        found = self._search(place)
        if found is None:
            return None
        piece, position = found
        if piece.error is not None:
            return piece.error
        offset = piece.base_offset + position if piece.base_offset >= 0 else -1
        timestamp_ms = int(piece.timestamps_ms[position])
        return RecordMetadata(self._topic, piece.partition, offset, timestamp_ms)

    def _search(self, place: int) -> tuple[Piece, int] | None:
        """The piece of a record, and where in it; a table of all is made where there are many."""
        pieces = self._pieces
        if len(pieces) <= FEW_PIECES:
            for piece in pieces:
                if not isinstance(piece.places, range):
                    break
                if place in piece.places:
                    return piece, piece.places.index(place)
            else:
                return None
        if self._tabled < len(pieces):
            self._tabulate(len(pieces))
        if place >= len(self._table) or self._table[place, 0] < 0:
            return None
        number, position = map(int, self._table[place])
        return pieces[number], position

    def call(self, place: int, callback: Callable[[], None]) -> None:
        """Call it on the client's loop once the record's outcome is known."""
        self._loop.call_soon_threadsafe(self._register, place, callback)

    def call_after(self, count: int, callback: Callable[[], None]) -> None:
        """Call it on the client's loop once so many outcomes are known."""
        self._loop.call_soon_threadsafe(self._register_after, count, callback)

    def raise_error(self) -> None:
        """Raise the first thing that went wrong, if anything did."""
        for piece in self._pieces:
            if piece.error is not None:
                raise piece.error

    def _register_after(self, count: int, callback: Callable[[], None]) -> None:
        self._after.append((count, callback))
        self._call_those_after()

    def _call_those_after(self) -> None:
        for waiting in [waiting for waiting in self._after if waiting[0] <= self.settled]:
            self._after.remove(waiting)
            waiting[1]()

    def _register(self, place: int, callback: Callable[[], None]) -> None:
        if self.find(place) is None:
            self._callbacks.setdefault(place, []).append(callback)
        else:
            callback()

    def _tabulate(self, count: int) -> None:
        """Which piece each record is in, and where in it: made when first asked for."""
        pieces = self._pieces[:count]
        size = max(int(piece.places[-1]) + 1 for piece in pieces)
        table = np.full((size, 2), -1, np.int32)
        for number, piece in enumerate(pieces):
            places = piece.places
            where: Any = places
            if isinstance(places, range):
                where = slice(places.start, places.stop, places.step)
            table[where, 0] = number
            table[where, 1] = np.arange(len(places))
        self._table, self._tabled = table, count


class Sent(tuple[Outcomes, int]):
    """One record on its way.

    `await handle` (asyncio) or `handle.result()` (elsewhere) gives the RecordMetadata, or raises
    what went wrong.

    >>> handle = producer.send("orders", b"two apples", key=b"customer-1")
    >>> handle.result(timeout_s=10).topic
    'orders'
    """

    # A tuple, since one is made for every record, and no object of a class costs less to make.
    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Sent {self._find() or 'and not answered yet'}>"

    def _find(self) -> RecordMetadata | SuiroError | None:
        outcomes, place = self
        return outcomes.find(place)

    def done(self) -> bool:
        """Whether the record was stored or has failed.

        >>> handle = producer.send("orders", b"value")
        >>> producer.flush()
        >>> handle.done()
        True
        """
        return self._find() is not None

    def succeeded(self) -> bool:
        """Whether the record is known to be stored.

        >>> handle = producer.send("orders", b"value")
        >>> producer.flush()
        >>> handle.succeeded()
        True
        """
        return isinstance(self._find(), RecordMetadata)

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait, and return where the record is; not for use on the client's own loop.

        >>> producer.send("orders", b"value", partition=0).result(10).partition
        0
        """
        outcome = self._find()
        if outcome is None:
            waiter: concurrent.futures.Future[None] = concurrent.futures.Future()
            outcomes, place = self
            outcomes.call(place, lambda: waiter.set_result(None))
            try:
                waiter.result(timeout_s)
            except concurrent.futures.TimeoutError:
                raise TimedOut(f"not delivered within {timeout_s} s; it still may be") from None
            outcome = self._find()
        return _value(outcome)

    def add_callback(self, callback: Callable[[Sent], None]) -> None:
        """Call `callback(handle)` once it is done, on the client's loop: keep it short.

        >>> producer.send("orders", b"value").add_callback(lambda sent: None)
        """
        outcomes, place = self
        outcomes.call(place, lambda: callback(self))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        outcome = self._find()
        if outcome is None:
            waiter, wake = _waiter()
            outcomes, place = self
            outcomes.call(place, wake)
            yield from waiter.__await__()
            outcome = self._find()
        return _value(outcome)


class SentMany:
    """Many records on their way, as `send_many` and `send_arrow` give it back.

    `await handle` or `handle.result()` gives the RecordMetadata of each, in their order; `wait`
    only waits, which costs nothing per record. Both raise the first thing that went wrong.

    >>> sent = producer.send_many("orders", [b"one", b"two", b"three"])
    >>> len(sent.result(10))
    3
    """

    __slots__ = ("_count", "_outcomes")

    def __init__(self, outcomes: Outcomes, count: int) -> None:
        self._outcomes = outcomes
        self._count = count

    def __len__(self) -> int:
        return self._count

    def done(self) -> bool:
        """Whether every record was stored or has failed.

        >>> sent = producer.send_many("orders", [b"one", b"two"])
        >>> sent.wait(10)
        >>> sent.done()
        True
        """
        return self._outcomes.settled >= self._count

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until every record is stored; not for use on the client's own loop.

        >>> producer.send_many("orders", [b"one", b"two"]).wait(10)
        """
        if not self.done():
            waiter: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._outcomes.call_after(self._count, lambda: waiter.set_result(None))
            try:
                waiter.result(timeout_s)
            except concurrent.futures.TimeoutError:
                raise TimedOut(f"not delivered within {timeout_s} s; they still may be") from None
        self._outcomes.raise_error()

    def result(self, timeout_s: float | None = None) -> list[RecordMetadata]:
        """Wait, and return where each record is, in the order in which they were given.

        >>> producer.send_many("orders", [b"one", b"two"], partition=0).result(10)[1].partition
        0
        """
        self.wait(timeout_s)
        return self._all()

    def __await__(self) -> Generator[Any, None, list[RecordMetadata]]:
        if not self.done():
            waiter, wake = _waiter()
            self._outcomes.call_after(self._count, wake)
            yield from waiter.__await__()
        self._outcomes.raise_error()
        return self._all()

    def _all(self) -> list[RecordMetadata]:
        return [_value(self._outcomes.find(place)) for place in range(self._count)]


def _value(outcome: RecordMetadata | SuiroError | None) -> RecordMetadata:
    assert outcome is not None
    if isinstance(outcome, SuiroError):
        raise outcome
    return outcome


def _waiter() -> tuple[asyncio.Future[None], Callable[[], None]]:
    """Something to await on this loop, and what ends the wait from any thread."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def finish() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def wake() -> None:
        loop.call_soon_threadsafe(finish)

    return waiter, wake
