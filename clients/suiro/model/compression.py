"""Compress and decompress one section of a batch.

Decompression is told the size that it must arrive at: it never writes, nor allocates, more than
that, and anything else (a library's error, too few bytes, bytes left over) is a CorruptBatch. The
caller has held that size against the limits.
"""

from __future__ import annotations

import threading
import zlib
from typing import TYPE_CHECKING, Final, assert_never

import cramjam
import lz4.block
import numpy as np
import zstandard

from suiro.model.batch import Compression
from suiro.model.errors import CorruptBatch

if TYPE_CHECKING:
    from suiro.model.batch import Buffer

ZSTD_LEVEL: Final = 1  # a log is written once and read often, but at line rate: ratio comes second
GZIP_LEVEL: Final = 1  # measured: three times as fast as level 6 for a tenth more bytes
_GZIP_WINDOW_BITS: Final = 31  # 15 bits of window, 16 for gzip's own header and trailer


class _Contexts(threading.local):
    """zstd's contexts cost more to make than a small section to compress; one of each per thread,
    since they may not be shared.
    """

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_contexts: Final = _Contexts()


def compress(codec: Compression, data: Buffer) -> Buffer:
    """The compressed bytes, which may be more than were given: the caller stores the smaller."""
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            # zlib at every size: cramjam was no faster and, at level 1, twice as large
            gzip = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW_BITS)
            return gzip.compress(data) + gzip.flush()
        case Compression.SNAPPY:
            return memoryview(cramjam.snappy.compress_raw(data))
        case Compression.LZ4:
            packed: bytes = lz4.block.compress(data, store_size=False)
            return packed
        case Compression.ZSTD:
            return _contexts.compressor.compress(data)
        case _:
            assert_never(codec)


def decompress(codec: Compression, data: Buffer, size: int) -> Buffer:
    """Exactly `size` bytes, or CorruptBatch."""
    try:
        found, result = _decompress(codec, data, size)
    except _LIBRARY_ERRORS as error:
        raise CorruptBatch(f"a section does not decompress as {codec.name}: {error}") from error
    if found != size:
        raise CorruptBatch(f"a section decompresses to {found} bytes, the prelude says {size}")
    return result


_LIBRARY_ERRORS: Final = (
    zlib.error,
    zstandard.ZstdError,
    lz4.block.LZ4BlockError,
    cramjam.DecompressionError,
)


def _decompress(codec: Compression, data: Buffer, size: int) -> tuple[int, Buffer]:
    """What came out, and how many bytes it is, -1 where it was not looked at further; no library
    is let write or allocate more than `size`.
    """
    match codec:
        case Compression.NONE:
            return len(data), data
        case Compression.GZIP:
            return _gunzip(data, size)
        case Compression.SNAPPY:
            if cramjam.snappy.decompress_raw_len(data) != size:
                return -1, b""
            room = np.empty(size, np.uint8).data  # not zeroed first, unlike a bytearray
            return cramjam.snappy.decompress_raw_into(data, room), room
        case Compression.LZ4:
            unpacked: bytes = lz4.block.decompress(data, uncompressed_size=size)
            return len(unpacked), unpacked
        case Compression.ZSTD:
            return _unzstd(data, size)
        case _:
            assert_never(codec)


def _gunzip(data: Buffer, size: int) -> tuple[int, Buffer]:
    gzip = zlib.decompressobj(_GZIP_WINDOW_BITS)
    out = gzip.decompress(data, size)
    # Asking for `size` bytes stops short of the trailer, whose check has to be reached
    more = gzip.decompress(gzip.unconsumed_tail, 1)
    complete = gzip.eof and not gzip.unused_data and not more
    return (len(out) if complete else -1), out


def _unzstd(data: Buffer, size: int) -> tuple[int, Buffer]:
    # What the frame itself says of its size would otherwise decide what is allocated
    if zstandard.frame_content_size(data) not in {size, -1}:
        return -1, b""
    out = _contexts.decompressor.decompress(data, max_output_size=size, allow_extra_data=False)
    return len(out), out
