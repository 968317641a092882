"""Keeps a buffer full for every partition that is being read, wherever its leader is.

The network side runs in the loop; `take` and `take_columns` may be called from another thread, so
that a poll of ordinary code crosses no thread. What both touch, the partitions and their buffers,
is under one lock that is held for moments.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro.aio.fetch_line import FetchLine
from suiro.aio.offsets import Bound, find_offset
from suiro.aio.tasks import TaskScope
from suiro.fetch_buffer import FetchBuffer
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest, NoPosition, OffsetOutOfRange
from suiro.model.limits import FETCH_CHUNK_BYTES
from suiro.nearest import nearest_replica
from suiro.polled import Polled
from suiro.retry import Backoff
from suiro.transport.wire_errors import error_from_proto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from suiro._proto.common_pb2 import Isolation
    from suiro.connection import Connection
    from suiro.model.ids import Address, NodeId, TopicPartition
    from suiro.polled import ColumnRun
    from suiro.settings import ConsumerSettings
    from suiro.transport.framing import Framed

log = logging.getLogger("suiro.client")

CREDIT_BYTES_MIN: Final = FETCH_CHUNK_BYTES // 64
"""Less is not worth a message: it waits for more. Every partition has at least twice as much, so
the broker can always go on.
"""
SEARCH_S_MAX: Final = 0.25
"""Between two searches for a leader: what a consumer may lose after there is one."""
STAY_NEAR_S: Final = 5.0
LEADER_S: Final = 15.0


@dataclass(slots=True, eq=False)
class _Reading:
    """One partition: its buffer, and the slot under which it is being fetched."""

    partition: TopicPartition
    backoff: Backoff
    """Of the search for its leader."""
    buffer: FetchBuffer | None = None
    slot: int = -1
    line: FetchLine | None = None
    is_paused: bool = False
    high_watermark: int = -1
    last_stable_offset: int = -1
    is_near: bool = False
    """Whether it is read from a follower, because that is nearer than the leader."""
    leader_until_s: float = 0.0
    """A follower could not serve it: until then it is read from the leader."""
    was_searched: bool = False
    """Whether its leader was looked for since it was last heard of."""


class Fetcher:
    """For one consumer. `on_arrival` is called in the loop when there is something to take."""

    def __init__(
        self,
        connection: Connection,
        settings: ConsumerSettings,
        isolation: Isolation,
        on_arrival: Callable[[], None],
    ) -> None:
        self.connection = connection
        self.on_arrival = on_arrival
        self._settings = settings
        self._isolation = isolation
        self._reading: dict[TopicPartition, _Reading] = {}
        self._slots: dict[int, _Reading] = {}
        self._slot_numbers = itertools.count(1)
        self._lines: dict[Address, FetchLine] = {}
        self._resets: set[TopicPartition] = set()
        self._failure: SuiroError | None = None
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._scope = TaskScope("fetcher")
        if settings.client_rack:
            self._scope.start(self.stay_near(), "stay near")

    async def close(self) -> None:
        await self._scope.close()

    # -- what to read (in the loop) ---------------------------------------------------------------

    def partitions(self) -> list[TopicPartition]:
        return list(self._reading)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these too; each needs a `seek` or `locate` before anything comes."""
        with self._lock:
            for partition in partitions:
                backoff = Backoff(self.connection.rng, most_s=SEARCH_S_MAX)
                self._reading.setdefault(partition, _Reading(partition, backoff))

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no more; what was buffered of them is gone."""
        for partition in partitions:
            reading = self._reading.get(partition)
            if reading is not None:
                self._forget(reading)
                self._resets.discard(partition)
                with self._lock:
                    del self._reading[partition]

    def seek(
        self,
        partition: TopicPartition,
        offset: int,
        last_epoch: int = -1,
        *,
        is_reset: bool = True,
    ) -> None:
        """Go on at this offset; `last_epoch` is that of the record before it, if it is known.

        After a reset, by the application's own wish, a lower offset than before may be committed.
        """
        if offset < 0:
            raise InvalidRequest(f"offset {offset} is negative")
        self._begin(self._known(partition), offset, last_epoch)
        if is_reset:
            self._resets.add(partition)

    def take_resets(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Which of these were reset since they were last taken: for whoever commits them."""
        taken = self._resets.intersection(partitions)
        self._resets -= taken
        return taken

    def put_back_resets(self, partitions: Iterable[TopicPartition]) -> None:
        """They could not be committed."""
        self._resets.update(partition for partition in partitions if partition in self._reading)

    def pause(self, partition: TopicPartition, *, paused: bool) -> None:
        self._known(partition).is_paused = paused
        self.on_arrival()

    def is_paused(self, partition: TopicPartition) -> bool:
        return self._known(partition).is_paused

    def position(self, partition: TopicPartition) -> tuple[int, int]:
        """The offset of the next record to be taken, and the epoch of the one before it."""
        buffer = self._known(partition).buffer
        if buffer is None:
            raise NoPosition(f"{partition} has no position yet")
        return buffer.position, buffer.last_epoch

    def end(self, partition: TopicPartition) -> int:
        """Where the readable part of the log ended when the broker last told; -1: never yet."""
        reading = self._known(partition)
        is_committed = self._settings.isolation == "read_committed"
        return reading.last_stable_offset if is_committed else reading.high_watermark

    async def locate(self, partitions: Iterable[TopicPartition]) -> None:
        """Find out where to begin in those that have no position."""
        await asyncio.gather(*(self._locate(self._known(p)) for p in partitions))

    async def offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        """The earliest or latest offset, or the first one at or after a timestamp (ms)."""
        return await find_offset(
            self.connection,
            partition,
            bound,
            isolation=self._isolation,
            timeout_s=self._timeout_s,
        )

    # -- taking (in any one thread) ---------------------------------------------------------------

    def take(self, records_max: int) -> Polled:
        """What is there by now, at most so many records."""
        taken = self.take_columns(records_max)
        return Polled([run for _, runs in taken for run in runs])

    def take_columns(self, records_max: int) -> list[tuple[TopicPartition, list[ColumnRun]]]:
        """The same as runs of columns by partition."""
        self._raise_failure()
        taken: list[tuple[TopicPartition, list[ColumnRun]]] = []
        left = records_max
        for reading in self._in_turn():
            assert reading.buffer is not None
            with self._lock:
                runs = reading.buffer.take(left)
            if runs:
                taken.append((reading.partition, runs))
                left -= sum(map(len, runs))
            self._give_back(reading)
            if left <= 0:
                break
        return taken

    def ready_in_s(self, waited_s: float) -> float | None:
        """When a poll that has waited so long should take what is there: 0 is now, None when
        something has arrived.
        """
        if self._failure is not None:
            return 0.0
        with self._lock:
            ready = [r.buffer for r in self._reading.values() if r.buffer and not r.is_paused]
        if not ready:
            return None
        settings = self._settings
        if settings.fetch_min_bytes == 1 or sum(b.size for b in ready) >= settings.fetch_min_bytes:
            return 0.0
        return max(settings.fetch_max_wait_ms / 1000 - waited_s, 0.0)

    def _in_turn(self) -> list[_Reading]:
        """Those with something to take. Whoever was first goes to the end of the queue, so that
        nobody starves.
        """
        with self._lock:
            ready = [r for r in self._reading.values() if r.buffer and not r.is_paused]
            if ready:
                self._reading[ready[0].partition] = self._reading.pop(ready[0].partition)
        return ready

    def _give_back(self, reading: _Reading) -> None:
        assert reading.buffer is not None
        credit = reading.buffer.take_credit(CREDIT_BYTES_MIN)
        if not credit:
            return
        if threading.get_ident() == self._loop_thread:
            self._grant(reading, credit)
        else:
            self._loop.call_soon_threadsafe(self._grant, reading, credit)

    def _grant(self, reading: _Reading, credit: int) -> None:
        if reading.line is not None:
            reading.line.grant(reading.slot, credit)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # -- fetching (in the loop) -------------------------------------------------------------------

    async def _locate(self, reading: _Reading) -> None:
        if reading.buffer is not None:
            return
        reset = self._settings.auto_offset_reset
        if reset == "none":
            raise NoPosition(f"{reading.partition} has no position, auto_offset_reset is 'none'")
        offset = await self.offset_of(reading.partition, Bound(reset))
        if reading.buffer is None and self._reading.get(reading.partition) is reading:
            self._begin(reading, offset, -1)

    def _begin(self, reading: _Reading, offset: int, last_epoch: int) -> None:
        self._forget(reading)
        with self._lock:
            reading.buffer = FetchBuffer(reading.partition, offset, last_epoch)
        self._start_fetching(reading)

    def _start_fetching(self, reading: _Reading) -> None:
        leader = self.connection.leader(reading.partition)
        if leader is None:
            self._scope.start(self._find_leader(reading), f"find leader of {reading.partition}")
            return
        assert reading.buffer is not None
        source = self._source(reading) or leader[0]
        reading.is_near = source != leader[0]
        reading.slot = next(self._slot_numbers)
        reading.line = self._line(self.connection.brokers[source])
        self._slots[reading.slot] = reading
        reading.line.start(
            pb.FetchStart(
                slot=reading.slot,
                topic=reading.partition.topic,
                partition=reading.partition.partition,
                offset=reading.buffer.fetch_end,
                last_epoch=reading.buffer.fetched_epoch,
                topic_id=self.connection.topics[reading.partition.topic].topic_id,
                credit=max(self._credit() - reading.buffer.size, 1),
            )
        )

    # -- the nearest replica ----------------------------------------------------------------------

    def reads_from(self, partition: TopicPartition) -> Address | None:
        """The broker that is being asked for it at the moment."""
        line = self._known(partition).line
        return None if line is None else line.address

    def _source(self, reading: _Reading) -> NodeId | None:
        """Whom to ask, by what is known now."""
        where = reading.partition
        topic = self.connection.topics.get(where.topic)
        if topic is None or where.partition >= len(topic.partitions):
            return None
        info = topic.partitions[where.partition]
        if reading.leader_until_s > self._loop.time():
            return info.leader
        return nearest_replica(info, self.connection.racks, self._settings.client_rack)

    async def stay_near(self) -> None:
        """While there is a rack: follow the metadata to whoever is nearest and in sync."""
        while True:
            await asyncio.sleep(STAY_NEAR_S)
            topics = {partition.topic for partition in self._reading}
            try:
                await self.connection.refresh(topics, timeout_s=self._timeout_s)
            except SuiroError as error:
                log.debug("the nearest replicas are not known: %s", error)
                continue
            for reading in list(self._reading.values()):
                source = self._source(reading)
                if reading.line is None or source is None:
                    continue
                if self.connection.brokers[source] != reading.line.address:
                    self._forget(reading)
                    self._start_fetching(reading)

    def _credit(self) -> int:
        """What one partition may have on its way or buffered, so that all of them keep to the
        bound; but never less than one message of the broker's.
        """
        share = self._settings.fetch_max_bytes // max(len(self._reading), 1)
        return max(min(self._settings.fetch_credit, share), 2 * CREDIT_BYTES_MIN)

    def _line(self, address: Address) -> FetchLine:
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = FetchLine(
                self, address, self._isolation, self._settings.client_rack
            )
            self._scope.start(line.run(), f"line to {address}")
        return line

    def on_reply(self, slot: int, reply: Framed[pb.FetchStreamReply]) -> None:
        """A line brought something; a slot that was given up is answered by silence."""
        reading = self._slots.get(slot)
        if reading is None:
            return
        result = reply.header.result
        if result.error.code:
            self._on_error(reading, error_from_proto(result.error))
            return
        assert reading.buffer is not None
        if reading.was_searched:
            reading.was_searched = False
            reading.backoff.reset()
        # A follower may know less of them than the leader has told before.
        reading.high_watermark = max(reading.high_watermark, result.high_watermark)
        reading.last_stable_offset = max(reading.last_stable_offset, result.last_stable_offset)
        with self._lock:
            reading.buffer.add(reply.body, result.next_offset, result.last_epoch)
        self.on_arrival()

    def on_broken(self, line: FetchLine, error: SuiroError) -> None:
        """A line broke: its partitions are fetched again from where they are."""
        self._lines.pop(line.address, None)
        for reading in [r for r in self._slots.values() if r.line is line]:
            self._on_error(reading, error)

    def _on_error(self, reading: _Reading, error: SuiroError) -> None:
        self._forget(reading)
        if reading.is_near:
            # Whatever a follower says, the leader knows better: never reset or fail on its word.
            log.info("%s; going back to the leader", error)
            reading.leader_until_s = self._loop.time() + LEADER_S
            self._scope.start(self._find_leader(reading), f"find leader of {reading.partition}")
        elif isinstance(error, OffsetOutOfRange) and self._settings.auto_offset_reset != "none":
            log.warning("%s; going on at the %s offset", error, self._settings.auto_offset_reset)
            self._scope.start(self._reset(reading), f"reset {reading.partition}")
        elif error.retriable:
            self._scope.start(self._find_leader(reading), f"find leader of {reading.partition}")
        else:
            self._fail(error)

    async def _reset(self, reading: _Reading) -> None:
        """The position is no longer in the log: begin where `auto_offset_reset` says."""
        with self._lock:
            reading.buffer = None
        try:
            await self._locate(reading)
        except SuiroError as error:
            self._fail(error)

    async def _find_leader(self, reading: _Reading) -> None:
        """At once, and then more and more seldom: while nobody leads, the metadata go on to name
        the last one who did, and he refuses.
        """
        topics = [reading.partition.topic]
        while True:
            if reading.was_searched:
                await asyncio.sleep(reading.backoff.next_s())
            reading.was_searched = True
            if self._reading.get(reading.partition) is not reading or reading.line is not None:
                return
            try:
                await self.connection.refresh(topics, timeout_s=self._timeout_s)
            except SuiroError as error:
                if not error.retriable:
                    self._fail(error)
                    return
            if self.connection.leader(reading.partition) is not None:
                self._start_fetching(reading)
                return

    def _fail(self, error: SuiroError) -> None:
        self._failure = error
        self.on_arrival()

    def _forget(self, reading: _Reading) -> None:
        if reading.line is not None:
            reading.line.stop(reading.slot)
            self._slots.pop(reading.slot, None)
            reading.line = None

    def _known(self, partition: TopicPartition) -> _Reading:
        reading = self._reading.get(partition)
        if reading is None:
            raise InvalidRequest(f"{partition} is not assigned to this consumer")
        return reading

    @property
    def _timeout_s(self) -> float:
        return self._settings.request_timeout_ms / 1000
