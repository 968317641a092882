"""Feed the decoder batches that nobody wrote: `python -m tests.fuzz.decoder --count 1000000`.

Sound batches of every feature are bent at a place that means something (a length, a width, a flag,
a count, a compressed section), cut, stretched or mixed, and mostly sealed again, so that it is not
the CRC that refuses them. Whatever the bytes: only CorruptBatch comes out, or columns that agree
with themselves, and memory stays bounded. The run is a function of its seed; a failing case is
written to a file that `--replay` reads.
"""

from __future__ import annotations

import argparse
import re
import resource
import struct
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np
from suiro.model.arrow import to_arrow
from suiro.model.batch import Compression, seal
from suiro.model.columns import BatchOptions, Columns, decode, encode_lists, read_keys
from suiro.model.compact import filter_batch
from suiro.model.compression import compress, decompress
from suiro.model.errors import CorruptBatch
from suiro.model.limits import BATCH_DECODED_BYTES_MAX, BATCH_RECORDS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS: Final = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    1 << 20,
    (1 << 31) - 1,
    (1 << 32) - 1,
)
# (position, bytes) of every field that a decoder believes
HEADER_FIELDS: Final = (
    (0, 8), (8, 4), (16, 1), (21, 2), (23, 4), (27, 8), (35, 8), (57, 4),
    (61, 1), (62, 2), (64, 4), (68, 4), (72, 4), (76, 4),
)  # fmt: skip
SECTIONS_START: Final = 80
RSS_MIB_MAX: Final = 1024


@dataclass
class Report:
    """What happened: how many were refused, and by which check."""

    accepted: int = 0
    refusals: Counter[str] = field(default_factory=Counter)

    @property
    def refused(self) -> int:
        return sum(self.refusals.values())


def run(count: int, seed: int) -> Report:
    """Try `count` malformed batches."""
    rng = Random(seed)
    corpus = make_corpus(rng)
    report = Report()
    for number in range(count):
        batch = malform(rng, corpus)
        try:
            kind = attempt(batch, thorough=number % 8 == 0)
        except BaseException as error:
            path = Path(f"fuzz-{seed}-{number}.batch")
            path.write_bytes(batch)
            error.add_note(f"case {number} of seed {seed}; the batch is in {path}")
            raise
        if kind is None:
            report.accepted += 1
        else:
            report.refusals[kind] += 1
    return report


def attempt(batch: bytes | bytearray, *, thorough: bool = True) -> str | None:
    """Decode; None if it went well and the columns are consistent, else which check refused."""
    try:
        columns = decode(batch)
    except CorruptBatch as error:
        return re.sub(r"(0x[0-9a-f]+|-?\d+)", "#", error.message)[:60]
    check_consistent(columns)
    assert read_keys(batch).tombstones().tolist() == columns.tombstones().tolist()
    if thorough and len(columns) <= 10_000:
        to_arrow(columns, headers=True).validate(full=True)
        keep = np.arange(len(columns)) % 2 == 0
        kept = filter_batch(batch, keep)
        assert kept is None or len(decode(kept)) == int(keep.sum())
    return None


def check_consistent(columns: Columns) -> None:
    """Every column has as many entries as the header says, in order and within its bounds."""
    count, header = len(columns), columns.header
    assert 0 <= count <= BATCH_RECORDS_MAX
    offsets, times = columns.offsets(), columns.timestamps_ms()
    assert len(offsets) == len(times) == count
    if not count:
        return
    assert header.base_offset <= int(offsets[0])
    assert int(offsets[-1]) <= header.last_offset
    assert bool((offsets[1:] > offsets[:-1]).all())
    assert int(times.max()) == header.max_timestamp_ms
    if count > 10_000:
        return
    records = list(columns.records("fuzzed", 0))
    assert len(records) == count
    assert all(record.key is None or type(record.key) is bytes for record in records)
    keys_bytes = sum(len(record.key or b"") for record in records)
    assert keys_bytes == (0 if columns.keys is None else columns.keys.data.nbytes)
    if columns.headers is not None:
        assert sum(len(record.headers) for record in records) == len(columns.headers.names)


# -- sound batches --------------------------------------------------------------------------------


def make_corpus(rng: Random) -> list[bytes]:
    """A few batches of every feature and size, under every compression."""
    corpus = []
    for compression in Compression:
        for count in (1, 2, 9, 40, 100):
            for features in range(8):
                batch = make_batch(rng, count, features, compression)
                corpus.append(bytes(batch))
                kept = filter_batch(batch, np.array([rng.random() < 0.5 for _ in range(count)]))
                if kept is not None:
                    corpus.append(bytes(kept))
    return corpus


