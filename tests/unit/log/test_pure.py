"""Indexes, epochs and aborted ranges against dumb twins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suiro.model.errors import CorruptBatch
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log.aborted import AbortedIndex, AbortedRange
from cluster.log.config import FOREVER, LogConfig
from cluster.log.epochs import EpochEnd, LeaderEpochs
from cluster.log.index import OffsetIndex, TimeIndex
from cluster.log.retention import SegmentFacts, retained_from

U32 = (1 << 32) - 1
steps = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5_000)), max_size=40)


def rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Running sums: both columns rise strictly."""
    total, found = (0, 0), []
    for first, second in pairs:
        total = (total[0] + first, total[1] + second)
        found.append(total)
    return found


# -- indexes --------------------------------------------------------------------------------------


@given(steps, st.integers(-5, 2_100))
def test_offset_index_finds_what_a_search_of_the_list_finds(
    pairs: list[tuple[int, int]], asked: int
) -> None:
    entries = rising(pairs)
    index = OffsetIndex()
    for entry in entries:
        index.add(*entry)
    assert index.floor(asked) == max((e for e in entries if e[0] <= asked), default=(0, 0))
    assert index.position_from(asked, -1) == min((p for r, p in entries if r >= asked), default=-1)
    assert index.count_below(asked) == sum(r < asked for r, _ in entries)
    assert index.last == (entries[-1] if entries else (0, 0))


@given(st.lists(st.tuples(st.integers(-1, 100), st.integers(0, 50)), max_size=30))
def test_time_index_never_points_behind_the_first_newer_record(
    stamps: list[tuple[int, int]],
) -> None:
    """Batch i has timestamp stamps[i]; an entry is made before every batch."""
    index, newest, newest_at = TimeIndex(), -1, 0
    for at, (stamp, _) in enumerate(stamps):
        if at:
            index.add(newest, newest_at)
        if stamp > newest:
            newest, newest_at = stamp, at
    for asked in range(102):
        first = next((at for at, (stamp, _) in enumerate(stamps) if stamp >= asked), len(stamps))
        assert index.floor(asked) <= first


def blocks(index: OffsetIndex | TimeIndex, splits: list[int]) -> bytes:
    """The index as several flushes write it."""
    whole, written, data = len(index), 0, b""
    for split in sorted({min(split, whole) for split in splits} | {whole}):
        if split > written:
            part = type(index).decode(data)[0] if data else type(index)()
            assert len(part) == written
            head = type(index).decode(index.encode(0))[0]
            head.keep(split)
            data += head.encode(written)
            written = split
    return data


@given(steps, st.lists(st.integers(0, 40), max_size=4), st.data())
def test_a_damaged_index_file_gives_a_true_prefix(
    pairs: list[tuple[int, int]], splits: list[int], data: st.DataObject
) -> None:
    entries = rising(pairs)
    index = OffsetIndex()
    for entry in entries:
        index.add(*entry)
    content = bytearray(blocks(index, splits)) if entries else bytearray()
    assert OffsetIndex.decode(content)[1]
    kind = data.draw(st.sampled_from(["cut", "zeros", "flip", "garbage"]))
    at = data.draw(st.integers(0, max(0, len(content) - 1)))
    if kind == "cut":
        del content[at:]
    elif kind == "zeros":
        content += bytes(data.draw(st.integers(1, 64)))
    elif kind == "flip" and content:
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        content += data.draw(st.binary(min_size=1, max_size=40))
    found, _ = OffsetIndex.decode(content)
    kept = len(found)
    assert [found.floor(relative) for relative, _ in entries[:kept]] == entries[:kept]
    assert kept <= len(entries)


def test_an_index_knows_whether_its_file_is_whole() -> None:
    index = TimeIndex()
    index.add(5, 0)
    index.add(5, 0)
    content = index.encode(0)
    assert TimeIndex.decode(content)[1]
    assert not TimeIndex.decode(content + bytes(8))[1]
    assert not TimeIndex.decode(content[:-1])[1]
    falling = TimeIndex()
    falling.add(4, 0)
    found, whole = TimeIndex.decode(content + falling.encode(0))
    assert (len(found), whole) == (2, False)


# -- epochs ---------------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_epochs_equal_a_list_of_one_epoch_per_offset(bumps: list[int], cut: int, trim: int) -> None:
    epochs_by_offset, table, epoch = [], LeaderEpochs(), 0
    for offset, bump in enumerate(bumps):
        epoch += bump
        epochs_by_offset.append(epoch)
        table.assign(epoch, offset)
    end = min(cut, len(bumps))
    del epochs_by_offset[end:]
    table.truncate_from_end(Offset(end))
    start = min(trim, end)
    table.truncate_from_start(Offset(start))
    for offset in range(start, end):
        assert table.epoch_of(Offset(offset)) == epochs_by_offset[offset]
    assert LeaderEpochs.decode(table.encode()) == table
    if start < end:
        for asked in range(-1, epoch + 3):
            older = [o for o in range(start, end) if epochs_by_offset[o] <= asked]
            expected = EpochEnd(
                LeaderEpoch(epochs_by_offset[older[-1]] if older else asked),
                Offset(older[-1] + 1 if older else start),
            )
            assert table.end_offset_for(LeaderEpoch(asked), Offset(end)) == expected


