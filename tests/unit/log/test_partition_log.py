"""The partition's log, promise by promise."""

from __future__ import annotations

import pytest
from suiro.model.batch import HEADER_BYTES, read_header
from suiro.model.errors import (
    BatchTooLarge,
    CorruptBatch,
    FencedLeaderEpoch,
    InvalidRequest,
    OffsetOutOfRange,
    OutOfOrderSequence,
    UnknownProducer,
)
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log.config import LogConfig
from tests.sim.disk import ForgetfulFs, Nothing
from tests.unit.log.kit import (
    Place,
    TracedStore,
    batch,
    fill,
    marker,
    read_all,
    segments,
    stored,
)

EPOCH = LeaderEpoch(0)


@pytest.fixture
def fs() -> ForgetfulFs:
    return ForgetfulFs()


@pytest.fixture
def place(fs: ForgetfulFs) -> Place:
    return Place(fs)


# -- appending ------------------------------------------------------------------------------------


def test_batches_get_offsets_and_the_leader_epoch_and_come_out_as_they_went_in(
    place: Place,
) -> None:
    log = place.open()
    raws = [batch(3, fill=1), batch(1, fill=2), batch(5, fill=3)]
    info = log.append_as_leader(raws[:2], LeaderEpoch(4), 0)
    assert (info.base_offsets, info.end, info.appended) == ((0, 3), 4, True)
    assert log.append_as_leader(raws[2], LeaderEpoch(5), 0).base_offset == 4
    assert (log.log_start, log.log_end, log.last_epoch) == (0, 9, 5)
    assert read_all(log) == [stored(raws[0], 0, 4), stored(raws[1], 3, 4), stored(raws[2], 4, 5)]
    for offset, raw in enumerate(read_all(log)):
        assert read_header(raw).leader_epoch == (5 if offset == 2 else 4)
    assert log.end_offset_for(LeaderEpoch(4)) == (4, 4)
    assert log.epoch_of(Offset(4)) == 5


def test_one_buffer_may_hold_several_batches(place: Place) -> None:
    log = place.open()
    info = log.append_as_leader(memoryview(batch(2) + batch(3)), EPOCH, 0)
    assert info.base_offsets == (0, 2)
    assert log.log_end == 5


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (batch()[:-1], CorruptBatch),
        (batch()[:-1] + b"!", CorruptBatch),
        (batch()[:HEADER_BYTES], CorruptBatch),
        (b"", InvalidRequest),
        (batch(size=2_000), BatchTooLarge),
        (marker(1, 1, commit=True), InvalidRequest),
        (batch(producer=(1, -1, 0)), InvalidRequest),
        (batch(producer=(1, 0, -1)), InvalidRequest),
        (batch(transactional=True), InvalidRequest),
        (batch(producer=(7, 0, 5)), UnknownProducer),
    ],
)
def test_a_bad_batch_refuses_the_whole_append(
    place: Place, bad: bytes, error: type[Exception]
) -> None:
    log = place.open(LogConfig(max_message_bytes=1_000))
    with pytest.raises(error):
        log.append_as_leader([batch(producer=(1, 0, 0)), bad] if bad else [], EPOCH, 0)
    assert log.log_end == 0
    assert log.size_bytes == 0
    assert log.append_as_leader(batch(producer=(1, 0, 0)), EPOCH, 0).base_offset == 0


def test_records_that_are_missing_or_too_many_are_refused(place: Place) -> None:
    log = place.open()
    for count, delta in ((0, 0), (2, 2)):
        raw = bytearray(batch(3))
        raw[23:27] = delta.to_bytes(4, "big")
        raw[57:61] = count.to_bytes(4, "big")
        with pytest.raises((InvalidRequest, CorruptBatch)):
            log.append_as_leader(raw, EPOCH, 0)


def test_an_older_leader_is_refused(place: Place) -> None:
    log = place.open()
    log.append_as_leader(batch(), LeaderEpoch(3), 0)
    with pytest.raises(FencedLeaderEpoch):
        log.append_as_leader(batch(), LeaderEpoch(2), 0)