def make_batch(rng: Random, count: int, features: int, compression: Compression) -> bytearray:
    nulls, wide, headed = features & 1, features & 2, features & 4
    span = rng.choice((0, 3, 1000, 1 << 20, 1 << 40))

    def text(size: int) -> bytes | None:
        return None if nulls and rng.random() < 0.3 else b"word %d " % rng.randrange(9) * size

    def pairs() -> list[tuple[str, bytes | None]]:
        return [(rng.choice(("h", "naïve", "水路")), text(1)) for _ in range(rng.randrange(4))]

    return encode_lists(
        [text(rng.randrange(3)) for _ in range(count)],
        [text(rng.randrange(60 if wide else 4)) for _ in range(count)],
        timestamps_ms=[1_700_000_000_000 + rng.randint(0, span) for _ in range(count)],
        headers=[pairs() for _ in range(count)] if headed else None,
        options=BatchOptions(compression=compression),
    )


# -- malformations --------------------------------------------------------------------------------


def malform(rng: Random, corpus: list[bytes]) -> bytearray:
    """One sound batch, bent one to three times; sealed again nine times in ten."""
    batch = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        mutation = rng.choices(MUTATIONS, WEIGHTS)[0]
        batch = mutation(rng, batch, corpus)
    if rng.random() < 0.8 and len(batch) >= SECTIONS_START:
        struct.pack_into(">i", batch, 8, len(batch) - 12)
    if rng.random() < 0.9 and len(batch) >= 21:
        seal(batch)
    return batch


