"""What a test record carries: who sent it, where to, as which, and a CRC over all of it.

A record that lands in another partition, is cut, mixed up or made up cannot pass for the one that
was sent (row 25 of RELIABILITY.md). Shares nothing with the product.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

_TAIL = struct.Struct(">iiqII")
"""partition, producer, sequence, bytes of filler, CRC-32 of everything else."""


class Payload(NamedTuple):
    """One record, by what its sender knew."""

    run: str
    topic: str
    partition: int
    producer: int
    sequence: int

    def encode(self, filler: bytes = b"") -> bytes:
        head = f"{self.run}|{self.topic}|".encode() + filler
        tail = (self.partition, self.producer, self.sequence, len(filler))
        body = head + _TAIL.pack(*tail, 0)
        return head + _TAIL.pack(*tail, zlib.crc32(body))


def decode(value: bytes) -> Payload:
    """The inverse; ValueError for anything that was not encoded exactly so."""
    if len(value) < _TAIL.size:
        raise ValueError(f"{len(value)} bytes are too few")
    head = value[: -_TAIL.size]
    partition, producer, sequence, filler, crc = _TAIL.unpack(value[-_TAIL.size :])
    body = head + _TAIL.pack(partition, producer, sequence, filler, 0)
    if zlib.crc32(body) != crc:
        raise ValueError("the CRC does not fit")
    run, topic, _ = head.split(b"|", 2)
    return Payload(run.decode(), topic.decode(), partition, producer, sequence)
