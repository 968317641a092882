"""What recovery may trust, case by case: stale and half-written indexes, snapshots, epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from suiro.model.errors import StorageFailed
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log import segment
from cluster.log.config import LogConfig
from cluster.log.index import OffsetIndex, TimeIndex
from tests.sim.disk import BytesOnly, Everything, ForgetfulFs, Nothing
from tests.unit.log.kit import (
    DIRECTORY,
    Implied,
    Place,
    TracedStore,
    batch,
    producers_of,
    read_all,
    stored,
)

if TYPE_CHECKING:
    from cluster.log.partition_log import PartitionLog
    from tests.sim.disk import Survival

EPOCH = LeaderEpoch(0)
EVERY_BATCH = LogConfig(index_interval_bytes=1)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "INDEX_FLUSH_ENTRIES", 2)


@pytest.fixture
def fs() -> ForgetfulFs:
    return ForgetfulFs()


@pytest.fixture
def place(fs: ForgetfulFs) -> Place:
    return Place(fs)


def after(fs: ForgetfulFs, place: Place, survival: Survival) -> PartitionLog:
    """The log after a power loss that leaves all of the store."""
    crashed = Place(fs.survivors(survival), TracedStore(place.store.content))
    return crashed.open(EVERY_BATCH)


def test_no_index_entry_outlives_its_batch(place: Place, fs: ForgetfulFs) -> None:
    """The old index, with the old times, may not come back once its batches are replaced."""
    log = place.open(EVERY_BATCH)
    for stamp in range(10):
        log.append_as_leader(batch(timestamp_ms=stamp), EPOCH, 0)
    fs.sync_directory(DIRECTORY)
    log.sync()
    log.truncate_to(Offset(3), 0)
    for _ in range(7):
        log.append_as_leader(batch(timestamp_ms=100), LeaderEpoch(1), 0)
    log.sync()
    log.checkpoint(log.log_end, 0)
    assert log.offset_for_timestamp(5) == 3
    assert after(fs, place, BytesOnly()).offset_for_timestamp(5) == 3


def test_an_index_that_reaches_beyond_the_recovery_point_hides_no_hole(
    place: Place, fs: ForgetfulFs
) -> None:
    """The index and the last batches were written out, a page in the middle was not."""
    log = place.open(EVERY_BATCH)
    raws = [batch(fill=number) for number in range(8)]
    for raw in raws:
        log.append_as_leader(raw, EPOCH, 0)
    size = len(raws[0])
    fs.crash(Everything())
    path = DIRECTORY / f"{0:020d}.log"
    content = fs.content(path)
    fs.replace(path, content[: 3 * size] + bytes(size) + content[4 * size :])
    found = Place(fs, place.store).open(EVERY_BATCH)
    assert read_all(found) == [stored(raws[number], number, 0) for number in range(3)]
    assert found.recovery.cut is not None
    assert (found.recovery.cut.offset, found.recovery.cut.dropped_bytes) == (3, 5 * size)


def test_an_index_entry_that_points_between_batches_is_mended(
    place: Place, fs: ForgetfulFs
) -> None:
    log = place.open(EVERY_BATCH)
    raws = [batch(fill=number) for number in range(8)]
    for raw in raws:
        log.append_as_leader(raw, EPOCH, 0)
    log.close()
    offsets, times = OffsetIndex(), TimeIndex()
    for number in range(1, 8):
        offsets.add(number, number * len(raws[0]) + (5 if number == 4 else 0))
        times.add(0, 0)
    fs.replace(DIRECTORY / f"{0:020d}.index", offsets.encode(0))
    fs.replace(DIRECTORY / f"{0:020d}.timeindex", times.encode(0))
    found = place.open(EVERY_BATCH)
    assert found.recovery.indexes_rebuilt == 0
    for offset in (4, 2, 7, 4):
        expected = stored(raws[offset], offset, 0)
        assert found.read(Offset(offset), 1, found.log_end) == expected


def test_a_snapshot_of_lost_batches_is_not_taken_for_later_ones(
    place: Place, fs: ForgetfulFs
) -> None:
    """Both lives write batches of the same sizes in the same leader epoch, by other producers."""
    log = place.open(EVERY_BATCH)
    log.append_as_leader(batch(producer=(1, 0, 0)), EPOCH, 0)
    log.sync()
    log.checkpoint(log.log_end, 0)
    for number in range(3):
        log.append_as_leader(batch(producer=(2, 0, number)), EPOCH, 0)
    log.roll()  # makes a snapshot at offset 4, which survives; the batches do not
    fs.crash(Nothing())
    second = Place(fs, TracedStore(place.store.content))
    log = second.open(EVERY_BATCH)
    assert log.log_end == 1
    for number in range(5):
        log.append_as_leader(batch(producer=(3, 0, number)), EPOCH, 0)
    kept = read_all(log)
    found = after(fs, second, Everything())
    assert producers_of(found.state) == Implied(kept).producers()


def test_a_log_whose_epochs_fall_is_cut_there(place: Place, fs: ForgetfulFs) -> None:
    """In the next file too: only a lost truncation can leave such a file."""
    log = place.open(EVERY_BATCH)
    log.append_as_follower(stored(batch(2), 0, 5), 0)
    log.roll()
    log.append_as_follower(stored(batch(2), 2, 5), 0)
    fs.crash(Everything())
    path = DIRECTORY / f"{2:020d}.log"
    fs.replace(path, stored(batch(2), 2, 4))
    found = Place(fs, place.store).open(EVERY_BATCH)
    assert found.log_end == 2
    assert found.last_epoch == 5


@pytest.mark.parametrize("is_synced", [True, False])
def test_a_store_from_before_a_truncation_does_not_decide(
    place: Place, fs: ForgetfulFs, *, is_synced: bool
) -> None:
    """As from a backup: its snapshot is of batches that were replaced in a newer leader epoch."""
    log = place.open(EVERY_BATCH)
    for number in range(4):
        log.append_as_leader(batch(producer=(1, 0, number)), EPOCH, 0)
    log.roll()
    if is_synced:
        log.sync()
        log.checkpoint(log.log_end, 0)
    backup = dict(place.store.content)
    log.truncate_to(Offset(1), 0)
    for number in range(5):
        log.append_as_leader(batch(producer=(2, 0, number)), LeaderEpoch(1), 0)
    kept = read_all(log)
    stale = Place(fs.survivors(Everything()), TracedStore(backup))
    if is_synced:
        with pytest.raises(StorageFailed):
            stale.open(EVERY_BATCH)
    else:
        assert producers_of(stale.open(EVERY_BATCH).state) == Implied(kept).producers()
