"""Each codec gives back what it was given, and nothing but CorruptBatch for anything else."""

from __future__ import annotations

import contextlib
import gzip
import threading

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from suiro.model.batch import Compression
from suiro.model.compression import compress, decompress
from suiro.model.errors import CorruptBatch

TEXT = b"the same words again and again, " * 40
REAL = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("codec", list(Compression))
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_round_trip(codec: Compression, wrap: type) -> None:
    for data in (b"x", TEXT, bytes(300_000)):
        assert bytes(decompress(codec, wrap(bytes(compress(codec, wrap(data)))), len(data))) == data


@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize("off_by", [-len(TEXT) + 1, -1, 1, 1 << 27])
def test_another_size_is_refused(codec: Compression, off_by: int) -> None:
    packed = compress(codec, TEXT)
    with pytest.raises(CorruptBatch):
        decompress(codec, packed, len(TEXT) + off_by)


@pytest.mark.parametrize("codec", REAL)
def test_cut_and_extended_input_is_refused(codec: Compression) -> None:
    packed = bytes(compress(codec, TEXT))
    for wrong in (packed[:-1], packed[:2], b"", packed + b"\0", packed * 2):
        with pytest.raises(CorruptBatch):
            decompress(codec, wrong, len(TEXT))


@pytest.mark.parametrize("codec", REAL)
@given(noise=st.binary(max_size=100), size=st.integers(1, 1000))
def test_noise_never_escapes_as_another_error(codec: Compression, noise: bytes, size: int) -> None:
    with contextlib.suppress(CorruptBatch):  # the only error there is
        assert len(decompress(codec, noise, size)) == size


def test_a_zstd_frame_need_not_tell_its_size() -> None:
    silent = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert decompress(Compression.ZSTD, silent, len(TEXT)) == TEXT
    with pytest.raises(CorruptBatch):
        decompress(Compression.ZSTD, silent, len(TEXT) - 1)


def test_gzip_checks_its_trailer() -> None:
    packed = bytearray(gzip.compress(TEXT))
    assert decompress(Compression.GZIP, packed, len(TEXT)) == TEXT
    packed[-5] ^= 1
    with pytest.raises(CorruptBatch):
        decompress(Compression.GZIP, packed, len(TEXT))


def test_threads_do_not_share_contexts() -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        data = bytes([seed]) * 1000 + TEXT
        try:
            for _ in range(200):
                packed = compress(Compression.ZSTD, data)
                assert decompress(Compression.ZSTD, packed, len(data)) == data
        except BaseException as error:  # a thread must hand its failure over
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
