"""The segments of one log, in order: `SegmentRun`.

Finds the segment of an offset, goes on in a new file, takes files out of the log and brings what
was written to stable storage. Always: there is at least one segment, each begins where the one
before it ends, and only the last one is written to.

It belongs to the loop's thread, but for `sync`, which may run in another while this one goes on
appending. Files that leave the log are closed and unlinked by work that waits for `sync` and for
the holder of `reading`: neither ever finds a file closed under its hands.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final

from cluster.log.segment import Segment
from cluster.log.swap import offer, swap_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from suiro.model.ids import Offset

    from cluster.log.home import LogHome

_BASE: Final = attrgetter("base")


class SegmentRun:
    """All methods raise OSError as it comes; what that means is the log's part."""

    def __init__(
        self,
        home: LogHome,
        segments: list[Segment],
        synced_end: Offset,
        discard: Callable[[Callable[[], None]], None],
    ) -> None:
        self.home = home
        self.reading = Lock()
        """For whoever reads whole segments in another thread."""
        self.is_closed = False
        self.generation = 0
        """Rises when the end of the log is cut: what was read before may not be there any more."""
        self._segments = segments
        self._discard = discard
        # What `sync` shares with the loop's thread; _lock is held for moments only.
        self._lock = Lock()
        self._syncing = Lock()
        self._synced_end = synced_end
        self._cut_at = synced_end
        self._rolled = [s for s in segments[:-1] if s.end > synced_end]
        self._names_unsynced = True  # whoever was here before may not have come to it

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    @property
    def active(self) -> Segment:
        """The one that is written to."""
        return self._segments[-1]

    @property
    def end(self) -> Offset:
        return self._segments[-1].end

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def synced_end(self) -> Offset:
        """Everything below is on stable storage."""
        return self._synced_end

    @property
    def has_unsynced_files(self) -> bool:
        """Whether there are files that are full and have not been synced yet."""
        return bool(self._rolled)

    def as_list(self) -> list[Segment]:
        return list(self._segments)

    def of(self, offset: Offset) -> Segment:
        """The segment that an offset belongs to."""
        return self._segments[max(0, bisect_right(self._segments, offset, key=_BASE) - 1)]

    def count_from(self, offset: Offset) -> int:
        """How many segments begin at or below an offset."""
        return bisect_right(self._segments, offset, key=_BASE)

    # -- changing ---------------------------------------------------------------------------------

    def roll(self, interval_bytes: int) -> None:
        """Go on in a new file."""
        self.active.seal()
        fresh = self._create(self.end, interval_bytes)
        with self._lock:
            self._rolled.append(self.active)
            self._segments.append(fresh)
            self._names_unsynced = True

    def retire(self, start: int, end: int) -> None:
        """Durably take the segments of these numbers out of the log, and unlink them later."""
        self._replace(start, end, None, 0)

    def start_over(self, base: Offset, interval_bytes: int) -> None:
        """Durably replace all segments by an empty one."""
        self._replace(0, len(self._segments), base, interval_bytes)

    def _replace(self, start: int, end: int, base: Offset | None, interval_bytes: int) -> None:
        retired = self._segments[start:end]
        if not retired:
            return
        unlinks = [segment.retire() for segment in retired]
        fresh = [] if base is None else [self._create(base, interval_bytes)]
        self.home.fs.sync_directory(self.home.directory)
        self.put(start, end, fresh)
        self.discard(unlinks)

    def put(self, start: int, end: int, fresh: Sequence[Segment]) -> None:
        """From now on these are the segments of these numbers; what is new of them is synced."""
        with self._lock:
            gone = self._segments[start:end]
            self._segments[start:end] = fresh
            self._rolled = [segment for segment in self._rolled if segment not in gone]

    def discard(self, unlinks: Sequence[Callable[[], None]]) -> None:
        """Do this some time later in a thread, when nobody holds any of the files."""
        if not unlinks:
            return

        def unlink_all() -> None:
            with self._syncing, self.reading:
                for unlink in unlinks:
                    unlink()

        self._discard(unlink_all)

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Whether these are part of the log, one after the other."""
        if self.is_closed or segments[0] not in self._segments:
            return False
        at = self._segments.index(segments[0])
        return self._segments[at : at + len(segments)] == list(segments)

    def swap(self, old: Sequence[Segment], fresh: Segment) -> None:
        """Durably put a compacted segment in the place of those that it was made of."""
        offer(fresh)
        unlinks = swap_in(old, fresh)
        start = self._segments.index(old[0])
        self.put(start, start + len(old), [fresh])
        self.discard(unlinks)

    def forget_synced(self, end: Offset) -> None:
        """What is at and above `end` from now on is not what was synced, or is being synced."""
        with self._lock:
            self.generation += 1
            self._synced_end = min(self._synced_end, end)
            self._cut_at = min(self._cut_at, end)

    def _create(self, base: Offset, interval_bytes: int) -> Segment:
        return Segment.create(self.home.fs, self.home.directory, base, interval_bytes)

    # -- stable storage ---------------------------------------------------------------------------

    def sync(self) -> Offset:
        """Everything below the returned offset is on stable storage. For any thread."""
        with self._syncing:
            with self._lock:
                rolled, active = list(self._rolled), self._segments[-1]
                end = self._cut_at = active.end
                names_unsynced, self._names_unsynced = self._names_unsynced, False
            for segment in (*rolled, active):
                segment.data.sync()
            if names_unsynced:
                self.home.fs.sync_directory(self.home.directory)
            with self._lock:
                self._synced_end = min(end, self._cut_at)
                self._rolled = [segment for segment in self._rolled if segment not in rolled]
                return self._synced_end

    def close(self) -> None:
        with self._syncing, self.reading:
            self.is_closed = True
            for segment in self._segments:
                segment.close()

    def abandon(self) -> None:
        """Close the files as they are: there is nothing left that could be written to them."""
        with self._syncing, self.reading:
            self.is_closed = True
            for segment in self._segments:
                segment.abandon()
