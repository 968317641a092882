"""A reader of segment files that shares nothing with the product, to compare replicas with.

It knows `docs/batch-format.md` and the names of the files, and nothing else: what it finds wrong
is wrong on disk, whatever the product believes. It reads uncompressed batches down to the values,
others down to their headers and CRC.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_HEADER = struct.Struct(">qiibIhiqqqhii")
_PRELUDE = struct.Struct(">BHIIII")
_COMPRESSION = 0x07
_WIDTHS = {0: 0, 1: 1, 2: 2, 3: 4}
_STAMP_WIDTHS = {0: 0, 1: 1, 2: 2, 3: 4, 4: 8}


class BadSegment(Exception):
    """What is on disk is not a log."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One batch as it is on disk."""

    base_offset: int
    end: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    attributes: int
    raw: bytes

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & 0x20)

    def values(self) -> list[bytes | None]:
        """The values of the records; BadSegment if they are compressed."""
        if self.attributes & _COMPRESSION:
            raise BadSegment(f"the batch at {self.base_offset} is compressed")
        return _values(self)


def read_log(directory: Path, *, compacted: bool = False) -> list[StoredBatch]:
    """All batches of a partition's directory: whole, with good CRCs, in order; and without holes,
    unless the log is compacted.
    """
    batches: list[StoredBatch] = []
    for path in sorted(directory.glob("*.log")):
        expected = batches[-1].end if batches else int(path.stem)
        if int(path.stem) != expected and not (compacted and int(path.stem) > expected):
            raise BadSegment(f"{path.name} follows {expected}")
        for batch in _batches(path):
            if batch.base_offset != expected and not (compacted and batch.base_offset > expected):
                raise BadSegment(f"{path.name}: {batch.base_offset} follows {expected}")
            batches.append(batch)
            expected = batch.end
    return batches


def below(batches: Sequence[StoredBatch], end: int) -> list[StoredBatch]:
    """Those that lie wholly below an offset."""
    return [batch for batch in batches if batch.end <= end]


def chain(batches: Sequence[StoredBatch]) -> str:
    """A hash over every byte, in order."""
    digest = hashlib.sha256()
    for batch in batches:
        digest.update(batch.raw)
    return digest.hexdigest()[:16]


def epoch_starts(batches: Sequence[StoredBatch]) -> dict[int, int]:
    """Where each leader epoch begins."""
    starts: dict[int, int] = {}
    for batch in batches:
        starts.setdefault(batch.leader_epoch, batch.base_offset)
    if list(starts) != sorted(starts):
        raise BadSegment(f"the leader epochs go back: {starts}")
    return starts


def differences(replicas: dict[str, list[StoredBatch]], end: int) -> list[str]:
    """P11: where replicas differ below `end`; nothing if they are equal byte for byte."""
    found: list[str] = []
    (first_name, first), *others = ((name, below(log, end)) for name, log in replicas.items())
    reached = first[-1].end if first else 0
    if reached != end:
        found.append(f"{first_name} ends at {reached}, not at {end}")
    for name, log in others:
        if chain(log) == chain(first):
            continue
        pairs = zip(first, log, strict=False)
        at = next((one.base_offset for one, two in pairs if one != two), "their end")
        found.append(f"{first_name} and {name} differ at {at}")
    return found


def _batches(path: Path) -> Iterator[StoredBatch]:
    data = path.read_bytes()
    at = 0
    while at < len(data):
        if len(data) - at < _HEADER.size:
            raise BadSegment(f"{path.name}: {len(data) - at} bytes at {at} are no header")
        fields = _HEADER.unpack_from(data, at)
        base, length, leader_epoch, magic, crc, attributes, last_delta, *_ = fields
        raw = data[at : at + 12 + length]
        if magic != 2 or len(raw) != 12 + length or crc32c.crc32c(raw[21:]) != crc:
            raise BadSegment(f"{path.name}: the batch at byte {at} (offset {base}) is damaged")
        yield StoredBatch(
            base_offset=base,
            end=base + last_delta + 1,
            leader_epoch=leader_epoch,
            producer_id=fields[9],
            producer_epoch=fields[10],
            base_sequence=fields[11],
            count=fields[12],
            attributes=attributes,
            raw=raw,
        )
        at += len(raw)


def _values(batch: StoredBatch) -> list[bytes | None]:
    _, flags, keys_length, _, values_length, _ = _PRELUDE.unpack_from(batch.raw, _HEADER.size)
    start = _HEADER.size + _PRELUDE.size
    keys = batch.raw[start : start + keys_length]
    values = batch.raw[start + keys_length : start + keys_length + values_length]
    n = batch.count
    at = n * _STAMP_WIDTHS[flags >> 4 & 7] + (4 * n if flags >> 10 & 1 else 0)
    at += n * _WIDTHS[flags & 3]
    width = _WIDTHS[flags >> 2 & 3]
    if width == 0:
        return [None] * n
    lengths = [int.from_bytes(keys[at + i * width :][:width], "little") for i in range(n)]
    at += n * width + (-(-n // 8) if flags >> 7 & 1 else 0)
    valid = [True] * n
    if flags >> 8 & 1:
        valid = [bool(keys[at + i // 8] >> (i % 8) & 1) for i in range(n)]
    found: list[bytes | None] = []
    start = 0
    for length, is_there in zip(lengths, valid, strict=True):
        found.append(values[start : start + length] if is_there else None)
        start += length
    return found
