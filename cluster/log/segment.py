"""A run of batches in one file, with its two indexes: `Segment`.

Always: the data file holds whole batches whose offsets follow one another without a gap from
`base` to `end`, and leader epochs never fall. The index files are hints; what is missing of them
is made again by walking the data. A segment knows nothing of what its batches mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from suiro.model.batch import HEADER_BYTES, BatchHeader, check_crc, parse_header
from suiro.model.errors import CorruptBatch
from suiro.model.ids import NO_LEADER_EPOCH, NO_TIMESTAMP_MS, Offset

from cluster.host.fs import read_file
from cluster.log.index import OffsetIndex, TimeIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from suiro.model.batch import Buffer

    from cluster.host.fs import File, Fs
    from cluster.log.epochs import LeaderEpochs

DATA: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
"""A compacted segment that is being written."""
SWAP: Final = ".swap"
"""A compacted segment that is whole, and takes the place of others."""

INDEX_FLUSH_ENTRIES: Final = 64
"""Entries that are kept in memory only, until there are so many of them: fewer, larger writes."""

WALK_BYTES: Final = 1 << 15
LEFT_OFF_MAX: Final = 16
"""Places where reads ended that are remembered: of the followers, and of readers near the end."""
RELATIVE_MAX: Final = (1 << 32) - 1


class Located(NamedTuple):
    """A batch's header and where in the file it is."""

    position: int
    header: BatchHeader


@dataclass(frozen=True, slots=True)
class Damage:
    """The first place where a segment's file does not hold what a segment must hold."""

    position: int
    reason: str


