"""The batch format once more, as plainly as it can be written: struct, one record at a time.

It shares no code with `suiro.model`; `docs/batch-format.md` is all it was written from. Decoding
trusts its input. The property tests hold the codec to it byte for byte and value for value.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass, field

import cramjam
import lz4.block
import zstandard

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
COLUMNAR = 0x4000


@dataclass
class Row:
    """One record. `offset_delta` None: the record's place in the list."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    offset_delta: int | None = None


@dataclass
class Envelope:
    """What the header says beside the records."""

    base_offset: int = 0
    leader_epoch: int = -1
    attributes: int = COLUMNAR
    last_offset_delta: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1


def encode(rows: list[Row], envelope: Envelope) -> bytes:
    """The whole batch."""
    base = min(row.timestamp_ms for row in rows)
    top = max(row.timestamp_ms for row in rows)
    headers = encode_headers(rows)
    flags, keys = encode_key_section(rows, base, top)
    flags += bool(headers) * 512
    values = b"".join(row.value or b"" for row in rows) + headers

    codec = envelope.attributes & 7
    stored_keys = squeeze(codec, keys)
    stored_values = squeeze(codec, values)
    last = len(rows) - 1 if envelope.last_offset_delta is None else envelope.last_offset_delta
    covered = struct.pack(">hi", envelope.attributes, last)
    covered += struct.pack(">qq", base, top)
    covered += struct.pack(">qh", envelope.producer_id, envelope.producer_epoch)
    covered += struct.pack(">ii", envelope.base_sequence, len(rows))
    covered += struct.pack(">BH", 1, flags)
    covered += struct.pack(">II", len(keys), len(stored_keys))
    covered += struct.pack(">II", len(values), len(stored_values))
    covered += stored_keys + stored_values
    head = struct.pack(">qi", envelope.base_offset, 4 + 1 + 4 + len(covered))
    head += struct.pack(">ibI", envelope.leader_epoch, 2, crc32c(covered))
    return head + covered


def encode_key_section(rows: list[Row], base: int, top: int) -> tuple[int, bytes]:
    """The flags that it decides, and the section."""
    delta_code = [top - base < limit for limit in (1, 2**8, 2**16, 2**32, 2**63)].index(True)
    key_code = length_code([row.key for row in rows])
    value_code = length_code([row.value for row in rows])
    some_null_key = key_code > 0 and any(row.key is None for row in rows)
    some_null_value = value_code > 0 and any(row.value is None for row in rows)
    compacted = rows[0].offset_delta is not None
    flags = key_code + value_code * 4 + delta_code * 16
    flags += some_null_key * 128 + some_null_value * 256 + compacted * 1024

    keys = b"".join(number("-BHIq"[delta_code], row.timestamp_ms - base) for row in rows)
    keys += b"".join(number("I" if compacted else "-", row.offset_delta or 0) for row in rows)
    keys += b"".join(number("-BHI"[key_code], len(row.key or b"")) for row in rows)
    keys += b"".join(number("-BHI"[value_code], len(row.value or b"")) for row in rows)
    if some_null_key:
        keys += bitmap([row.key is not None for row in rows])
    if some_null_value:
        keys += bitmap([row.value is not None for row in rows])
    return flags, keys + b"".join(row.key or b"" for row in rows)


def decode(batch: bytes) -> tuple[Envelope, list[Row]]:
    """The records of a batch that is known to be sound."""
    base_offset, _, leader_epoch, _, _ = struct.unpack(">qiibI", batch[:21])
    attributes, last, base, top = struct.unpack(">hiqq", batch[21:43])
    producer_id, producer_epoch, base_sequence, count = struct.unpack(">qhii", batch[43:61])
    _, flags, key_size, key_stored, value_size, _ = struct.unpack(">BHIIII", batch[61:80])
    codec = attributes & 7
    keys = Reader(unsqueeze(codec, batch[80 : 80 + key_stored], key_size))
    values = Reader(unsqueeze(codec, batch[80 + key_stored :], value_size))

    deltas = keys.numbers("-BHIq"[flags >> 4 & 7], count)
    offsets = keys.numbers("I" if flags & 1024 else "-", count)
    key_lengths = keys.numbers("-BHI"[flags & 3], count)
    value_lengths = keys.numbers("-BHI"[flags >> 2 & 3], count)
    key_valid = keys.bits(count) if flags & 128 else [flags & 3 != 0] * count
    value_valid = keys.bits(count) if flags & 256 else [flags >> 2 & 3 != 0] * count
    rows = []
    for i in range(count):
        key = keys.take(key_lengths[i])
        value = values.take(value_lengths[i])
        rows.append(
            Row(
                top if attributes & 8 else base + deltas[i],
                key if key_valid[i] else None,
                value if value_valid[i] else None,
                [],
                offsets[i] if flags & 1024 else None,
            )
        )
    if flags & 512:
        decode_headers(values, rows)
    envelope = Envelope(
        base_offset, leader_epoch, attributes, last, producer_id, producer_epoch, base_sequence
    )
    return envelope, rows


