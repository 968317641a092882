"""What survives: syncs, failures, full disks, closing and opening."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from suiro.model.errors import (
    DiskFull,
    StorageFailed,
    TopicIdMismatch,
)
from suiro.model.ids import BrokerEpoch, LeaderEpoch, Offset, TopicId
from suiro.model.limits import CHECKPOINT_MS

from cluster.host.fs import OsFs
from cluster.log.checkpoints import mark_clean, take_clean
from cluster.log.config import Flush, LogConfig
from cluster.log.home import remove_destroyed
from cluster.log.partition_log import PartitionLog
from cluster.log.room import Room
from tests.sim.disk import Everything, ForgetfulFs, Nothing, Operation
from tests.unit.log.kit import (
    DIRECTORY,
    ROOT,
    SMALL,
    Place,
    TracedStore,
    batch,
    fill,
    marker,
    read_all,
    segments,
    stored,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EPOCH = LeaderEpoch(0)


@pytest.fixture
def fs() -> ForgetfulFs:
    return ForgetfulFs()


@pytest.fixture
def place(fs: ForgetfulFs) -> Place:
    return Place(fs)


def failing(kind: str, code: int = errno.EIO) -> Callable[[Operation], OSError | None]:
    def fault(operation: Operation) -> OSError | None:
        is_data = operation.path.name.endswith(".log") or operation.path == DIRECTORY
        return OSError(code, os.strerror(code)) if operation.kind == kind and is_data else None

    return fault


# -- durability -----------------------------------------------------------------------------------


def test_what_is_synced_survives_a_power_loss_and_the_rest_need_not(
    place: Place, fs: ForgetfulFs
) -> None:
    log = place.open()
    fill(log, 25)
    assert log.sync() == log.synced_end == 50
    fill(log, 10)
    assert log.synced_end == 50
    fs.crash(Nothing())
    assert Place(fs, TracedStore(place.store.states[0])).open().log_end == 50


def test_opening_a_log_waits_for_no_sync_and_the_first_sync_covers_its_names(
    place: Place, fs: ForgetfulFs
) -> None:
    """A broker that starts with thousands of logs would wait for as many."""
    fill(place.open(), 25)
    operations: list[Operation] = []
    fs.after = operations.append
    log = place.open()
    assert "sync_directory" not in {operation.kind for operation in operations}
    log.sync()
    assert [o.path for o in operations if o.kind == "sync_directory"] == [DIRECTORY]


def test_a_sync_covers_what_was_appended_when_it_began_and_no_cut(
    place: Place, fs: ForgetfulFs
) -> None:
    """Appends and truncations that come while the files are being synced."""
    log = place.open(LogConfig())
    fill(log, 10)

    def meanwhile(operation: Operation) -> None:
        if operation.kind == "sync":
            fs.after = None
            fill(log, 1)
            log.truncate_to(Offset(14), 0)
            fill(log, 10, epoch=1)

    fs.after = meanwhile
    assert log.sync() == 14
    assert log.log_end == 34
    assert log.sync() == 34


@pytest.mark.parametrize(
    ("kind", "write"),
    [
        ("sync", lambda log: log.sync()),
        ("append", lambda log: log.append_as_leader(batch(), EPOCH, 0)),
        ("truncate", lambda log: log.truncate_to(Offset(3), 0)),
        ("sync_directory", lambda log: log.restart_at(Offset(9))),
        ("rename", lambda log: log.restart_at(Offset(9))),
    ],
)
def test_after_a_failure_the_log_takes_no_more_writes(
    place: Place, fs: ForgetfulFs, kind: str, write: Callable[[PartitionLog], object]
) -> None:
    log = place.open()
    fill(log, 5)
    fs.fault = failing(kind)
    with pytest.raises(StorageFailed):
        write(log)
    fs.fault = None
    for again in (
        lambda: log.append_as_leader(batch(), EPOCH, 0),
        lambda: log.append_as_follower(stored(batch(), 10, 0), 0),
        lambda: log.append_control(marker(1, 1, commit=True), EPOCH, 0),
        log.sync,
        log.roll,
        lambda: log.truncate_to(Offset(2), 0),
        lambda: log.trim_to(Offset(2)),
        lambda: log.restart_at(Offset(2)),
    ):
        with pytest.raises(StorageFailed):
            again()
    log.close()


def test_a_failed_sync_is_not_made_good_by_a_second_one(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    fill(log, 2)
    log.sync()
    fill(log, 2)
    fs.fault = failing("sync")
    with pytest.raises(StorageFailed):
        log.sync()
    fs.fault = None
    with pytest.raises(StorageFailed):
        log.sync()
    assert log.synced_end == 4
    fs.crash(Everything())
    assert Place(fs, place.store).open().log_end == 4


def test_a_full_disk_refuses_and_has_stored_nothing(place: Place, fs: ForgetfulFs) -> None:
    log = place.open(LogConfig(segment_bytes=300))
    kept = fill(log, 5)
    fs.capacity_bytes -= fs.free_bytes(ROOT) - 50
    with pytest.raises(DiskFull):
        log.append_as_leader(batch(2), EPOCH, 0)
    fs.capacity_bytes += 1_000
    fs.fault = failing("create", errno.ENOSPC)
    with pytest.raises(DiskFull):
        log.append_as_leader(batch(2, size=290), EPOCH, 0)
    fs.fault = None
    assert read_all(log) == kept
    assert log.append_as_leader(batch(2), EPOCH, 0).base_offset == 10
    log.close()
    assert len(read_all(place.open())) == 6


def test_an_index_that_cannot_be_written_does_not_matter(place: Place, fs: ForgetfulFs) -> None:
    def fault(operation: Operation) -> OSError | None:
        is_index = operation.path.name.endswith("index")
        return OSError(errno.ENOSPC, "full") if is_index and operation.kind == "append" else None

    log = place.open(LogConfig(segment_bytes=2_000, index_interval_bytes=1))
    fs.fault = fault
    kept = fill(log, 200)
    fs.fault = None
    kept += [stored(raw, 400 + n, 0) for n, raw in enumerate([batch(), batch()])]
    log.append_as_leader([batch(), batch()], EPOCH, 0)
    log.close()
    assert read_all(place.open()) == kept


def test_when_a_sync_is_due(place: Place) -> None:
    log = place.open(LogConfig(flush=Flush.OS, segment_bytes=300))
    log.append_as_leader(batch(), EPOCH, 0)
    assert not log.sync_due(CHECKPOINT_MS - 1)
    assert log.sync_due(CHECKPOINT_MS)  # now and then, to bound what a start has to check
    log.append_as_leader(batch(size=250), EPOCH, 0)  # rolls
    assert log.sync_due(0)
    log.sync()
    assert not log.sync_due(10**9)
    log.config = LogConfig(flush=Flush.ACK)
    assert not log.sync_due(0)
    log.append_as_leader(batch(), EPOCH, 0)
    assert log.sync_due(0)
    log.sync()
    log.config = LogConfig(flush=Flush.INTERVAL, flush_interval_ms=100, flush_interval_messages=10)
    assert not log.sync_due(10**9)
    log.append_as_leader(batch(), EPOCH, 1_000)
    assert not log.sync_due(1_099)
    assert log.sync_due(1_100)
    log.append_as_leader(batch(9), EPOCH, 1_001)
    assert log.sync_due(1_002)


def test_syncs_in_another_thread_while_this_one_appends_cuts_and_deletes(tmp_path: Path) -> None:
    """On the real file system: no sync meets a closed file, and the log is whole at the end."""
    place = Place(OsFs(), root=tmp_path)
    log = place.open(LogConfig(segment_bytes=2_000, index_interval_bytes=200))
    stop, failures, syncs = threading.Event(), [], 0

    def keep_syncing() -> None:
        nonlocal syncs
        try:
            while not stop.is_set():
                log.sync()
                syncs += 1
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=keep_syncing)
    thread.start()
    epoch = 0
    while syncs < 20 and not failures and epoch < 5_000:
        fill(log, 30, epoch=epoch)
        if epoch % 3 == 0:
            log.truncate_to(Offset(log.log_end - 25), 0)
        if epoch % 4 == 0:
            log.trim_to(Offset(max(log.log_start, log.log_end - 90)))
        place.clean_up()
        epoch += 1
    stop.set()
    thread.join()
    assert not failures
    kept = read_all(log)
    log.close()
    assert read_all(place.open(log.config)) == kept


# -- opening --------------------------------------------------------------------------------------


def test_a_closed_log_opens_as_it_was(place: Place) -> None:
    log = place.open()
    kept = fill(log, 30)
    log.append_as_leader(batch(2, producer=(4, 1, 0), transactional=True), EPOCH, 0)
    log.checkpoint(Offset(60), 0)
    before = log.state.encode()
    log.close()
    with pytest.raises(StorageFailed):
        log.append_as_leader(batch(), EPOCH, 0)
    again = place.open()
    assert read_all(again)[:-1] == kept
    assert again.state.encode() == before
    assert again.synced_end == again.log_end == 62
    assert again.saved_high_watermark == 60
    assert again.recovery.cut is None
    assert again.recovery.indexes_rebuilt == 0
    assert again.recovery.replayed_from == 62


def test_checkpoints_let_old_producers_go(place: Place) -> None:
    log = place.open(LogConfig(producer_expiry_ms=100))
    log.append_as_leader(batch(producer=(1, 0, 0)), EPOCH, 1_000)
    log.checkpoint(Offset(1), 1_100)
    assert len(log.state.producers) == 1
    log.checkpoint(Offset(1), 1_101)
    assert len(log.state.producers) == 0


def test_a_lost_store_costs_time_and_no_data(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    kept = fill(log, 30)
    log.append_as_leader(batch(2, producer=(4, 1, 0), transactional=True), EPOCH, 0)
    before = log.state.encode()
    log.close()
    again = Place(fs).open()
    assert read_all(again)[:-1] == kept
    assert again.state.encode() == before
    assert again.recovery.recovery_point is None
    assert again.recovery.replayed_from == 0


def test_another_topic_never_gets_the_directory(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    fill(log, 3)
    log.close()
    other = place.home(TopicId(bytes(16)))
    with pytest.raises(TopicIdMismatch):
        type(log).open(other, SMALL, now_ms=0, discard=place.discarded.append)
    fs.flip_bit(DIRECTORY / "topic.id", 3, 1)
    with pytest.raises(StorageFailed):
        place.open()
    fs.remove(DIRECTORY / "topic.id")
    with pytest.raises(StorageFailed):
        place.open()
    assert segments(fs) != []


def test_leftovers_and_orphans_go_and_strangers_stay(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    kept = fill(log, 20)
    log.close()
    leftovers = [
        f"{5:020d}.log.deleted",
        f"{5:020d}.log.cleaned",
        "topic.id.tmp",
        f"{7:020d}.index",
        f"{7:020d}.timeindex",
    ]
    for name in [*leftovers, "notes.txt", "123.log"]:
        fs.open(DIRECTORY / name, create=True).append([b"?"])
    again = place.open()
    assert read_all(again) == kept
    names = fs.names(DIRECTORY)
    assert not set(leftovers) & set(names)
    assert {"notes.txt", "123.log"} <= set(names)


def test_a_compacted_segment_that_is_not_whole_is_an_alarm(place: Place, fs: ForgetfulFs) -> None:
    """It was synced before it got this name, and what it was made of may be gone."""
    log = place.open()
    fill(log, 20)
    log.close()
    fs.open(DIRECTORY / f"{0:020d}.log.swap", create=True).append([b"?"])
    with pytest.raises(StorageFailed):
        place.open()


def test_appends_stop_before_the_reserve_and_go_on_when_there_is_room_again() -> None:
    fs = ForgetfulFs(capacity_bytes=20_000)
    place = Place(fs)
    home = replace(place.home(), room=Room(fs, place.root, reserve_bytes=5_000))
    log = PartitionLog.open(home, SMALL, now_ms=0, discard=place.discarded.append)
    with pytest.raises(DiskFull):
        fill(log, 1_000)
    assert 5_000 <= fs.free_bytes(place.root) <= 5_000 + 200
    end, kept = log.log_end, read_all(log)
    with pytest.raises(DiskFull):
        fill(log, 1)
    assert (log.log_end, read_all(log)) == (end, kept), "no damage, and it still serves"
    log.trim_to(Offset(end // 2))
    place.clean_up()
    fill(log, 20)
    assert log.log_end == end + 40


def test_a_destroyed_log_leaves_nothing(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    fill(log, 20)
    log.close()
    remove = place.home().destroy()
    assert not fs.exists(DIRECTORY)
    assert fs.names(ROOT) != []
    remove()
    assert fs.names(ROOT) == []
    assert place.open().log_end == 0
    place.home().destroy()
    remove_destroyed(fs, ROOT)
    assert fs.names(ROOT) == []


def test_the_clean_mark_is_taken_once(place: Place) -> None:
    assert take_clean(place.store) is None
    mark_clean(place.store, BrokerEpoch(7))
    assert take_clean(TracedStore(place.store.states[0])) == 7
    assert take_clean(place.store) == 7
    assert take_clean(TracedStore(place.store.states[0])) is None
