"""Batches to append, a place to append them to, and the dumb twin of what they imply."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from suiro.model.batch import (
    COLUMNAR_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
    seal,
    walk,
)
from suiro.model.control import ControlType, Marker, decode_marker, encode_marker
from suiro.model.ids import (
    LeaderEpoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    TopicId,
    TopicPartition,
)

from cluster.log.config import LogConfig
from cluster.log.home import LogHome
from cluster.log.partition_log import PartitionLog
from tests.sim.disk import ForgetfulFs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suiro.model.batch import Buffer

    from cluster.host.fs import Fs
    from cluster.log.state import LogState

ROOT: Final = Path("/data")
PARTITION: Final = TopicPartition("clicks", 3)
DIRECTORY: Final = ROOT / str(PARTITION)
TOPIC_ID: Final = TopicId(bytes(range(16)))
SMALL: Final = LogConfig(segment_bytes=900, index_interval_bytes=150)
NO_PRODUCER: Final = (-1, -1, -1)


def batch(
    count: int = 1,
    *,
    size: int = 20,
    producer: tuple[int, int, int] = NO_PRODUCER,
    transactional: bool = False,
    timestamp_ms: int = 0,
    fill: int = 7,
) -> bytes:
    """A sealed batch as a producer sends it; `producer` is (id, epoch, first sequence)."""
    raw = bytearray(HEADER_BYTES) + bytes([fill]) * size
    producer_id, producer_epoch, sequence = producer
    header = BatchHeader(
        base_offset=0,
        length=len(raw) - LENGTH_END,
        leader_epoch=0,
        magic=MAGIC,
        crc=0,
        attributes=COLUMNAR_BIT | (TRANSACTIONAL_BIT if transactional else 0),
        last_offset_delta=count - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        record_count=count,
    )
    HEADER.pack_into(raw, 0, *header)
    seal(raw)
    return bytes(raw)


def marker(producer_id: int, producer_epoch: int, *, commit: bool) -> bytes:
    producer = ProducerIdentity(ProducerId(producer_id), ProducerEpoch(producer_epoch))
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    return bytes(encode_marker(Marker(kind, 0), producer, 0))


def stored(raw: Buffer, base_offset: int, leader_epoch: int) -> bytes:
    """A batch as the leader stores it."""
    header = read_header(raw)._replace(base_offset=base_offset, leader_epoch=leader_epoch)
    return HEADER.pack(*header) + bytes(raw[HEADER_BYTES:])


def header_of(raw: Buffer, base_offset: int = 0, leader_epoch: int = 0) -> BatchHeader:
    return read_header(raw)._replace(base_offset=base_offset, leader_epoch=leader_epoch)


class TracedStore:
    """A `Store` in memory that knows which of its writes are durable, and can be copied."""

    def __init__(self, content: dict[bytes, bytes] | None = None) -> None:
        self.content = dict(content or {})
        self.states: list[dict[bytes, bytes]] = [dict(self.content)]
        """What a crash may leave: the state at the last sync, and after each write since."""
        self.after: Callable[[], None] | None = None

    def get(self, key: bytes) -> bytes | None:
        return self.content.get(key)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted((k, v) for k, v in self.content.items() if start <= k < end))

    def write(
        self,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        ranges: Sequence[tuple[bytes, bytes]] = (),
        *,
        sync: bool,
    ) -> None:
        for start, end in ranges:
            for key in [key for key in self.content if start <= key < end]:
                del self.content[key]
        for key in deletes:
            self.content.pop(key, None)
        self.content.update(puts)
        if sync:
            self.states.clear()
        self.states.append(dict(self.content))
        if self.after is not None:
            self.after()

    def close(self) -> None:
        self.after = None


@dataclass
class Place:
    """A disk, a store, and the discarded work that nobody has done yet."""

    fs: Fs = field(default_factory=ForgetfulFs)
    store: TracedStore = field(default_factory=TracedStore)
    root: Path = ROOT
    discarded: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fs.make_directory(self.root)
        self.fs.sync_directory(self.root.parent)

    def home(self, topic_id: TopicId = TOPIC_ID) -> LogHome:
        return LogHome(self.fs, self.store, self.root, PARTITION, topic_id)

    def open(self, config: LogConfig = SMALL, now_ms: int = 0) -> PartitionLog:
        return PartitionLog.open(self.home(), config, now_ms=now_ms, discard=self.discarded.append)

    def clean_up(self) -> None:
        for work in self.discarded:
            work()
        self.discarded.clear()


def read_all(log: PartitionLog, bytes_max: int = 1) -> list[bytes]:
    """Every batch of the log, read one after the other."""
    found: list[bytes] = []
    offset = log.log_start
    while data := log.read(offset, bytes_max, log.log_end):
        for position, header in walk(data):
            found.append(data[position : position + header.size])
            offset = Offset(header.end)
    assert offset == log.log_end
    return found


def fill(log: PartitionLog, batches: int, count: int = 2, epoch: int = 0) -> list[bytes]:
    """Append batches; returns them as stored."""
    found = []
    for number in range(batches):
        raw = batch(count, fill=number % 251, size=20 + number % 60)
        base = log.append_as_leader(raw, LeaderEpoch(epoch), 0).base_offset
        found.append(stored(raw, base, epoch))
    return found


def segments(fs: ForgetfulFs, suffix: str = ".log") -> list[str]:
    return [name for name in fs.names(DIRECTORY) if name.endswith(suffix)]


# -- the dumb twin --------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def head(raw: bytes) -> BatchHeader:
    """The header of a whole batch; the twins ask for the same ones again and again."""
    return read_header(raw)


class Implied:
    """What a list of stored batches implies, worked out the slow way, from scratch."""

    def __init__(self, batches: Sequence[bytes]) -> None:
        self.batches = [(head(raw), raw) for raw in batches]

    def epochs(self) -> dict[int, int]:
        """The leader epoch of every offset."""
        return {
            offset: header.leader_epoch
            for header, _ in self.batches
            for offset in range(header.base_offset, header.end)
        }

    def producers(self) -> dict[int, tuple[int, list[tuple[int, int, int]], int, int]]:
        """Producer id -> epoch, newest batches (sequences, offset), open from, marker at."""
        found = {}
        for producer_id in sorted({h.producer_id for h, _ in self.batches if h.has_producer}):
            mine = [(h, raw) for h, raw in self.batches if h.producer_id == producer_id]
            epoch = mine[-1][0].producer_epoch
            markers = [h.base_offset for h, _ in mine if h.is_control]
            last_marker = max(markers, default=-1)
            sent = [
                (h.base_sequence, h.last_sequence, h.base_offset)
                for h, _ in mine
                if not h.is_control and h.producer_epoch == epoch and h.base_offset > last_marker
            ]
            opened = [
                h.base_offset for h, _ in mine if h.is_transactional and h.base_offset > last_marker
            ]
            began = [h.base_offset for h, _ in mine if h.is_control and h.producer_epoch == epoch]
            found[producer_id] = (
                epoch,
                sent[-5:],
                min(opened, default=-1),
                max(began, default=-1),
            )
        return found

    def aborted(self) -> set[int]:
        """The base offsets of all batches that belong to aborted transactions."""
        found = set()
        for header, _ in self.batches:
            if header.is_transactional and not header.is_control:
                for later, raw in self.batches:
                    is_end = later.is_control and later.producer_id == header.producer_id
                    if is_end and later.base_offset > header.base_offset:
                        if decode_marker(raw).kind is ControlType.ABORT:
                            found.add(header.base_offset)
                        break
        return found

    def last_stable_offset(self, high_watermark: int) -> int:
        """The first offset of a transaction without a marker below the high watermark."""
        undecided = [high_watermark]
        for header, _ in self.batches:
            if header.is_transactional and not header.is_control:
                ends = [
                    later.base_offset
                    for later, _ in self.batches
                    if later.is_control
                    and later.producer_id == header.producer_id
                    and header.base_offset < later.base_offset
                ]
                if min(ends, default=high_watermark) >= high_watermark:
                    undecided.append(header.base_offset)
        return min(undecided)


def producers_of(state: LogState) -> dict[int, tuple[int, list[tuple[int, int, int]], int, int]]:
    return {
        known.producer_id: (
            known.producer_epoch,
            [(sent.first_sequence, sent.last_sequence, sent.base_offset) for sent in known.sent],
            known.open_from,
            known.marker_at,
        )
        for known in state.producers.states()
    }


def aborted_of(state: LogState, batches: Sequence[bytes]) -> set[int]:
    """The batches that a reader would leave out, by the index of aborted ranges."""
    found = set()
    for raw in batches:
        header = head(raw)
        ranges = state.aborted.overlapping(Offset(header.base_offset), Offset(header.end))
        mine = [r for r in ranges if r.producer_id == header.producer_id]
        if header.is_transactional and not header.is_control and mine:
            found.add(header.base_offset)
    return found
