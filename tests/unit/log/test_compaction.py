"""Compaction: what is left is what an independent reader says, and it is where it was."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from suiro.model.batch import read_header
from suiro.model.columns import decode
from suiro.model.compact import filler, is_filler
from suiro.model.encode import encode_lists
from suiro.model.errors import CorruptBatch
from suiro.model.ids import LeaderEpoch, Offset
from suiro.model.limits import MIB

from cluster.log.clean_plan import CleanHistory, Pass, plan_cleaning
from cluster.log.config import LogConfig
from cluster.log.offset_map import (
    BYTES_PER_KEY,
    NOT_THERE,
    SCRATCH,
    KeyHashes,
    OffsetMap,
    hash_keys,
)
from cluster.log.retention import SegmentFacts
from tests.sim.disk import ForgetfulFs
from tests.unit.log.compaction_kit import CONFIG, RETENTION_MS, ROOMY, History
from tests.unit.log.kit import DIRECTORY, Place, read_all, segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.log.cleaner import Cleaning
    from cluster.log.partition_log import PartitionLog

EPOCH = LeaderEpoch(0)
Row = tuple[int, bytes | None, bytes | None]


def put(log: PartitionLog, key: str, value: str | None, now_ms: int = 0) -> None:
    content = None if value is None else value.encode()
    log.append_as_leader(encode_lists([key.encode()], [content], timestamps_ms=0), EPOCH, now_ms)


def compact(log: PartitionLog, now_ms: int = 0, map_bytes_max: int = ROOMY) -> bool:
    plan = log.plan_cleaning(log.log_end, now_ms)
    if plan is None:
        return False
    cleaning = log.start_cleaning(plan, seed=1, map_bytes_max=map_bytes_max)
    run_to_the_end(cleaning)
    return log.finish_cleaning(cleaning, now_ms)


def run_to_the_end(cleaning: Cleaning) -> None:
    while cleaning.step():
        pass


def rows(log: PartitionLog) -> list[Row]:
    found: list[Row] = []
    for raw in read_all(log):
        columns = decode(raw)
        found += zip(
            columns.offsets_list(), columns.keys_list(), columns.values_list(), strict=True
        )
    return found


@pytest.mark.parametrize("seed", range(48))
def test_what_is_left_is_what_an_independent_reader_says(seed: int) -> None:
    history = History(seed)
    history.run(steps=110)


def test_the_newest_of_each_key_is_left_at_its_offset() -> None:
    log = Place().open(CONFIG)
    for number in range(100):
        put(log, f"k{number % 3}", str(number))
    log.roll()
    before = log.size_bytes
    assert compact(log)
    assert rows(log) == [(97, b"k1", b"97"), (98, b"k2", b"98"), (99, b"k0", b"99")]
    assert log.size_bytes < before / 10
    assert log.segment_count == 2, "small neighbours became one, the active one stays"
    assert (log.log_start, log.log_end) == (0, 100)
    assert not compact(log), "there is nothing dirty"


def test_a_tombstone_stays_for_its_time_after_it_was_first_compacted() -> None:
    log = Place().open(CONFIG)
    put(log, "a", "1")
    put(log, "a", None)
    log.roll()
    assert compact(log, now_ms=5_000)
    assert rows(log) == [(1, b"a", None)], "its own timestamp is old, but readers have not seen it"
    for number, now_ms in enumerate((5_000 + RETENTION_MS - 1, 5_000 + RETENTION_MS)):
        assert rows(log)[0] == (1, b"a", None)
        put(log, "b", "2")
        log.roll()
        assert compact(log, now_ms=now_ms), number
    assert [row for row in rows(log) if row[1] == b"a"] == []


def test_records_without_a_key_stay() -> None:
    log = Place().open(CONFIG)
    log.append_as_leader(encode_lists([None, None], [b"x", b"y"], timestamps_ms=0), EPOCH, 0)
    put(log, "a", "1")
    put(log, "a", "2")
    log.roll()
    assert compact(log)
    assert rows(log) == [(0, None, b"x"), (1, None, b"y"), (3, b"a", b"2")]


def test_more_keys_than_fit_take_several_passes() -> None:
    log = Place().open(CONFIG)
    for number in range(400):
        put(log, f"key-{number % 100}", str(number))
    log.roll()
    passes = 0
    while compact(log, map_bytes_max=1):
        passes += 1
    assert passes > 1
    assert [row[0] for row in rows(log)] == list(range(300, 400))


def test_a_snapshot_whose_end_became_filler_still_serves() -> None:
    """A crash after compaction: the newest snapshot was taken at a roll, in the middle of it."""
    place = Place()
    log = place.open(CONFIG)
    for number in range(60):
        put(log, "a", str(number))
    log.sync()
    log.checkpoint(log.log_end, 0)
    durable = dict(place.store.content)
    for number in range(60, 120):
        put(log, "a", str(number))
    log.roll()
    log.sync()
    assert compact(log)
    place.store.content = durable  # what was written since then did not reach the disk
    again = place.open(CONFIG)
    assert again.recovery.replayed_from == 119
    assert rows(again) == [(119, b"a", b"119")]


def test_a_reader_goes_on_while_the_log_is_compacted() -> None:
    """It sees no record twice, none out of order, and the newest of every key."""
    rng = Random(3)
    log = Place().open(CONFIG)
    for number in range(600):
        put(log, f"k{rng.randrange(20)}", str(number))
    log.roll()
    plan = log.plan_cleaning(log.log_end, 0)
    assert plan is not None
    cleaning = log.start_cleaning(plan, seed=1, map_bytes_max=ROOMY)
    table: dict[bytes | None, bytes | None] = {}
    position = Offset(0)
    seen: list[int] = []
    while position < log.log_end:
        data = log.read(position, 400, log.log_end)
        columns = decode(data)
        seen += columns.offsets_list()
        table.update(zip(columns.keys_list(), columns.values_list(), strict=True))
        position = Offset(columns.header.end)
        if not cleaning.step() and cleaning.is_complete:
            assert log.finish_cleaning(cleaning, 0)
    assert seen == sorted(set(seen))
    assert table == {key: value for _, key, value in rows(log)}


def test_a_pass_over_a_log_that_is_trimmed_or_cut_meanwhile_changes_nothing() -> None:
    disturbances: list[Callable[[PartitionLog], object]] = [
        lambda log: log.trim_to(Offset(60)),
        lambda log: log.truncate_to(Offset(20), 0),
        lambda log: log.restart_at(Offset(500)),
    ]
    for disturb in disturbances:
        fs = ForgetfulFs()
        place = Place(fs)
        log = place.open(CONFIG)
        for number in range(120):
            put(log, "a", str(number))
        log.roll()
        plan = log.plan_cleaning(log.log_end, 0)
        assert plan is not None
        cleaning = log.start_cleaning(plan, seed=1, map_bytes_max=ROOMY)
        for _ in range(6):
            assert cleaning.step()
        disturb(log)
        place.clean_up()
        before = rows(log)
        assert cleaning.step() == 0
        assert not log.finish_cleaning(cleaning, 0)
        place.clean_up()
        assert rows(log) == before
        assert segments(fs, ".cleaned") == []


def test_damage_stops_a_pass_and_is_not_copied() -> None:
    fs = ForgetfulFs()
    place = Place(fs)
    log = place.open(CONFIG)
    for number in range(120):
        put(log, f"k{number}", "x" * 20)
    log.roll()
    fs.flip_bit(DIRECTORY / segments(fs)[1], 100, 3)
    plan = log.plan_cleaning(log.log_end, 0)
    assert plan is not None
    cleaning = log.start_cleaning(plan, seed=1, map_bytes_max=ROOMY)
    with pytest.raises(CorruptBatch):
        run_to_the_end(cleaning)
    cleaning.drop()
    place.clean_up()
    assert segments(fs, ".cleaned") == []
    assert read_header(log.read(Offset(0), 1, log.log_end)).base_offset == 0, "it still serves"


# -- the parts ------------------------------------------------------------------------------------


def facts(*sizes: int) -> list[SegmentFacts]:
    return [
        SegmentFacts(Offset(10 * n), Offset(10 * n + 10), size, max_timestamp_ms=100 * n)
        for n, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("settings", "clean_end", "limit", "expected"),
    [
        ({}, 0, 30, 30),
        ({}, 0, 25, 20),  # not past the last stable offset
        ({}, 0, 40, 30),  # not the one that is written to
        ({}, 20, 30, None),  # a third is dirty, half is asked for
        ({}, 10, 30, 30),
        ({"max_compaction_lag_ms": 100}, 20, 30, 30),  # late, so at any ratio
        ({"min_compaction_lag_ms": 250}, 0, 30, 20),
        ({"compacts": False}, 0, 30, None),
    ],
)
def test_when_and_how_far(
    settings: dict[str, int], clean_end: int, limit: int, expected: int | None
) -> None:
    config = replace(LogConfig(compacts=True), **settings)  # type: ignore[arg-type]
    history = CleanHistory((Pass(Offset(clean_end), 0),) if clean_end else ())
    segments_now = facts(5, 5, 5, 5)
    plan = plan_cleaning(segments_now, history, config, limit=Offset(limit), now_ms=400)
    assert (plan and plan.end) == expected


def test_the_history_knows_when_a_part_was_first_compacted() -> None:
    history = CleanHistory().after(Offset(10), 100, 0).after(Offset(20), 200, 0)
    assert [history.horizon(at_ms) for at_ms in (99, 100, 199, 200)] == [0, 10, 10, 20]
    assert CleanHistory.decode(history.encode()) == history
    assert history.cut(Offset(15)).passes == (Pass(Offset(10), 100), Pass(Offset(15), 200))
    assert history.cut(Offset(10)).passes == (Pass(Offset(10), 100),)
    assert history.cut(Offset(0)).passes == ()
    forgetful = history.after(Offset(30), 300, forget_before_ms=250)
    assert forgetful.passes == (Pass(Offset(20), 200), Pass(Offset(30), 300))


def test_the_map_finds_what_a_dictionary_finds() -> None:
    rng = Random(5)
    known: dict[bytes, int] = {}
    offsets = OffsetMap(1 << 20)
    for start in range(0, 20_000, 500):
        keys = [rng.randbytes(rng.randrange(20)) for _ in range(500)]
        offsets.add(hashed(keys), np.arange(start, start + 500))
        known.update({key: start + number for number, key in enumerate(keys)})
    assert len(offsets) == len(known)
    asked = [*known, *(b"not there %d" % n for n in range(100))]
    found = offsets.newest(hashed(asked)).tolist()
    assert found == [known.get(key, NOT_THERE) for key in asked]


def test_a_map_says_when_it_is_full() -> None:
    offsets = OffsetMap(BYTES_PER_KEY * SCRATCH * 10)
    for number in range(30):
        assert offsets.is_full == (number >= 10)
        offsets.add(hashed([b"%d" % min(number, 9)]), np.array([number]))
        if number < 9:
            assert not offsets.is_full


@pytest.mark.parametrize("different", [False, True], ids=["updates", "new keys"])
def test_a_map_never_takes_more_memory_than_it_may(different: bool) -> None:
    limit, run = 16 * MIB, 5_000
    rng = np.random.default_rng(3)
    offsets, at = OffsetMap(limit), 0
    tracemalloc.start()
    try:
        while not offsets.is_full and at < 1_000_000:
            keys = rng.integers(0, 1 << 62 if different else 300_000, run, np.uint64)
            offsets.add(KeyHashes(keys, ~keys), np.arange(at, at + run))
            at += run
        asked = rng.integers(0, 1 << 62, run, np.uint64)
        offsets.newest(KeyHashes(asked, ~asked))
        assert len(offsets) > 280_000
        assert tracemalloc.get_traced_memory()[1] <= limit
    finally:
        tracemalloc.stop()


def hashed(keys: list[bytes]) -> KeyHashes:
    data = np.frombuffer(b"".join(keys), np.uint8)
    return hash_keys(data, np.array([len(key) for key in keys], np.int64), seed=11)


def test_filler_is_a_batch_of_nothing() -> None:
    batch = filler(7, 1_000, 3)
    header = read_header(batch)
    assert (header.base_offset, header.end, header.leader_epoch) == (7, 1_000, 3)
    assert is_filler(header)
    assert len(decode(batch)) == 0