class Segment:
    """One data file and its indexes, open."""

    def __init__(
        self, fs: Fs, directory: Path, base: Offset, data: File, interval_bytes: int
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.base = base
        self.end = base
        self.data = data
        self.size = 0
        self.max_timestamp_ms = NO_TIMESTAMP_MS
        self.last_epoch: int = NO_LEADER_EPOCH
        self.first_append_ms: int | None = None
        self.last_append_ms: int | None = None
        self._max_timestamp_relative = 0
        self._interval_bytes = interval_bytes
        self._offsets = OffsetIndex()
        self._times = TimeIndex()
        self._left_off: dict[int, int] = {}
        self._left_before: dict[int, int] = {}
        self._flushed = 0
        self._index_files: tuple[File, File] | None = None
        self._is_aside = False
        self.index_rebuilt = False

    @classmethod
    def create(cls, fs: Fs, directory: Path, base: Offset, interval_bytes: int) -> Segment:
        """A new, empty segment; its name is durable only after a sync of the directory."""
        for suffix in (OFFSET_INDEX, TIME_INDEX):
            fs.remove(segment_path(directory, base, suffix))
        data = fs.open(segment_path(directory, base, DATA), create=True)
        segment = cls(fs, directory, base, data, interval_bytes)
        assert data.size == 0, f"{segment} is there already"
        return segment

    @classmethod
    def create_aside(cls, fs: Fs, directory: Path, base: Offset, interval_bytes: int) -> Segment:
        """The same under a name that no recovery takes for data, and with its indexes in memory
        only: the names may still be another's. `move_in` changes that.
        """
        path = aside_path(directory, base, CLEANED)
        fs.remove(path)
        segment = cls(fs, directory, base, fs.open(path, create=True), interval_bytes)
        segment._is_aside = True
        return segment

    @classmethod
    def open(
        cls, fs: Fs, directory: Path, base: Offset, interval_bytes: int, trusted_end: int
    ) -> Segment:
        """Open what is there, with as much of the index as can be trusted: entries below
        `trusted_end`, if the last of them points at a batch. `scan` has to follow.
        """
        data = fs.open(segment_path(directory, base, DATA))
        segment = cls(fs, directory, base, data, interval_bytes)
        try:
            segment._load_indexes(trusted_end)
        except OSError:
            data.close()
            raise
        return segment

    def __str__(self) -> str:
        return f"{self.directory.name}/{segment_name(self.base, DATA)}"

    # -- writing ----------------------------------------------------------------------------------

    def append(self, parts: Sequence[Buffer], headers: Sequence[BatchHeader], now_ms: int) -> None:
        """Write whole, stamped batches at the end; after an OSError nothing has changed."""
        self.data.append(parts)
        if self.first_append_ms is None:
            self.first_append_ms = now_ms
        self.last_append_ms = now_ms
        for header in headers:
            self._account(header)
        assert self.size == self.data.size
        if len(self._offsets) - self._flushed >= INDEX_FLUSH_ENTRIES:
            self.flush_indexes()

    def truncate(self, offset: Offset) -> None:
        """Cut the batch that contains `offset`, and all after it, durably.

        Were it not durable, a crash could bring the old end of this file back beside a newer
        next file that happens to continue it: a log that never was.
        """
        cut = self.locate(offset)
        self._keep_entries(self._offsets.count_below(cut.header.base_offset - self.base))
        self.fs.sync_directory(self.directory)
        self.data.truncate(cut.position)
        self.data.sync()
        damage = self.scan(crc_from=cut.header.base_offset)
        if damage is not None:
            raise self._corrupt(damage.position, damage.reason)

    def cut(self, damage: Damage) -> None:
        """Drop everything from the place on where `scan` stopped, durably."""
        assert damage.position == self.size
        self.data.truncate(damage.position)
        self.data.sync()

    def seal(self) -> None:
        """No more appends for now: bring the index files up to date and close them."""
        self.flush_indexes()
        self._close_index_files()

    def move_in(self) -> None:
        """The file that was made aside has its own name now."""
        self._is_aside = False
        self.seal()

    def drop_indexes(self) -> None:
        """Remove the index files, because the data is about to be replaced."""
        self._remove_index_files()

    def retire(self) -> Callable[[], None]:
        """Rename the files, so that no recovery takes them for data; returns the work that closes
        and unlinks them, which takes long for a large file and may be done in any thread.
        """
        self._close_index_files()
        retired = []
        for suffix in (DATA, OFFSET_INDEX, TIME_INDEX):
            path = segment_path(self.directory, self.base, suffix)
            if self.fs.exists(path):
                retired.append(path.with_name(path.name + DELETED))
                self.fs.rename(path, retired[-1])

        def unlink() -> None:
            self.data.close()
            for path in retired:
                self.fs.remove(path)

        return unlink

    def close(self) -> None:
        self.seal()
        self.data.close()

    def abandon(self) -> None:
        """Close without bringing the indexes up to date."""
        self._close_index_files()
        self.data.close()

    # -- reading ----------------------------------------------------------------------------------

    def read(
        self, offset: Offset, bytes_max: int, until: Offset, epochs: LeaderEpochs | None
    ) -> bytes:
        """Whole batches from the one that contains `offset` on, all of them ending at or before
        `until`: as many as fit `bytes_max`, and one even if it does not fit.

        Every batch is checked before it is handed out, also the two fields that its CRC does not
        cover: the offset against its neighbours, the leader epoch against the table.
        """
        start, expected = self._beginning(offset)
        limit = self._offsets.position_from(until - self.base, self.size)
        chunk = self.data.read_at(start, max(HEADER_BYTES, min(bytes_max, limit - start)))
        first = self._parse(chunk, 0, start, expected)
        if first.end > until:
            self.batch_at(Located(start, first))  # is it really there that it ends?
            return b""
        if first.size > len(chunk):
            chunk = self.data.read_at(start, first.size)
        stop = 0
        while len(chunk) - stop >= HEADER_BYTES:
            try:
                header = self._parse(chunk, stop, start, expected)
                if header.end > until or stop + header.size > len(chunk):
                    break
                self._check(chunk, header, stop, start, epochs)
            except CorruptBatch:
                if stop == 0:
                    raise
                break  # what came before it is good; the next read begins here and says so
            stop += header.size
            expected = header.end
        if stop == 0:
            raise self._corrupt(start, f"the file is shorter than its {self.size} bytes")
        self._remember(expected, start + stop)
        return chunk[:stop]

    def _remember(self, offset: int, position: int) -> None:
        """For the next read, which needs no walk. Threads read too: nothing is ever taken out."""
        if len(self._left_off) >= LEFT_OFF_MAX:
            self._left_before, self._left_off = self._left_off, {}
        self._left_off[offset] = position

    def _beginning(self, offset: Offset) -> tuple[int, int]:
        """Where the batch that contains an offset lies, and the offset that it begins with."""
        position = self._left_off.get(offset, self._left_before.get(offset))
        if position is not None:
            return position, offset
        located = self.locate(offset)
        return located.position, located.header.base_offset

    def locate(self, offset: Offset) -> Located:
        """The batch that contains an offset of this segment."""
        assert self.base <= offset < self.end
        position = self._left_off.get(offset, self._left_before.get(offset))
        expected: int = offset
        if position is None:
            relative, position = self._floor(offset)
            expected = self.base + relative
        for located in self.walk(position, expected, self._interval_bytes):
            if located.header.end > offset:
                return located
        raise self._corrupt(self.size, f"the file ends before offset {offset}")

    def first_since(self, timestamp_ms: int, start: Offset) -> BatchHeader | None:
        """The first batch above `start` with a record at or after a point in time."""
        if self.max_timestamp_ms < timestamp_ms:
            return None
        floor = max(start, self.base + self._times.floor(timestamp_ms))
        relative, position = self._floor(floor)
        for located in self.walk(position, self.base + relative):
            if located.header.max_timestamp_ms >= timestamp_ms and located.header.end > start:
                return located.header
        return None

    def walk(
        self, position: int = 0, expected: int | None = None, chunk_bytes: int = WALK_BYTES
    ) -> Iterator[Located]:
        """Every header from a batch's position on; CRCs are not checked."""
        expected = self.base if expected is None else expected
        chunk, chunk_at = b"", position
        while position < self.size:
            at = position - chunk_at
            if at + HEADER_BYTES > len(chunk):
                chunk = self.data.read_at(position, max(chunk_bytes, HEADER_BYTES))
                chunk_at, at = position, 0
            header = self._parse(chunk, at, chunk_at, expected)
            yield Located(position, header)
            position += header.size
            expected = header.end

    def batch_at(self, located: Located) -> bytes:
        """The whole batch, its CRC checked."""
        batch = self.data.read_at(located.position, located.header.size)
        if len(batch) < located.header.size:
            raise self._corrupt(located.position, "the batch is cut short")
        self._check(batch, located.header, 0, located.position)
        return batch

    def scan(self, crc_from: int, epoch_from: int = NO_LEADER_EPOCH) -> Damage | None:
        """Find out what the file holds from the last index entry on, and index it.

        From the batch at `crc_from` on payloads are checked too; `epoch_from` is the leader epoch
        of the batch before this segment. On damage the segment ends before it, and the caller has
        to cut or to give up.
        """
        self._rewind()
        self.last_epoch = epoch_from
        whole_size, chunk, chunk_at = self.data.size, b"", 0
        while self.size < whole_size:
            at = self.size - chunk_at
            if at + HEADER_BYTES > len(chunk):
                chunk, chunk_at, at = self.data.read_at(self.size, WALK_BYTES), self.size, 0
            try:
                header = self._parse(chunk, at, chunk_at, self.end)
                if self.size + header.size > whole_size:
                    return Damage(self.size, "the last batch is cut short")
                if header.leader_epoch < self.last_epoch:
                    return Damage(self.size, f"leader epoch falls to {header.leader_epoch}")
                if header.base_offset >= crc_from:
                    self.batch_at(Located(self.size, header))
            except CorruptBatch as error:
                return Damage(self.size, error.message)
            self._account(header)
        return None

    # -- the parts --------------------------------------------------------------------------------

    def _account(self, header: BatchHeader) -> None:
        """The next batch is in the file."""
        assert header.base_offset == self.end
        if self.size - self._offsets.last[1] >= self._interval_bytes:
            self._offsets.add(header.base_offset - self.base, self.size)
            self._times.add(self.max_timestamp_ms, self._max_timestamp_relative)
        if header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = header.max_timestamp_ms
            self._max_timestamp_relative = header.base_offset - self.base
        self.last_epoch = header.leader_epoch
        self.end = Offset(header.end)
        self.size += header.size

    def _rewind(self) -> None:
        """Know only what the last index entry knows."""
        self._left_off, self._left_before = {}, {}
        relative, self.size = self._offsets.last
        self.end = Offset(self.base + relative)
        self.max_timestamp_ms, self._max_timestamp_relative = (
            self._times[-1] if self._times else (NO_TIMESTAMP_MS, 0)
        )

    def _floor(self, offset: int) -> tuple[int, int]:
        """Relative offset and position of the last indexed batch at or below an offset; an index
        that points anywhere else is made anew.
        """
        floor = self._offsets.floor(offset - self.base)
        if self._points_at_batch(floor):
            return floor
        fresh = Segment(self.fs, self.directory, self.base, self.data, self._interval_bytes)
        damage = fresh.scan(crc_from=self.end)
        if damage is not None:
            raise self._corrupt(damage.position, damage.reason)
        self._keep_entries(0)
        self._offsets, self._times = fresh._offsets, fresh._times
        return self._offsets.floor(offset - self.base)

    def _points_at_batch(self, entry: tuple[int, int]) -> bool:
        relative, position = entry
        if position == 0:
            return True
        try:
            head = self.data.read_at(position, HEADER_BYTES)
            self._parse(head, 0, position, self.base + relative)
        except CorruptBatch:
            return False
        return True

    def _parse(self, chunk: Buffer, at: int, chunk_at: int, expected: int) -> BatchHeader:
        """The header at `at` of a chunk of the file; it has to start at offset `expected`."""
        if len(chunk) - at < HEADER_BYTES:
            raise self._corrupt(chunk_at + at, "the header is cut short")
        try:
            header = parse_header(chunk, at)
        except CorruptBatch as error:
            raise self._corrupt(chunk_at + at, error.message) from error
        if header.base_offset != expected:
            reason = f"offset {header.base_offset} where {expected} has to be"
            raise self._corrupt(chunk_at + at, reason)
        return header

    def _check(
        self,
        chunk: Buffer,
        header: BatchHeader,
        at: int,
        chunk_at: int,
        epochs: LeaderEpochs | None = None,
    ) -> None:
        try:
            check_crc(chunk, header, at)
        except CorruptBatch as error:
            raise self._corrupt(chunk_at + at, error.message) from error
        if (
            epochs is not None
            and epochs.epoch_of(Offset(header.last_offset)) != header.leader_epoch
        ):
            reason = f"leader epoch {header.leader_epoch} is not the one of its offsets"
            raise self._corrupt(chunk_at + at, reason)

    def _corrupt(self, position: int, reason: str) -> CorruptBatch:
        return CorruptBatch(
            f"{self} at {position}: {reason}", segment=int(self.base), position=position
        )

    # -- index files ------------------------------------------------------------------------------

    def flush_indexes(self) -> None:
        """Write what is new of the indexes; what cannot be written is made again at an open."""
        if self._is_aside or self._flushed == len(self._offsets):
            return
        try:
            offsets, times = self._open_index_files()
            offsets.append([self._offsets.encode(self._flushed)])
            times.append([self._times.encode(self._flushed)])
        except OSError:
            return  # an index is only a hint, and the data is already written
        self._flushed = len(self._offsets)

    def _open_index_files(self) -> tuple[File, File]:
        if self._index_files is None:
            self._index_files = (
                self.fs.open(segment_path(self.directory, self.base, OFFSET_INDEX), create=True),
                self.fs.open(segment_path(self.directory, self.base, TIME_INDEX), create=True),
            )
        return self._index_files

    def _close_index_files(self) -> None:
        for file in self._index_files or ():
            file.close()
        self._index_files = None

    def _keep_entries(self, count: int) -> None:
        """Forget the other entries, in memory and on disk."""
        self._offsets.keep(count)
        self._times.keep(count)
        if count < self._flushed:
            self._remove_index_files()

    def _remove_index_files(self) -> None:
        """They are written anew, from the first entry on, by the next flush.

        Whoever rewrites data makes this durable first, so that no entry outlives its batch.
        """
        self._flushed = 0
        self._close_index_files()
        for suffix in (OFFSET_INDEX, TIME_INDEX):
            self.fs.remove(segment_path(self.directory, self.base, suffix))

    def _load_indexes(self, trusted_end: int) -> None:
        """Take from the index files what is whole, below `trusted_end`, and true."""
        offsets, offsets_whole = OffsetIndex.decode(self._index_bytes(OFFSET_INDEX))
        times, times_whole = TimeIndex.decode(self._index_bytes(TIME_INDEX))
        count = min(len(offsets), len(times), offsets.count_below(trusted_end - self.base))
        whole = offsets_whole and times_whole and count == len(offsets) == len(times)
        offsets.keep(count)
        times.keep(count)
        if not self._points_at_batch(offsets.last):
            offsets, times, whole = OffsetIndex(), TimeIndex(), False
        self._offsets, self._times = offsets, times
        self._flushed = count
        if not whole:
            self._remove_index_files()
            self.index_rebuilt = True

    def _index_bytes(self, suffix: str) -> bytes:
        try:
            return read_file(self.fs, segment_path(self.directory, self.base, suffix))
        except FileNotFoundError:
            return b""
        except OSError:
            return b"?"  # not whole, so it is removed


def segment_name(base: int, suffix: str) -> str:
    return f"{base:020d}{suffix}"


def aside_path(directory: Path, base: int, suffix: str) -> Path:
    """Where the data of a segment is that is not part of the log yet."""
    return directory / segment_name(base, DATA + suffix)


def segment_path(directory: Path, base: int, suffix: str) -> Path:
    return directory / segment_name(base, suffix)
