"""Bit rot, lost pages, cut and swapped files: found, named, never served, never made shorter."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from suiro.model.batch import read_header, walk
from suiro.model.errors import CorruptBatch, StorageFailed
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log import segment
from tests.sim.disk import Everything, ForgetfulFs, Operation
from tests.unit.log.kit import DIRECTORY, SMALL, Place, TracedStore, batch, head, marker, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.log.partition_log import PartitionLog

LOG = ".log"
INDEXES = (".index", ".timeindex")


class Specimen:
    """A log of several segments, on a disk that can be copied and damaged."""

    def __init__(self, *, closed: bool) -> None:
        place = Place()
        log = place.open()
        for number in range(24):
            epoch = LeaderEpoch(number // 7)
            producer = (number % 3, number // 9, 0)
            known = log.state.producers.get(producer[0])
            if number % 5 == 4 and known is not None:
                raw = marker(producer[0], known.producer_epoch + 1, commit=number % 2 == 0)
                log.append_control(raw, epoch, 0)
                continue
            if known is not None:
                producer = (known.producer_id, known.producer_epoch, known.next_sequence)
            raw = batch(2, size=40 + number, producer=producer, transactional=True, fill=number)
            log.append_as_leader(raw, epoch, 0)
            if number == 15:
                log.sync()
                log.checkpoint(log.log_end, 0)
        self.batches = read_all(log)
        self.by_offset = {head(raw).base_offset: raw for raw in self.batches}
        self.state = log.state.encode()
        self.recovery_point = log.synced_end
        self.end = log.log_end
        if closed:
            log.close()
            self.recovery_point = self.end
        assert isinstance(place.fs, ForgetfulFs)
        self.fs = place.fs
        self.store = place.store.content

    def copy(self) -> ForgetfulFs:
        return self.fs.survivors(Everything())

    def files(self, suffixes: str | tuple[str, ...]) -> list[Path]:
        return [DIRECTORY / n for n in self.fs.names(DIRECTORY) if n.endswith(suffixes)]

    def check(self, fs: ForgetfulFs, store: dict[bytes, bytes] | None = None) -> str:
        """Open the damaged copy: what is served is what was written, and what is not served is
        named; below the recovery point the log never ends.
        """
        place = Place(fs, TracedStore(self.store if store is None else store))
        try:
            log = place.open()
        except StorageFailed:
            return "refused"
        assert log.log_end >= self.recovery_point
        outcome = "cut" if log.log_end < self.end else "whole"
        for raw in self.batches:
            header = head(raw)
            if header.end > log.log_end:
                break
            for bytes_max in (1, 400):
                data = read_or_name(log, header.base_offset, bytes_max)
                if data is None:
                    outcome = "named"
                else:
                    assert read_header(data).base_offset == header.base_offset
                    self.check_run(data)
        return outcome

    def check_run(self, data: bytes) -> None:
        """Every batch is the one that was written.

        But for its leader epoch, where no snapshot knows that: the CRC leaves it out, so a higher
        one can be told from a true one only by what comes after it.
        """
        for position, header in walk(data):
            found = data[position : position + header.size]
            written = self.by_offset[header.base_offset]
            if self.recovery_point < self.end:
                found = found[:12] + written[12:16] + found[16:]
            assert found == written


def read_or_name(log: PartitionLog, offset: int, bytes_max: int) -> bytes | None:
    """What is read, or None if the damaged place was named."""
    try:
        return log.read(Offset(offset), bytes_max, log.log_end)
    except CorruptBatch as error:
        return None if error.hints.keys() == {"segment", "position"} else b"?"


def damages(content: bytes, rng: Random, samples: int) -> Iterator[bytes]:
    """The content with one thing wrong with it."""
    for _ in range(samples):
        at = rng.randrange(len(content))
        kind = rng.choice(["flip", "flip", "flip", "zeros", "cut", "zero tail", "garbage"])
        flipped = bytes([content[at] ^ 1 << rng.randrange(8)])
        page = content[at : at + 64]
        yield {
            "flip": content[:at] + flipped + content[at + 1 :],
            "zeros": content[:at] + bytes(len(page)) + content[at + 64 :],
            "cut": content[:at],
            "zero tail": content + bytes(1 + at),
            "garbage": content[:at] + rng.randbytes(len(content) - at),
        }[kind]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "INDEX_FLUSH_ENTRIES", 2)


@pytest.mark.parametrize("closed", [True, False])
def test_damaged_data_is_named_and_never_served(*, closed: bool) -> None:
    specimen, rng = Specimen(closed=closed), Random(1)
    outcomes: dict[str, int] = {}
    for path in specimen.files(LOG):
        content = specimen.fs.content(path)
        for damaged in damages(content, rng, 90):
            if damaged != content:
                fs = specimen.copy()
                fs.replace(path, damaged)
                outcome = specimen.check(fs)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["named"] > 20
    assert outcomes["refused"] > 20
    assert ("cut" in outcomes) == (not closed)


@pytest.mark.parametrize("closed", [True, False])
def test_every_flipped_bit_of_a_header_is_noticed(*, closed: bool) -> None:
    """Also in the two fields that the CRC leaves out."""
    specimen = Specimen(closed=closed)
    path = specimen.files(LOG)[1]
    first = read_header(specimen.fs.content(path))
    for at in (0, first.size):
        for position in range(at, at + 61):
            for bit in (0, 5):
                fs = specimen.copy()
                fs.flip_bit(path, position, bit)
                assert specimen.check(fs) != "whole", f"byte {position - at} bit {bit}"


@pytest.mark.parametrize("closed", [True, False])
def test_a_damaged_missing_or_foreign_index_costs_nothing(*, closed: bool) -> None:
    specimen, rng = Specimen(closed=closed), Random(2)
    for path in specimen.files(INDEXES):
        contents = [b"", *(specimen.fs.content(other) for other in specimen.files(INDEXES))]
        contents += damages(specimen.fs.content(path), rng, 20)
        for content in contents:
            fs = specimen.copy()
            fs.replace(path, content)
            assert specimen.check(fs) == "whole"
        fs = specimen.copy()
        fs.remove(path)
        assert specimen.check(fs) == "whole"


@pytest.mark.parametrize("closed", [True, False])
def test_a_damaged_or_stale_store_costs_time_only(*, closed: bool) -> None:
    specimen, rng = Specimen(closed=closed), Random(3)
    for key, value in specimen.store.items():
        for damaged in [b"", *damages(value, rng, 20)]:
            assert specimen.check(specimen.copy(), {**specimen.store, key: damaged}) == "whole"
        without = {k: v for k, v in specimen.store.items() if k != key}
        assert specimen.check(specimen.copy(), without) == "whole"
    place = Place(specimen.copy(), TracedStore())
    assert place.open().state.encode() == specimen.state


def test_a_missing_segment_is_a_failure_and_not_a_shorter_log() -> None:
    specimen = Specimen(closed=True)
    for path in specimen.files(LOG):
        fs = specimen.copy()
        fs.remove(path)
        assert specimen.check(fs) == "refused"
    for path in specimen.files(LOG)[1:-1]:
        fs = specimen.copy()
        fs.remove(path)
        assert specimen.check(fs, {}) == "refused"  # nor without a store


def test_swapped_segments_are_refused() -> None:
    specimen = Specimen(closed=True)
    first, second, *_ = specimen.files(LOG)
    fs = specimen.copy()
    fs.replace(first, specimen.fs.content(second))
    assert specimen.check(fs) in ("refused", "named")
    fs.replace(second, specimen.fs.content(first))
    assert specimen.check(fs) in ("refused", "named")


def test_damage_under_a_running_log_stops_the_read_there_and_nowhere_else() -> None:
    place = Place()
    log = place.open()
    raws = [batch(2, size=60, fill=number) for number in range(6)]
    for raw in raws:
        log.append_as_leader(raw, LeaderEpoch(0), 0)
    assert isinstance(place.fs, ForgetfulFs)
    fs = place.fs
    path = DIRECTORY / f"{0:020d}.log"
    fs.flip_bit(path, 3 * len(raws[0]) + 80, 4)
    good = log.read(Offset(0), 1 << 20, log.log_end)
    assert len(good) == 3 * len(raws[0])
    with pytest.raises(CorruptBatch) as refused:
        log.read(Offset(6), 1 << 20, log.log_end)
    assert refused.value.hints == {"segment": 0, "position": 3 * len(raws[0])}
    assert len(log.read(Offset(8), 1 << 20, log.log_end)) == 2 * len(raws[0])


def test_a_disk_that_cannot_be_read_gives_a_typed_error() -> None:
    specimen = Specimen(closed=True)

    def broken(operation: Operation) -> OSError | None:
        is_read = operation.kind == "read" and operation.path.name.endswith(LOG)
        return OSError(5, "Input/output error") if is_read else None

    fs = specimen.copy()
    fs.fault = broken
    assert specimen.check(fs) == "refused"
    fs = specimen.copy()
    log: PartitionLog = Place(fs, TracedStore(specimen.store)).open(SMALL)
    fs.fault = broken
    for read in (
        lambda: log.read(Offset(0), 1, log.log_end),
        lambda: log.first_batch_header_at(Offset(3)),
        lambda: log.offset_for_timestamp(0),
    ):
        with pytest.raises(StorageFailed):
            read()
    fs.fault = None
    assert read_all(log) == specimen.batches
