"""Put a compacted segment in the place of those it was made of, so that any crash is harmless.

The new file is written and synced under a name that recovery throws away (`.cleaned`). Then:

1. rename to `.swap`, sync the directory: from here on the new segment counts;
2. take the old files but the first out of the log, drop the first one's indexes, sync;
3. rename `.swap` over the first one's data file, sync.

A crash before 1 leaves the old log. After 1 recovery finds the `.swap` and does 2 and 3 again;
they may be done any number of times. The syncs between make the names change in this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.batch import OFFSET_MAX
from suiro.model.errors import StorageFailed
from suiro.model.ids import Offset

from cluster.log.segment import (
    CLEANED,
    DATA,
    OFFSET_INDEX,
    SWAP,
    TIME_INDEX,
    Segment,
    aside_path,
    segment_name,
    segment_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cluster.host.fs import Fs


def offer(fresh: Segment) -> None:
    """Step 1. After an OSError the old log still is what it was."""
    directory = fresh.directory
    swap = aside_path(directory, fresh.base, SWAP)
    fresh.fs.rename(aside_path(directory, fresh.base, CLEANED), swap)
    fresh.fs.sync_directory(directory)


def swap_in(old: Sequence[Segment], fresh: Segment) -> list[Callable[[], None]]:
    """Steps 2 and 3; returns the work that closes and unlinks the old files."""
    fs, directory = fresh.fs, fresh.directory
    assert fresh.base == old[0].base
    assert fresh.end == old[-1].end
    unlinks = [segment.retire() for segment in old[1:]]
    old[0].drop_indexes()
    fs.sync_directory(directory)
    fs.rename(aside_path(directory, fresh.base, SWAP), segment_path(directory, fresh.base, DATA))
    fs.sync_directory(directory)
    fresh.move_in()
    return [old[0].data.close, *unlinks]


def finish_swaps(fs: Fs, directory: Path) -> None:
    """Finish what a crash interrupted. Raises StorageFailed if a new file is not whole: it was
    synced before it got its name.
    """
    names = fs.names(directory)
    for name in names:
        base = _base_of(name, DATA + SWAP)
        if base is not None:
            _finish(fs, directory, base, _end_of(fs, directory, base), names)


def _finish(fs: Fs, directory: Path, base: int, end: int, names: Sequence[str]) -> None:
    for name in names:
        for suffix in (DATA, OFFSET_INDEX, TIME_INDEX):
            found = _base_of(name, suffix)
            is_first_data = found == base and suffix == DATA
            if found is not None and base <= found < end and not is_first_data:
                fs.remove(directory / name)
    fs.sync_directory(directory)
    fs.rename(aside_path(directory, base, SWAP), segment_path(directory, base, DATA))
    fs.sync_directory(directory)


def _base_of(name: str, suffix: str) -> int | None:
    """The base offset of a file with this ending; None if it is another's."""
    number = name.removesuffix(suffix)
    is_ours = number.isdecimal() and name == segment_name(int(number), suffix)
    return int(number) if is_ours else None


def _end_of(fs: Fs, directory: Path, base: int) -> int:
    data = fs.open(aside_path(directory, base, SWAP))
    try:
        segment = Segment(fs, directory, Offset(base), data, interval_bytes=1 << 30)
        damage = segment.scan(crc_from=OFFSET_MAX)
    finally:
        data.close()
    if damage is not None:
        raise StorageFailed(f"{segment}{SWAP} at {damage.position}: {damage.reason}")
    return segment.end
