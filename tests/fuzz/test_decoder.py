"""A short run of the decoder's fuzzer, and the worst bombs with the memory measured."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from suiro.model.batch import Compression, seal
from suiro.model.columns import BatchOptions, decode, encode_lists
from suiro.model.compression import compress
from suiro.model.errors import CorruptBatch
from suiro.model.limits import BATCH_DECODED_BYTES_MAX, BATCH_RECORDS_MAX, MIB

from tests.fuzz.decoder import run

REACHED = [
    "a batch without compression has",
    "a column that is all null",
    "a header name is not UTF",
    "a header name starts inside",
    "a null has a length",
    "a section decompresses to",
    "a section does not decompress as GZIP",
    "a section does not decompress as LZ",
    "a section does not decompress as SNAPPY",
    "a section does not decompress as ZSTD",
    "a section is stored in more",
    "a validity bitmap has bits",
    "base offset",
    "CRC",
    "header values of",
    "impossible header widths",
    "keys of",
    "layout version",
    "sections of # and # bytes do not fill",
    "sections of # and # decoded bytes",
    "the offset deltas do not rise",
    "the records' header counts",
    "timestamps from",
    "unknown flags",
    "values of",
]


def test_malformed_batches_are_refused_by_every_check() -> None:
    report = run(20_000, seed=7)
    assert report.accepted + report.refused == 20_000
    assert report.accepted > 1_000, "most malformations should be close to a sound batch"
    missed = [
        check for check in REACHED if not any(kind.startswith(check) for kind in report.refusals)
    ]
    assert not missed, "the generator no longer reaches these checks"


def _peak_bytes(batch: bytearray) -> int:
    seal(batch)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch):
            decode(batch)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_a_bomb_is_refused_before_it_is_unpacked(codec: Compression) -> None:
    """The lengths in the key section contradict the size that the value section claims."""
    packed = bytes(compress(codec, bytes(64 * MIB)))
    batch = encode_lists(None, [b"v"], timestamps_ms=0, options=BatchOptions(compression=codec))
    batch[-1:] = packed
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">II", batch, 72, 64 * MIB, len(packed))
    assert _peak_bytes(batch) < MIB


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
def test_a_bomb_that_understates_its_size_gets_no_more_room(codec: Compression) -> None:
    packed = bytes(compress(codec, bytes(64 * MIB)))
    claimed = 2 * len(packed)
    batch = encode_lists(None, [b"v"], timestamps_ms=0, options=BatchOptions(compression=codec))
    batch[80:] = packed
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">IIII", batch, 64, claimed, len(packed), 0, 0)
    assert _peak_bytes(batch) < 2 * claimed + MIB


def test_a_bomb_at_the_limit_stays_within_it() -> None:
    """The worst there is: a key section of the full decoded size, wrong only at its end."""
    size = BATCH_DECODED_BYTES_MAX
    packed = bytes(compress(Compression.ZSTD, bytes(size)))
    options = BatchOptions(compression=Compression.ZSTD)
    batch = encode_lists([b"k"], [b"v"], timestamps_ms=0, options=options)
    batch[80:] = packed
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">IIII", batch, 64, size, len(packed), 0, 0)
    assert _peak_bytes(batch) < size + MIB


def test_a_count_is_believed_only_with_bytes_behind_it() -> None:
    batch = encode_lists([b"k"], [b"v"], timestamps_ms=0)
    struct.pack_into(">i", batch, 23, BATCH_RECORDS_MAX - 1)
    struct.pack_into(">i", batch, 57, BATCH_RECORDS_MAX)
    assert _peak_bytes(batch) < MIB