def test_a_retry_is_answered_with_the_first_offset_and_not_stored(place: Place) -> None:
    log = place.open()
    first, second = batch(2, producer=(1, 0, 0)), batch(3, producer=(1, 0, 2))
    log.append_as_leader(batch(7), EPOCH, 0)
    log.append_as_leader(first, EPOCH, 0)
    both = log.append_as_leader([first, second], EPOCH, 0)
    assert (both.base_offsets, both.end, both.appended) == ((7, 9), 12, True)
    again = log.append_as_leader([first, second], EPOCH, 0)
    assert (again.base_offsets, again.end, again.appended) == ((7, 9), 12, False)
    assert log.log_end == 12
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader([batch(producer=(2, 0, 0)), batch(producer=(1, 0, 9))], EPOCH, 0)
    assert log.log_end == 12


def test_batches_of_one_append_follow_one_another(place: Place) -> None:
    log = place.open()
    run = [batch(2, producer=(1, 0, 0)), batch(2, producer=(1, 0, 2)), batch(producer=(1, 0, 4))]
    assert log.append_as_leader(run, EPOCH, 0).base_offsets == (0, 2, 4)
    twice = [batch(2, producer=(2, 0, 0)), batch(2, producer=(2, 0, 0))]
    assert log.append_as_leader(twice, EPOCH, 0).base_offsets == (5, 5)
    assert log.log_end == 7


def test_a_marker_ends_its_transaction_once(place: Place) -> None:
    log = place.open()
    log.append_as_leader(batch(2, producer=(1, 0, 0), transactional=True), EPOCH, 0)
    log.append_as_leader(batch(1), EPOCH, 0)
    assert log.last_stable_offset(Offset(3)) == 0
    first = log.append_control(marker(1, 1, commit=False), EPOCH, 0)
    again = log.append_control(marker(1, 1, commit=False), EPOCH, 0)
    assert (first.base_offset, again.base_offset, again.appended) == (3, 3, False)
    assert log.log_end == 4
    assert log.last_stable_offset(log.log_end) == 4
    assert [(r.producer_id, r.first, r.last) for r in log.aborted(Offset(0), Offset(4))] == [
        (1, 0, 3)
    ]
    with pytest.raises(InvalidRequest):
        log.append_control(batch(), EPOCH, 0)
    log.trim_to(Offset(4))
    assert len(log.state.aborted) == 0


# -- following ------------------------------------------------------------------------------------


