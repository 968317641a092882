"""A small ordered map on disk: `Store`, and the real one on RocksDB, `RocksStore`.

The quorum keeps its log and its votes here, a log directory its epochs and marks. A write is
atomic: after a crash all of it is there or none. A write with `sync` set survives a power loss
once it has returned, and so does every write before it; the others survive only the process. After
a write has failed nobody knows what is stored, so the store refuses everything from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from suiro.model.errors import StorageFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

WRITE_BUFFER_BYTES: Final = 4 << 20
"""Small: what is kept is small, and the buffer is what an open after a crash has to replay."""


class Store(Protocol):
    """Keys in byte order. Every method blocks, a synced write perhaps for long (see Offload)."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from `start` on, before `end`, in order, as they are when it begins."""

    def write(
        self,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        ranges: Sequence[tuple[bytes, bytes]] = (),
        *,
        sync: bool,
    ) -> None:
        """Atomically: first delete the keys in `ranges` (half-open), then `deletes`, then put.

        So one write can replace a tail. Raises StorageFailed, and then the store is poisoned.
        """

    def close(self) -> None: ...


class RocksStore:
    """A RocksDB directory, tuned for a few megabytes that are written often and read at start."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it. Raises StorageFailed, also while another process has it open."""
        from rocksdict import Rdict, ReadOptions, WriteBatch, WriteOptions

        self._path = path
        self._failure: str | None = None
        self._is_closed = False
        self._batch_of = WriteBatch
        self._read_options_of = ReadOptions
        self._options = {sync: WriteOptions() for sync in (False, True)}
        self._options[True].sync = True
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = Rdict(str(path), options=_options())
        except Exception as error:
            raise StorageFailed(f"{path} cannot be opened: {error}") from error

    def get(self, key: bytes) -> bytes | None:
        self._check()
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise self._unreadable(error) from error
        return value

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._check()
        bounds = self._read_options_of()
        bounds.set_iterate_upper_bound(end)
        return self._rows(self._db.items(from_key=start, read_opt=bounds), bounds)

    def write(
        self,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        ranges: Sequence[tuple[bytes, bytes]] = (),
        *,
        sync: bool,
    ) -> None:
        self._check()
        batch = self._batch_of(raw_mode=True)
        for start, end in ranges:
            batch.delete_range(start, end)
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        try:
            self._db.write(batch, self._options[sync])
        except Exception as error:
            self._failure = f"a write to {self._path} failed: {error}"
            raise StorageFailed(self._failure) from error

    def close(self) -> None:
        """Fine if it is closed already."""
        if not self._is_closed:
            self._is_closed = True
            self._failure = self._failure or f"{self._path} is closed"
            self._db.close()

    def _rows(self, items: Iterator[Any], _bounds: object) -> Iterator[tuple[bytes, bytes]]:
        """The iterator uses its bounds' memory and does not hold it: so this does, or rows go
        missing.
        """
        try:
            yield from items
        except Exception as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> StorageFailed:
        return StorageFailed(f"{self._path} cannot be read: {error}")

    def _check(self) -> None:
        if self._failure is not None:
            raise StorageFailed(self._failure)


def _options() -> Any:
    """Little memory, two threads, a quick open, and no statistics that nobody reads."""
    from rocksdict import DBCompressionType, DBRecoveryMode, Options

    options = Options(raw_mode=True)
    # By default RocksDB takes a flipped bit in its log for the end of it, and forgets every synced
    # write behind it: votes and entries that were answered for (M6). Only a record that was cut
    # short at the very end may be left out; anything else is an alarm.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.create_if_missing(True)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(2)
    options.set_max_background_jobs(2)
    options.set_max_open_files(64)
    options.set_max_file_opening_threads(1)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_skip_stats_update_on_db_open(True)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_max_log_file_size(1 << 20)  # RocksDB's own text log
    options.set_keep_log_file_num(2)
    return options