def encode_headers(rows: list[Row]) -> bytes:
    flat = [header for row in rows for header in row.headers]
    if not flat:
        return b""
    names = [name.encode() for name, _ in flat]
    values = [value for _, value in flat]
    most = max(len(row.headers) for row in rows)
    count_code = 1 if most < 2**8 else 2 if most < 2**16 else 3
    name_code = length_code(list(names))
    value_code = length_code(values)
    some_null = value_code > 0 and None in values
    block = struct.pack(
        ">BI", count_code + name_code * 4 + value_code * 16 + some_null * 64, len(flat)
    )
    for row in rows:
        block += number("-BHI"[count_code], len(row.headers))
    for name in names:
        block += number("-BHI"[name_code], len(name))
    for value in values:
        block += number("-BHI"[value_code], len(value or b""))
    if some_null:
        block += bitmap([value is not None for value in values])
    return block + b"".join(names) + b"".join(value or b"" for value in values)


def decode_headers(block: Reader, rows: list[Row]) -> None:
    codes, total = struct.unpack(">BI", block.take(5))
    counts = block.numbers("-BHI"[codes & 3], len(rows))
    name_lengths = block.numbers("-BHI"[codes >> 2 & 3], total)
    value_lengths = block.numbers("-BHI"[codes >> 4 & 3], total)
    valid = block.bits(total) if codes & 64 else [codes >> 4 & 3 != 0] * total
    names = [block.take(length).decode() for length in name_lengths]
    values = [block.take(length) for length in value_lengths]
    place = 0
    for row, count in zip(rows, counts, strict=True):
        for i in range(place, place + count):
            row.headers.append((names[i], values[i] if valid[i] else None))
        place += count


class Reader:
    """Bytes from the front."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def take(self, size: int) -> bytes:
        self.place += size
        return self.data[self.place - size : self.place]

    def numbers(self, kind: str, count: int) -> list[int]:
        if kind == "-":
            return [0] * count
        size = struct.calcsize("<" + kind)
        return [struct.unpack("<" + kind, self.take(size))[0] for _ in range(count)]

    def bits(self, count: int) -> list[bool]:
        data = self.take((count + 7) // 8)
        return [bool(data[i // 8] & 1 << i % 8) for i in range(count)]


def length_code(items: list[bytes | None]) -> int:
    lengths = [len(item) for item in items if item is not None]
    if not lengths:
        return 0
    return 1 if max(lengths) < 2**8 else 2 if max(lengths) < 2**16 else 3


def number(kind: str, value: int) -> bytes:
    return b"" if kind == "-" else struct.pack("<" + kind, value)


def bitmap(bits: list[bool]) -> bytes:
    data = bytearray((len(bits) + 7) // 8)
    for i, bit in enumerate(bits):
        if bit:
            data[i // 8] |= 1 << i % 8
    return bytes(data)


def squeeze(codec: int, data: bytes) -> bytes:
    packed = data
    if codec == GZIP:
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = packer.compress(data) + packer.flush()
    elif codec == SNAPPY:
        packed = bytes(cramjam.snappy.compress_raw(data))
    elif codec == LZ4:
        packed = lz4.block.compress(data, store_size=False)
    elif codec == ZSTD:
        packed = zstandard.ZstdCompressor(level=1).compress(data)
    return packed if len(packed) < len(data) else data


def unsqueeze(codec: int, stored: bytes, size: int) -> bytes:
    if len(stored) == size:
        return stored
    if codec == GZIP:
        return gzip.decompress(stored)
    if codec == SNAPPY:
        return bytes(cramjam.snappy.decompress_raw(stored))
    if codec == LZ4:
        return bytes(lz4.block.decompress(stored, uncompressed_size=size))
    return zstandard.ZstdDecompressor().decompress(stored)


CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # noqa: PLW2901 - the usual eight steps
    CRC_TABLE.append(byte)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF
