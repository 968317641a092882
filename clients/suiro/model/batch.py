"""The 61-byte header in front of every batch: read it, check it, stamp it.

The fields and their order are those of Kafka's v2 batch. The broker looks at nothing else: it
checks the CRC, stamps the fields that the CRC does not cover (base offset and leader epoch) and
stores the bytes it was given. What follows the header is `columns`' business (attribute bit 14
set).

    0 base offset i64 | 8 length i32 | 12 leader epoch i32 | 16 magic i8 | 17 crc u32
    21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64
    43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 count i32

`length` counts what follows it; the CRC-32C covers everything from the attributes on.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from suiro.model.errors import CorruptBatch
from suiro.model.limits import BATCH_BYTES_MAX, BATCH_RECORDS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

Buffer = bytes | bytearray | memoryview

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LENGTH_END: Final = 12
CRC_START: Final = 17
CRC_END: Final = 21
MAGIC: Final = 2
OFFSET_MAX: Final = (1 << 63) - 2  # so that the end of a batch fits 64 bits too

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
COLUMNAR_BIT: Final = 0x4000
KNOWN_ATTRIBUTES: Final = (
    COMPRESSION_MASK | TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT | COLUMNAR_BIT
)

_STAMP: Final = struct.Struct(">qii")
STAMP_BYTES: Final = _STAMP.size
_CRC: Final = struct.Struct(">I")

assert HEADER_BYTES == 61


class Compression(IntEnum):
    """How a batch's sections are compressed; the numbers are Kafka's.

    >>> with suiro.Producer(compression=suiro.Compression.LZ4) as producer:
    ...     producer.send("orders", b"value").result(10).topic
    'orders'
    """

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


COMPRESSION_LAST: Final = int(Compression.ZSTD)


class BatchHeader(NamedTuple):
    """One parsed header. A named tuple, not a dataclass: it is made once per batch on the data
    path.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch, header included."""
        return LENGTH_END + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def end(self) -> int:
        """The offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; sequences wrap from 2^31 - 1 to 0."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFF_FFFF

    @property
    def compression(self) -> Compression:
        return Compression(self.attributes & COMPRESSION_MASK)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Parse and check the header at `position`; the batch must lie whole inside `data`."""
    if len(data) - position < HEADER_BYTES:
        raise CorruptBatch(f"{len(data) - position} bytes cannot hold a {HEADER_BYTES}-byte header")
    header = parse_header(data, position)
    if len(data) - position < LENGTH_END + header.length:
        raise CorruptBatch(
            f"the header promises {header.size} bytes, only {len(data) - position} are there"
        )
    return header


def parse_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`, all of which is there; of the batch only a part may be."""
    fields = HEADER.unpack_from(data, position)
    # Looked at by place, in one expression: this runs several times for every batch there is.
    base_offset, length, _, magic, _, attributes, delta, _, _, _, _, _, count = fields
    header = BatchHeader._make(fields)
    if not (
        magic == MAGIC
        and HEADER_BYTES <= LENGTH_END + length <= BATCH_BYTES_MAX
        and 0 <= delta < BATCH_RECORDS_MAX
        and 0 <= base_offset <= OFFSET_MAX - delta
        and 0 <= count <= delta + 1
        and not attributes & ~KNOWN_ATTRIBUTES
        and attributes & COMPRESSION_MASK <= COMPRESSION_LAST
    ):
        raise CorruptBatch(_what_is_wrong(header))
    return header


def _what_is_wrong(header: BatchHeader) -> str:
    """Why the fields of a header cannot all be true."""
    if header.magic != MAGIC:
        return f"magic is {header.magic}, expected {MAGIC}"
    if not HEADER_BYTES <= header.size <= BATCH_BYTES_MAX:
        return f"a batch of {header.size} bytes is outside [{HEADER_BYTES}, {BATCH_BYTES_MAX}]"
    if not 0 <= header.last_offset_delta < BATCH_RECORDS_MAX:
        return f"last offset delta {header.last_offset_delta} is out of bounds"
    if not 0 <= header.base_offset <= OFFSET_MAX - header.last_offset_delta:
        return f"base offset {header.base_offset} is out of bounds"
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        return f"{header.record_count} records, last offset delta {header.last_offset_delta}"
    return f"unknown attributes {header.attributes:#06x}"


def batch_crc(data: Buffer, header: BatchHeader, position: int = 0) -> int:
    """CRC-32C over everything from the attributes on."""
    return int(crc32c(memoryview(data)[position + CRC_END : position + header.size]))


def check_crc(data: Buffer, header: BatchHeader, position: int = 0) -> None:
    """Raise CorruptBatch unless the bytes are the ones that were written."""
    found = batch_crc(data, header, position)
    if found != header.crc:
        raise CorruptBatch(f"CRC-32C is {found:#010x}, the header says {header.crc:#010x}")


def stamp(header: BatchHeader, base_offset: int, leader_epoch: int) -> bytes:
    """The first 16 bytes of the batch, as the leader stores them; the CRC does not cover them."""
    return _STAMP.pack(base_offset, header.length, leader_epoch)


def seal(batch: bytearray) -> None:
    """Write the CRC of a batch whose every other byte is final."""
    _CRC.pack_into(batch, CRC_START, crc32c(memoryview(batch)[CRC_END:]))


def walk(data: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Each (position, header) of a run of whole batches; the CRCs are not checked."""
    position = 0
    while position < len(data):
        header = read_header(data, position)
        yield position, header
        position += header.size
