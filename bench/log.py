"""How fast one partition's log is, beside the plain file calls with the same bytes.

`python -m bench.log [--directory D]`. Rounds of the log and of its ceiling take turns, so that a
noisy neighbour hurts both alike, and every round begins with new files. Nothing is synced unless
the row says so: as with flush=os, the page cache takes the bytes.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from suiro.model.batch import (
    COLUMNAR_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    read_header,
    seal,
    stamp,
)
from suiro.model.ids import LeaderEpoch, Offset, TopicId, TopicPartition
from suiro.transport.tuning import tune_process

from bench.harness import Row, print_rows, row
from cluster.host.fs import OsFs
from cluster.log.config import LogConfig
from cluster.log.home import LogHome
from cluster.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MB: Final = 1_000_000
ROUND_BYTES: Final = 200 * MB
EPOCH: Final = LeaderEpoch(0)
PARTITION: Final = TopicPartition("bench", 0)
SIZES: Final = {MB: "1 MB", 64_000: "64 kB", 1_000: "1 kB"}
CONFIG: Final = LogConfig(max_message_bytes=4 * MB)

Timed = tuple[float, float]
"""Units done, and the seconds they took."""


class MemoryStore:
    """A store that costs nothing: what is measured here is the files."""

    def __init__(self) -> None:
        self._content: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        return self._content.get(key)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted((k, v) for k, v in self._content.items() if start <= k < end))

    def write(
        self,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        ranges: Sequence[tuple[bytes, bytes]] = (),
        *,
        sync: bool,
    ) -> None:
        for start, end in ranges:
            for key in [key for key in self._content if start <= key < end]:
                del self._content[key]
        for key in deletes:
            self._content.pop(key, None)
        self._content.update(puts)

    def close(self) -> None:
        self._content.clear()


@dataclass(frozen=True, slots=True)
class Side:
    """One thing to time, in a new directory each time."""

    name: str
    work: Callable[[Path], Timed]


def run(repeat: int = 5, directory: Path | None = None) -> list[Row]:
    """Every row of the table."""
    tune_process()
    pairs = [
        (Side(f"append {name} batches as leader", partial(append_as_leader, size)), written(size))
        for size, name in SIZES.items()
    ]
    pairs += [(Side("append 1 MB batches as follower", append_as_follower), written(MB))]
    fetched = Side("os.pread of 4 MB", plain_read)
    pairs += [
        (Side(f"read {name} batches, 4 MB at a time, checked", partial(read_log, size)), fetched)
        for size, name in SIZES.items()
    ]
    pairs += [(Side("open after a crash, every CRC checked", reopen), fetched)]
    rows = [compare(work, ceiling, repeat, directory) for work, ceiling in pairs]
    synced = Side("os.write and fdatasync of 4 kB", plain_write_and_sync)
    group = Side("append and sync 4 kB", append_and_sync)
    return [*rows, compare(group, synced, repeat, directory, unit="1/s")]


def written(size: int) -> Side:
    return Side(f"os.write of {SIZES[size]}", partial(plain_write, size))


def compare(
    work: Side, ceiling: Side, repeat: int, directory: Path | None, unit: str = "MB/s"
) -> Row:
    """Time both sides in turns."""
    figures: dict[str, list[float]] = {work.name: [], ceiling.name: []}
    for number in range(repeat + 1):
        for side in (ceiling, work):
            with tempfile.TemporaryDirectory(dir=directory) as place:
                units, seconds = side.work(Path(place))
            if number:  # the first round warms up
                figures[side.name].append(units / seconds)
    top = row(ceiling.name, unit, figures[ceiling.name])
    return row(work.name, unit, figures[work.name], top)


# -- the log --------------------------------------------------------------------------------------


@contextmanager
def opened(path: Path) -> Iterator[PartitionLog]:
    log = open_log(path, MemoryStore())
    yield log
    for segment in log._segments:
        segment.data.close()  # without the sync of a proper close, which the ceiling has not either


def open_log(path: Path, store: MemoryStore) -> PartitionLog:
    home = LogHome(OsFs(), store, path, PARTITION, TopicId(bytes(16)))
    return PartitionLog.open(home, CONFIG, now_ms=0, discard=lambda work: work())


def make_batch(size: int) -> bytearray:
    """A sealed batch of 100-byte records, `size` bytes long."""
    raw = bytearray(os.urandom(size))
    count = max(1, (size - HEADER_BYTES) // 120)
    header = BatchHeader(
        0, size - LENGTH_END, 0, MAGIC, 0, COLUMNAR_BIT, count - 1, 0, 0, -1, -1, -1, count
    )
    HEADER.pack_into(raw, 0, *header)
    seal(raw)
    return raw


def append_as_leader(size: int, path: Path) -> Timed:
    batch = make_batch(size)
    count = batch_count(size)
    with opened(path) as log:
        began = time.perf_counter()
        for _ in range(count):
            log.append_as_leader(batch, EPOCH, 0)
        return count * size / MB, time.perf_counter() - began


def append_as_follower(path: Path) -> Timed:
    size, batch = MB, make_batch(MB)
    header = read_header(batch)
    count = batch_count(size)
    with opened(path) as log:
        began = time.perf_counter()
        for _ in range(count):
            batch[:16] = stamp(header, log.log_end, 0)
            log.append_as_follower(batch, 0)
        return count * size / MB, time.perf_counter() - began


def read_log(size: int, path: Path) -> Timed:
    append_as_leader(size, path)
    log = open_log(path, MemoryStore())
    began, offset, done = time.perf_counter(), Offset(0), 0
    while data := log.read(offset, 4 * MB, log.log_end):
        done += len(data)
        offset = Offset(offset + len(data) // size * (read_header(data).last_offset_delta + 1))
    return done / MB, time.perf_counter() - began


def reopen(path: Path) -> Timed:
    append_as_leader(MB, path)
    began = time.perf_counter()
    log = open_log(path, MemoryStore())
    return log.size_bytes / MB, time.perf_counter() - began


def append_and_sync(path: Path) -> Timed:
    batch = make_batch(4_096)
    with opened(path) as log:
        began = time.perf_counter()
        for _ in range(200):
            log.append_as_leader(batch, EPOCH, 0)
            log.sync()
        return 200, time.perf_counter() - began


# -- the ceilings ---------------------------------------------------------------------------------


def batch_count(size: int) -> int:
    """Small ones are slow, so fewer bytes of them."""
    return min(ROUND_BYTES // size, 20_000)


@contextmanager
def plain_file(path: Path) -> Iterator[int]:
    file = os.open(path / "plain", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    yield file
    os.close(file)


def plain_write(size: int, path: Path) -> Timed:
    data = os.urandom(size)
    count = batch_count(size)
    with plain_file(path) as file:
        began = time.perf_counter()
        for _ in range(count):
            os.write(file, data)
        return count * size / MB, time.perf_counter() - began


def plain_read(path: Path) -> Timed:
    plain_write(MB, path)
    with plain_file(path) as file:
        began, done = time.perf_counter(), 0
        while data := os.pread(file, 4 * MB, done):
            done += len(data)
        return done / MB, time.perf_counter() - began


def plain_write_and_sync(path: Path) -> Timed:
    data = os.urandom(4_096)
    with plain_file(path) as file:
        began = time.perf_counter()
        for _ in range(200):
            os.write(file, data)
            os.fdatasync(file)
        return 200, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="where to write; default: the temporary one")
    arguments = parser.parse_args()
    print_rows(run(arguments.repeat, arguments.directory))


if __name__ == "__main__":
    main()
