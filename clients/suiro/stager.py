"""Where `send` puts records, from any thread, and where the client's loop gets them.

`send` appends to a chunk of its own thread and looks up once per chunk: then it reserves room for
the next one, which is where back-pressure is felt, and wakes the loop. No lock is taken and no
thread is crossed per record.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from threading import get_ident
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from suiro.handle import Outcomes, Sent
from suiro.model.errors import BatchTooLarge, BufferFull, ClientClosed, InvalidRequest
from suiro.staging import NS_PER_MS, Chunk, Extra
from suiro.wall_clock import wall_clock_ms, wall_clock_ns

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from suiro.connection import TopicInfo
    from suiro.model.error_base import SuiroError
    from suiro.placing import StagedRun
    from suiro.settings import ProducerSettings

    Headers = Sequence[tuple[str, bytes | None]]

CHUNK_BYTES: Final = 1 << 18
CHUNK_RECORDS_MAX: Final = 8_192
FIRST_CHUNK: Final = (64, 1 << 14)
"""Records and bytes, before anything is known of a topic's records."""


class Stager:
    """The buffer of one producer. `on_arrival` is called on the loop when there is something."""

    def __init__(
        self,
        settings: ProducerSettings,
        on_arrival: Callable[[], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.now_ms = now_ms
        is_real = now_ms is wall_clock_ms
        self._now_ns = wall_clock_ns if is_real else lambda: now_ms() * NS_PER_MS
        self._settings = settings
        self._on_arrival = on_arrival
        self._lock = threading.Lock()
        self._open: dict[str, Chunk] = {}
        self._by_thread: dict[tuple[str, int], Chunk] = {}
        self._queues: dict[str, deque[Chunk | StagedRun]] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._is_woken = False
        self._process_id = os.getpid()
        self.is_closed = False
        self.buffered = 0
        """Bytes of everything between `send` and its answer, and what is reserved."""
        self.wait_for_room: Callable[[], None] = self._refuse
        _living.add(self)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    # -- from any thread --------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Sent:
        """Stage one record. (Defaults of arguments that must be named cost a look-up each, so here
        they need not be.)
        """
        chunk = self._open.get(topic)
        if chunk is None or chunk.owner != get_ident():
            chunk = self._chunk_of_thread(topic)
        if type(value) is not bytes:
            value = _checked(value, "value")
        values = chunk.values
        place = len(values)
        if headers is not None or partition is not None or timestamp_ms is not None:
            chunk.extras[place] = Extra(_checked_headers(headers), partition, timestamp_ms)
        if key is None:
            chunk.times_ns.append(self._now_ns())
            values.append(value)
        else:
            if type(key) is not bytes:
                key = _checked(key, "key")
            chunk.has_keys = True
            chunk.times_ns.append(self._now_ns())
            values.append((value, key))
        if place >= chunk.last:
            self._look_up(topic, chunk, place)
        return Sent((chunk.outcomes, place))

    def put(self, topic: str, run: StagedRun) -> None:
        """Stage a whole run, behind what this thread has sent before."""
        chunk = self._by_thread.get((topic, get_ident()))
        if chunk is not None:
            self._leave(topic, chunk)
        self.check_usable()
        self._reserve(run.size)
        self._queue(topic).append(run)
        self._wake()

    def refuse(self, runs: Sequence[StagedRun], error: SuiroError) -> None:
        """Runs of which some were staged: these were not, as their handle will tell."""
        for run in runs:
            self._loop.call_soon_threadsafe(run.settle, -1, -1, error)

    def _chunk_of_thread(self, topic: str) -> Chunk:
        """This thread's chunk, made if need be."""
        thread = get_ident()
        chunk = self._by_thread.get((topic, thread))
        if chunk is None:
            self.check_usable()
            records, reserved = self._sizes.get(topic, FIRST_CHUNK)
            self._reserve(reserved)
            chunk = Chunk(thread, records, reserved, Outcomes(self._loop, topic))
            self._by_thread[topic, thread] = chunk
            self._queue(topic).append(chunk)
        self._open[topic] = chunk
        return chunk

    def _look_up(self, topic: str, chunk: Chunk, place: int) -> None:
        if place == 0 and chunk.limit > 1:
            chunk.begin()
            self._wake()
        else:
            self._leave(topic, chunk)

    def _leave(self, topic: str, chunk: Chunk) -> None:
        """The next record goes to another chunk."""
        self._by_thread.pop((topic, chunk.owner), None)
        if self._open.get(topic) is chunk:
            self._open.pop(topic, None)
        chunk.is_left = True
        self._wake()

    def _queue(self, topic: str) -> deque[Chunk | StagedRun]:
        return self._queues.setdefault(topic, deque())

    def outcomes(self, topic: str) -> Outcomes:
        """For records that come as a run."""
        return Outcomes(self._loop, topic)

    def check_usable(self) -> None:
        """Raise ClientClosed where nothing can be sent any more."""
        if self.is_closed:
            raise ClientClosed("the producer has been closed")
        if self._process_id != os.getpid():
            raise ClientClosed("the producer belongs to the parent process; make one after a fork")

    def _reserve(self, size: int) -> None:
        while True:
            with self._lock:
                if not self.buffered or self.buffered + size <= self._settings.buffer_memory:
                    self.buffered += size
                    return
            self.wait_for_room()
            self.check_usable()

    def _refuse(self) -> None:
        raise BufferFull(f"{self.buffered} bytes are waiting to be sent")

    def _wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._on_arrival)

    def close(self) -> None:
        """Nothing is taken any more."""
        self.is_closed = True
        self.leave_chunks()

    def leave_chunks(self) -> None:
        """The next `send` has to look whether it may."""
        self._open.clear()
        self._by_thread.clear()

    # -- on the loop ------------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """Where there may be something; wakes again for whatever comes from now on."""
        self._is_woken = False
        # A copy, made in one step: other threads add topics meanwhile.
        return [topic for topic, queue in list(self._queues.items()) if queue]

    def take(self, topic: str, runs_max: int) -> list[StagedRun]:
        """The next runs of a topic, in order. They count as buffered until `release`."""
        taken: list[StagedRun] = []  # runs_max -1: all of them
        queue = self._queues[topic]
        for item in list(queue):
            if len(taken) == runs_max:
                self._wake()
                break
            if not isinstance(item, Chunk):
                queue.remove(item)
                taken.append(item)
                continue
            is_left = item.is_left
            rows = item.take()
            if is_left:
                queue.remove(item)
            if rows is not None:
                self.release(item.reserved - rows.size)
                item.reserved = 0
                self._learn_size(topic, rows.size / len(rows))
                # Whoever has filled a chunk before the loop came for it is not done yet.
                rows.is_followed = len(rows) >= item.limit and rows.size >= CHUNK_BYTES // 2
                taken.append(rows)
        return taken

    def release(self, size: int) -> None:
        with self._lock:
            self.buffered -= size

    def has_any(self) -> bool:
        """Whether something is staged that the loop has not taken."""
        return any(
            not isinstance(item, Chunk) or len(item.values) > item.taken
            for queue in list(self._queues.values())
            for item in list(queue)
        )

    def _learn_size(self, topic: str, record_bytes: float) -> None:
        target = min(CHUNK_BYTES, self._settings.batch_size)
        records = max(1, min(CHUNK_RECORDS_MAX, int(target / record_bytes)))
        self._sizes[topic] = (records, int(records * record_bytes))


_living: WeakSet[Stager] = WeakSet()


def _after_fork() -> None:
    """In the child: nobody takes from the parent's chunks, so `send` must not add to them."""
    for stager in list(_living):
        stager.leave_chunks()


os.register_at_fork(after_in_child=_after_fork)


def _checked(item: object, name: str) -> bytes | None:
    if isinstance(item, bytes) or item is None:
        return item
    if isinstance(item, bytearray | memoryview):
        return bytes(item)
    raise InvalidRequest(f"{name} is {type(item).__name__}; it must be bytes or None")


def _checked_headers(headers: Headers | None) -> Headers | None:
    for name, value in headers or ():
        if not isinstance(name, str) or not isinstance(value, bytes | None):
            raise InvalidRequest("headers are pairs of a name (str) and a value (bytes or None)")
    return headers


def too_large(size: int, batch_size: int) -> BatchTooLarge:
    return BatchTooLarge(f"a record of {size} bytes, batch_size {batch_size}")


def no_partition(topic: TopicInfo, number: int) -> InvalidRequest:
    return InvalidRequest(
        f"{topic.name} has no partition {number}; it has {len(topic.partitions)}, numbered from 0"
    )