def test_epochs_never_fall() -> None:
    table = LeaderEpochs()
    assert table.end_offset_for(LeaderEpoch(3), Offset(0)) is None
    table.assign(4, 0)
    with pytest.raises(CorruptBatch):
        table.assign(3, 5)


def test_a_new_epoch_replaces_one_whose_records_are_all_trimmed() -> None:
    table = LeaderEpochs()
    table.assign(1, 0)
    table.truncate_from_start(Offset(7))
    assert table.last == 1
    table.assign(2, 7)
    assert table.entries() == [(2, 7)]


# -- aborted ranges -------------------------------------------------------------------------------


@st.composite
def transactions(draw: st.DrawFn) -> list[AbortedRange]:
    """Aborted transactions of several producers, as a log with one event per offset has them."""
    still_open: dict[int, int] = {}
    found = []
    for offset in range(draw(st.integers(0, 60))):
        producer_id = draw(st.integers(1, 4))
        if producer_id in still_open and draw(st.booleans()):
            first = still_open.pop(producer_id)
            if draw(st.booleans()):
                stable = min(still_open.values(), default=offset + 1)
                found.append(AbortedRange(producer_id, first, offset, stable))
        else:
            still_open.setdefault(producer_id, offset)
    return found


@given(transactions(), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_aborted_ranges_equal_a_search_of_all(
    ranges: list[AbortedRange], start: int, end: int, cut: int
) -> None:
    index = AbortedIndex()
    for aborted in ranges:
        index.add(aborted)
    expected = [r for r in ranges if r.first < end and r.last >= start and start < end]
    if start < end:
        assert index.overlapping(Offset(start), Offset(end)) == expected
    assert AbortedIndex.decode(index.encode()) == index
    index.truncate_from_end(Offset(cut))
    assert index.overlapping(Offset(0), Offset(1_000)) == [r for r in ranges if r.last < cut]
    index.truncate_from_start(Offset(start))
    left = [r for r in ranges if start <= r.last < cut]
    assert (index.overlapping(Offset(0), Offset(1_000)), len(index)) == (left, len(left))


# -- retention ------------------------------------------------------------------------------------


def facts(*segments: tuple[int, int, int]) -> list[SegmentFacts]:
    """(records, bytes, newest timestamp) of segments that follow one another from offset 0."""
    found, end = [], 0
    for records, size, newest in segments:
        found.append(SegmentFacts(Offset(end), Offset(end + records), size, newest))
        end += records
    return found


@pytest.mark.parametrize(
    ("retention_ms", "retention_bytes", "limit", "expected"),
    [
        (FOREVER, FOREVER, 30, 0),
        (500, FOREVER, 30, 20),  # the newest record of the last segment is 400 ms old
        (399, FOREVER, 30, 30),  # by time the last segment goes too
        (500, FOREVER, 19, 10),  # the high watermark stands inside the second
        (FOREVER, 250, 30, 0),  # dropping the first would leave less than is to be kept
        (FOREVER, 200, 30, 10),
        (FOREVER, 0, 30, 20),  # by size the last one stays
        (900, 0, 30, 20),
    ],
)
def test_retention(retention_ms: int, retention_bytes: int, limit: int, expected: int) -> None:
    config = LogConfig(retention_ms=retention_ms, retention_bytes=retention_bytes)
    segments = facts((10, 100, 100), (10, 100, 300), (10, 100, 600))
    assert retained_from(segments, config, limit=Offset(limit), now_ms=1_000) == expected


def test_retention_goes_oldest_first_and_by_bytes_where_nothing_has_a_timestamp() -> None:
    by_time = LogConfig(retention_ms=10)
    held = facts((10, 100, 5_000), (10, 100, 1))
    assert retained_from(held, by_time, limit=Offset(20), now_ms=1_000) == 0
    silent = facts((10, 100, -1), (10, 100, -1))
    assert retained_from(silent, by_time, limit=Offset(20), now_ms=1_000) == 0
    by_bytes = LogConfig(retention_ms=10, retention_bytes=100)
    assert retained_from(silent, by_bytes, limit=Offset(20), now_ms=1_000) == 10


def test_what_has_just_been_written_is_not_old_whatever_its_timestamps_say() -> None:
    config = LogConfig(retention_ms=100)
    backfilled = SegmentFacts(Offset(0), Offset(5), 10, max_timestamp_ms=1, last_append_ms=950)
    assert retained_from([backfilled], config, limit=Offset(5), now_ms=1_000) == 0
    assert retained_from([backfilled], config, limit=Offset(5), now_ms=1_051) == 5
