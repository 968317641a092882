"""Several records as the data of one entry, and as a snapshot: each behind its length.

One decision is one entry, so that a replay sees all of its records or none.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from suiro.model.errors import CorruptBatch

if TYPE_CHECKING:
    from collections.abc import Iterable

_LENGTH = struct.Struct(">I")


def pack(records: Iterable[bytes]) -> bytes:
    parts: list[bytes] = []
    for record in records:
        parts += (_LENGTH.pack(len(record)), record)
    return b"".join(parts)


def unpack(data: bytes) -> list[bytes]:
    records = []
    position = 0
    while position < len(data):
        start = position + _LENGTH.size
        if start > len(data):
            raise CorruptBatch("the length of a record is cut short")
        position = start + _LENGTH.unpack_from(data, start - _LENGTH.size)[0]
        records.append(data[start:position])
    if position != len(data):
        raise CorruptBatch("the last record is cut short")
    return records