def test_a_follower_takes_what_continues_its_log_and_nothing_else(place: Place) -> None:
    log = place.open()
    run = stored(batch(2), 0, 3) + stored(batch(1), 2, 4)
    info = log.append_as_follower(run, 0)
    assert (info.base_offsets, info.end) == ((0, 2), 3)
    assert log.last_epoch == 4
    with pytest.raises(InvalidRequest):
        log.append_as_follower(stored(batch(), 4, 4), 0)
    with pytest.raises(InvalidRequest):
        log.append_as_follower(stored(batch(), 2, 4), 0)
    with pytest.raises(InvalidRequest):
        log.append_as_follower(stored(batch(), 3, 3), 0)
    with pytest.raises(CorruptBatch):
        log.append_as_follower(stored(batch(), 3, 4)[:-1] + b"?", 0)
    with pytest.raises(InvalidRequest):
        log.append_as_follower(b"", 0)
    assert read_all(log) == [run[: len(run) // 2], run[len(run) // 2 :]]


def test_leader_and_follower_come_to_the_same_state_and_bytes(place: Place) -> None:
    leader, other = place.open(), Place()
    follower = other.open(LogConfig(segment_bytes=400, index_interval_bytes=10))
    leader.append_as_leader(batch(2, producer=(1, 0, 0), transactional=True), EPOCH, 0)
    leader.append_as_leader([batch(1), batch(2, producer=(1, 0, 2), transactional=True)], EPOCH, 0)
    leader.append_control(marker(1, 1, commit=False), LeaderEpoch(1), 0)
    fill(leader, 20, epoch=2)
    while follower.log_end < leader.log_end:
        data = leader.read(follower.log_end, 300, leader.log_end)
        follower.append_as_follower(data, 0)
    assert read_all(follower) == read_all(leader)
    assert follower.state.encode() == leader.state.encode()


def test_an_empty_follower_may_begin_inside_a_batch(place: Place) -> None:
    log = place.open()
    fill(log, 3)
    log.restart_at(Offset(105))
    log.append_as_follower(stored(batch(10), 100, 7), 0)
    assert (log.log_start, log.log_end) == (105, 110)
    assert len(log.read(Offset(105), 1, log.log_end)) > 0
    with pytest.raises(OffsetOutOfRange):
        log.read(Offset(104), 1, log.log_end)
    log.close()
    again = place.open()
    assert (again.log_start, again.log_end) == (105, 110)


# -- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval_bytes", [1, 150, 1 << 20])
def test_every_offset_reads_the_batch_that_contains_it(place: Place, interval_bytes: int) -> None:
    log = place.open(LogConfig(segment_bytes=900, index_interval_bytes=interval_bytes))
    batches = fill(log, 40, count=3)
    for number, raw in enumerate(batches):
        for offset in range(3 * number, 3 * number + 3):
            assert log.read(Offset(offset), 1, log.log_end) == raw
            header = log.first_batch_header_at(Offset(offset))
            assert header == read_header(raw)
    assert log.first_batch_header_at(log.log_end) is None


def test_a_read_returns_whole_batches_within_its_bounds(place: Place) -> None:
    log = place.open(LogConfig())
    batches = fill(log, 30)
    for bytes_max in (1, 100, 250, 1_000, 1 << 20):
        for until in range(61):
            data = log.read(Offset(21), bytes_max, Offset(until))
            whole = [raw for raw in batches[10:] if read_header(raw).end <= until]
            expected = b""
            for raw in whole:
                if expected and len(expected) + len(raw) > bytes_max:
                    break
                expected += raw
            assert data == expected


def test_reads_outside_the_log_say_what_is_inside(place: Place) -> None:
    log = place.open()
    fill(log, 3)
    assert log.read(log.log_end, 100, log.log_end) == b""
    with pytest.raises(OffsetOutOfRange) as refused:
        log.read(Offset(7), 100, log.log_end)
    assert refused.value.hints == {"start": 0, "end": 6}
    log.trim_to(Offset(3))
    with pytest.raises(OffsetOutOfRange):
        log.read(Offset(2), 100, log.log_end)
    assert read_header(log.read(Offset(3), 1, log.log_end)).base_offset == 2


def test_timestamps_lead_to_the_first_batch_that_is_new_enough(place: Place) -> None:
    log = place.open(LogConfig(segment_bytes=500, index_interval_bytes=100))
    stamps = [5, 3, 9, 9, 4, 20, 15, 20, 8, 30, 2, 31, 1, 1, 1, 40, 0, 7] * 2
    for stamp in stamps:
        log.append_as_leader(batch(2, timestamp_ms=stamp), EPOCH, 0)
    for start in (0, 7, 30):
        log.trim_to(Offset(start))
        for _ in range(2):
            for asked in range(42):
                new_enough = [2 * at for at, s in enumerate(stamps) if s >= asked]
                expected = next((max(at, start) for at in new_enough if at + 2 > start), None)
                assert log.offset_for_timestamp(asked) == expected
            log.close()
            log = place.open(log.config)


# -- segments -------------------------------------------------------------------------------------


def test_segments_roll_by_size_and_age(place: Place, fs: ForgetfulFs) -> None:
    log = place.open(LogConfig(segment_bytes=400, segment_ms=1_000))
    for _ in range(4):
        log.append_as_leader(batch(size=39), EPOCH, 10)  # 100 bytes each
    assert len(segments(fs)) == 1
    log.append_as_leader(batch(size=39), EPOCH, 10)
    assert segments(fs) == [f"{0:020d}.log", f"{4:020d}.log"]
    log.append_as_leader(batch(size=39), EPOCH, 1_009)
    assert len(segments(fs)) == 2
    log.append_as_leader(batch(size=39), EPOCH, 1_010)
    assert len(segments(fs)) == 3
    log.append_as_leader(batch(size=900), EPOCH, 1_010)  # larger than a segment: one of its own
    log.append_as_leader(batch(), EPOCH, 1_010)
    assert len(segments(fs)) == 5
    assert len(read_all(log)) == 9


def test_trim_drops_whole_segments_and_survives(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    fill(log, 40)
    before = len(segments(fs))
    log.trim_to(Offset(45))
    left = len(segments(fs))
    assert 1 < left < before
    assert len(segments(fs, ".deleted")) >= before - left
    place.clean_up()
    assert segments(fs, ".deleted") == []
    assert (log.log_start, log.epoch_of(Offset(45))) == (45, 0)
    log.trim_to(Offset(10))
    assert log.log_start == 45
    again = Place(fs.survivors(Nothing()), TracedStore(place.store.states[0])).open()
    assert again.log_start == 45


def test_trim_to_the_end_frees_everything(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    fill(log, 10, epoch=3)
    log.trim_to(log.log_end)
    assert (log.size_bytes, log.log_start, log.log_end, log.last_epoch) == (0, 20, 20, 3)
    fill(log, 1, epoch=4)
    assert len(read_all(log)) == 1
    with pytest.raises(OffsetOutOfRange):
        log.trim_to(Offset(23))


def test_retention_moves_the_log_start(place: Place, fs: ForgetfulFs) -> None:
    log = place.open(LogConfig(segment_bytes=300, retention_ms=50, retention_bytes=-1))
    for stamp in range(0, 200, 10):
        log.append_as_leader(batch(timestamp_ms=stamp), EPOCH, stamp)
    start = log.apply_retention(Offset(20), now_ms=200)
    header = log.first_batch_header_at(start)
    assert header is not None
    assert 200 - 50 - 30 <= header.max_timestamp_ms <= 200 - 50
    assert log.apply_retention(Offset(20), now_ms=1_000) == 20
    assert log.size_bytes == 0


@pytest.mark.parametrize("cut", range(0, 41, 3))
def test_truncation_leaves_what_was_before(place: Place, cut: int) -> None:
    log = place.open()
    batches = [stored(batch(2, producer=(1, 0, 2 * n)), 2 * n, n // 6) for n in range(20)]
    for raw in batches:
        log.append_as_follower(raw, 0)
    kept = batches[: cut // 2]
    assert log.truncate_to(Offset(cut), 0) == 2 * len(kept)
    twin = Place().open()
    for raw in kept:
        twin.append_as_follower(raw, 0)
    assert read_all(log) == kept
    assert log.state.encode() == twin.state.encode()
    fill(log, 30, epoch=9)
    assert read_all(log)[: len(kept)] == kept
    log.close()
    assert read_all(place.open())[: len(kept)] == kept


def test_a_reader_goes_on_where_it_left_off_also_after_a_truncation(place: Place) -> None:
    """Where reads ended is remembered; after a truncation other batches may lie there."""
    log = place.open()
    fill(log, 6, count=1)
    assert len(read_all(log)) == 6
    log.truncate_to(Offset(2), 0)
    large, small = batch(2, fill=8), batch(1, fill=9)
    log.append_as_leader([large, small], LeaderEpoch(1), 0)
    assert log.read(Offset(4), 1, log.log_end) == stored(small, 4, 1)
    assert read_all(log)[2:] == [stored(large, 2, 1), stored(small, 4, 1)]


def test_truncation_below_the_log_start_empties_the_log(place: Place) -> None:
    log = place.open()
    log.append_as_leader(batch(10), EPOCH, 0)
    log.trim_to(Offset(4))
    assert log.truncate_to(Offset(6), 0) == 4
    assert (log.log_start, log.log_end, log.size_bytes) == (4, 4, 0)
    assert log.truncate_to(Offset(99), 0) == 4


def test_a_restarted_log_forgets_everything(place: Place, fs: ForgetfulFs) -> None:
    log = place.open()
    fill(log, 20)
    log.append_as_leader(batch(producer=(1, 0, 0)), EPOCH, 0)
    log.restart_at(Offset(500))
    assert (log.log_start, log.log_end, log.size_bytes) == (500, 500, 0)
    assert len(log.state.producers) == 0
    again = Place(fs.survivors(Nothing()), TracedStore(place.store.states[0])).open()
    assert (again.log_start, again.log_end) == (500, 500)
    log.restart_at(Offset(0))
    log.append_as_follower(stored(batch(), 0, 0), 0)
    assert len(read_all(log)) == 1
