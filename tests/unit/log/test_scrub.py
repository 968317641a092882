"""Scrubbing one log: what it looks at, and what is no damage."""

from __future__ import annotations

import sys
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from suiro.model.encode import encode_lists
from suiro.model.errors import CorruptBatch
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log.config import LogConfig
from tests.sim.disk import ForgetfulFs
from tests.unit.log.kit import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.log.partition_log import PartitionLog

CONFIG = LogConfig(segment_bytes=1_000)


@pytest.fixture
def place() -> Place:
    return Place()


def put(log: PartitionLog, count: int) -> None:
    for number in range(count):
        batch = encode_lists(None, [b"%060d" % number], timestamps_ms=0)
        log.append_as_leader(batch, LeaderEpoch(0), 0)


def steps(log: PartitionLog) -> Iterator[int]:
    scrub = log.start_scrub()
    while size := scrub.step():
        yield size


def flip(place: Place, number: int, position: int) -> None:
    """In the file of that number, oldest first."""
    assert isinstance(place.fs, ForgetfulFs)
    paths = sorted(path for path in place.fs.contents() if path.suffix == ".log")
    place.fs.flip_bit(paths[number], position, 0)


def test_everything_that_is_synced_is_looked_at(place: Place) -> None:
    log = place.open(CONFIG)
    put(log, 25)
    log.sync()
    put(log, 3)
    assert log.segment_count > 2
    unsynced = log.size_bytes - sum(steps(log))
    assert 0 < unsynced < 600, "the three batches that came since the sync"


@pytest.mark.parametrize("number", [0, -1], ids=["closed", "written to"])
def test_a_flipped_bit_is_found_in_any_segment(place: Place, number: int) -> None:
    log = place.open(CONFIG)
    put(log, 25)
    log.sync()
    flip(place, number, 100)
    with pytest.raises(CorruptBatch):
        list(steps(log))


def test_a_flipped_bit_of_a_leader_epoch_is_found(place: Place) -> None:
    """No checksum covers it, and a start does not look at every header that was synced."""
    log = place.open(CONFIG)
    put(log, 25)
    log.sync()
    flip(place, 0, 15)
    with pytest.raises(CorruptBatch, match="leader epoch 1"):
        list(steps(log))


def test_what_is_below_the_start_of_the_log_is_not_looked_at(place: Place) -> None:
    log = place.open(CONFIG)
    put(log, 25)
    log.sync()
    log.trim_to(Offset(3))
    assert sum(steps(log)) == log.size_bytes * 22 // 25


def test_what_a_truncation_takes_away_is_no_damage(place: Place) -> None:
    log = place.open(CONFIG)
    put(log, 25)
    log.sync()
    scrub = log.start_scrub()
    assert scrub.step()
    log.truncate_to(Offset(8), 0)
    put(log, 30)
    assert scrub.step() == 0, "the next round looks at it"
    assert sum(steps(log)) > 0


def test_threads_that_read_one_segment_do_not_disturb_one_another(place: Place) -> None:
    """A scrubber's thread beside the loop's: both note where they left off."""
    log = place.open(LogConfig())
    put(log, 60)
    segment = next(iter(log._segments))
    failed: list[BaseException] = []

    def read(first: int) -> None:
        try:
            for _ in range(600):
                for offset in range(first, 60, 7):
                    segment.read(Offset(offset), 100, segment.end, None)
        except (LookupError, RuntimeError) as error:
            failed.append(error)

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [Thread(target=read, args=(first,)) for first in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval_s)
    assert not failed