def flip(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """One bit anywhere."""
    if batch:
        batch[rng.randrange(len(batch))] ^= 1 << rng.randrange(8)
    return batch


def set_field(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """A field of the header or the prelude becomes an awkward number, or is off by a little."""
    position, size = rng.choice(HEADER_FIELDS)
    if len(batch) >= position + size:
        _disturb(rng, batch, position, size, "big")
    return batch


def set_array(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """A number inside a section: a length, a delta, a bitmap, a header count."""
    size = rng.choice((1, 1, 2, 4, 8))
    end = rng.choice((len(batch), min(len(batch), SECTIONS_START + 64))) - size
    if end > SECTIONS_START:
        _disturb(rng, batch, rng.randrange(SECTIONS_START, end), size, "little")
    return batch


def exchange(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """Two bytes change places: sums stay right, what they sum up does not."""
    if len(batch) > SECTIONS_START + 1:
        a = rng.randrange(SECTIONS_START, len(batch))
        b = min(len(batch) - 1, a + rng.randrange(1, 12))
        batch[a], batch[b] = batch[b], batch[a]
    return batch


def set_flags(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """Other widths, other columns, another compression."""
    if len(batch) >= SECTIONS_START:
        if rng.random() < 0.5:
            struct.pack_into(">H", batch, 62, rng.randrange(1 << rng.choice((4, 7, 11, 16))))
        else:
            batch[22] = batch[22] & ~7 | rng.randrange(8)
    return batch


def truncate(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """Cut the end; half the time the stored length of the value section follows."""
    cut = rng.randrange(1, rng.choice((4, 64, 4096)))
    batch = batch[: max(0, len(batch) - cut)]
    return _restore_value(rng, batch)


def extend(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """Bytes too many."""
    batch += rng.randbytes(rng.randrange(1, 40))
    return _restore_value(rng, batch)


def splice(rng: Random, batch: bytearray, corpus: list[bytes]) -> bytearray:
    """The front of one batch and the back of another."""
    other = rng.choice(corpus)
    if rng.random() < 0.5:
        return bytearray(batch[:SECTIONS_START] + other[SECTIONS_START:])
    cut = rng.randrange(min(len(batch), len(other)) + 1)
    return bytearray(batch[:cut] + other[cut:])


def bend_inside(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """Open a section, bend what is in it, and compress it again."""
    opened = _open_sections(batch)
    if opened is None:
        return batch
    codec, sections = opened
    section = bytearray(sections[which := rng.randrange(2)])
    for _ in range(rng.choice((1, 1, 4))):
        if section:
            place = rng.randrange(min(len(section), rng.choice((16, 400, 10_000))))
            section[place] = rng.choice((0, 1, 255, rng.randrange(256)))
    if rng.random() < 0.2:
        section = section[: rng.randrange(len(section) + 1)]
    sections[which] = bytes(section)
    return _close_sections(batch, codec, sections)


def bomb(rng: Random, batch: bytearray, _corpus: list[bytes]) -> bytearray:
    """A little that becomes much, or that says it does."""
    if len(batch) < SECTIONS_START:
        return batch
    codec = rng.choice(list(Compression)[1:])
    batch[22] = batch[22] & ~7 | codec
    size = 1 << (rng.randrange(20, 27) if rng.random() < 0.002 else rng.randrange(8, 14))
    packed = bytes(compress(codec, bytes(size)))
    claim = rng.choice((size, size - 1, size + 1, size * 4, BATCH_DECODED_BYTES_MAX, 1 << 31))
    other = rng.choice((0, struct.unpack_from(">I", batch, 72)[0]))
    if rng.random() < 0.5:
        sections, lengths = packed, (claim, len(packed), 0, 0)
    else:
        key_stored = struct.unpack_from(">I", batch, 68)[0]
        keys = bytes(batch[SECTIONS_START : SECTIONS_START + key_stored])
        sections = keys + packed
        key_length = struct.unpack_from(">I", batch, 64)[0]
        lengths = (key_length, len(keys), rng.choice((claim, other)), len(packed))
    out = batch[:SECTIONS_START] + sections
    struct.pack_into(">IIII", out, 64, *lengths)
    if rng.random() < 0.3:
        count = rng.choice((0, 1, size, BATCH_RECORDS_MAX, BATCH_RECORDS_MAX - 1))
        struct.pack_into(">i", out, 57, count)
        struct.pack_into(">i", out, 23, max(0, count - 1))
    return out


MUTATIONS: Final[list[Callable[[Random, bytearray, list[bytes]], bytearray]]] = [
    flip, set_field, set_array, exchange, set_flags, truncate, extend, splice, bend_inside, bomb,
]  # fmt: skip
WEIGHTS: Final = [3, 4, 4, 2, 2, 1, 1, 1, 4, 1]


def _disturb(rng: Random, batch: bytearray, position: int, size: int, order: str) -> None:
    assert order in ("big", "little")
    end = position + size
    old = int.from_bytes(batch[position:end], "big" if order == "big" else "little")
    new = rng.choice((rng.choice(NUMBERS), old + rng.choice((-1, 1, 8)), 1 << (8 * size - 1)))
    new &= (1 << 8 * size) - 1
    batch[position:end] = new.to_bytes(size, "big" if order == "big" else "little")


def _restore_value(rng: Random, batch: bytearray) -> bytearray:
    """Make the stored length of the value section true again, and sometimes its length too."""
    if len(batch) < SECTIONS_START or rng.random() < 0.5:
        return batch
    stored = len(batch) - SECTIONS_START - struct.unpack_from(">I", batch, 68)[0]
    if stored >= 0:
        struct.pack_into(">I", batch, 76, stored)
        if rng.random() < 0.7:
            struct.pack_into(">I", batch, 72, stored)
    return batch


def _open_sections(batch: bytearray) -> tuple[Compression, list[bytes]] | None:
    if len(batch) < SECTIONS_START or batch[22] & 7 > Compression.ZSTD:
        return None
    codec = Compression(batch[22] & 7)
    key_length, key_stored, value_length, value_stored = struct.unpack_from(">IIII", batch, 64)
    middle = SECTIONS_START + key_stored
    stored = (bytes(batch[SECTIONS_START:middle]), bytes(batch[middle:]))
    if len(stored[1]) != value_stored or max(key_length, value_length) > 1 << 20:
        return None
    sections = []
    for data, length in zip(stored, (key_length, value_length), strict=True):
        try:
            raw = len(data) == length
            sections.append(data if raw else bytes(decompress(codec, data, length)))
        except CorruptBatch:
            return None
    return codec, sections


def _close_sections(batch: bytearray, codec: Compression, sections: list[bytes]) -> bytearray:
    out = batch[:SECTIONS_START]
    lengths = []
    for section in sections:
        packed = bytes(compress(codec, section)) if section else b""
        stored = packed if len(packed) < len(section) else section
        out += stored
        lengths += [len(section), len(stored)]
    struct.pack_into(">IIII", out, 64, *lengths)
    return out


# -- the command ----------------------------------------------------------------------------------


def rss_peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path, help="decode one file that a run has left")
    arguments = parser.parse_args()
    if arguments.replay:
        print(attempt(arguments.replay.read_bytes()) or "accepted")
        return 0
    began, rss_before = time.monotonic(), rss_peak_mib()
    report = run(arguments.count, arguments.seed)
    seconds, rss = time.monotonic() - began, rss_peak_mib()
    for kind, hits in report.refusals.most_common():
        print(f"{hits:9,d}  {kind}")
    print(
        f"{arguments.count:,} batches, seed {arguments.seed}: {report.refused:,} refused by "
        f"{len(report.refusals)} kinds of check, {report.accepted:,} accepted and consistent; "
        f"{seconds:.0f} s, peak RSS {rss_before} -> {rss} MiB (bound {RSS_MIB_MAX})"
    )
    return 0 if rss < RSS_MIB_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
