"""What a log's content implies: `LogState`, made of epochs, producers and aborted ranges.

It is a function of the batches alone: `apply` takes them one by one, in the log's order, when they
are appended and when they are replayed. A snapshot of it at some offset only saves replaying. A
snapshot knows the leader epoch of the last batch below its offset: logs that agree there agree
on all that is below, so a snapshot of a log that was rewritten since is recognised.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from zlib import crc32

from suiro.model.control import ControlType
from suiro.model.ids import Offset

from cluster.log.aborted import AbortedIndex, AbortedRange
from cluster.log.epochs import LeaderEpochs
from cluster.log.producers import ProducerStates

if TYPE_CHECKING:
    from suiro.model.batch import BatchHeader, Buffer

_CHECKSUM: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<BqIII")
_VERSION: Final = 1


@dataclass(slots=True)
class LogState:
    """The state below `end`, the offset of the next batch."""

    end: Offset
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    producers: ProducerStates = field(default_factory=ProducerStates)
    aborted: AbortedIndex = field(default_factory=AbortedIndex)

    def apply(self, header: BatchHeader, marker: ControlType | None, now_ms: int) -> None:
        """The next batch; `marker` is what a control batch says, None for all others."""
        assert header.base_offset == self.end, (header, self.end)
        assert header.is_control == (marker is not None)
        self.epochs.assign(header.leader_epoch, header.base_offset)
        self.end = Offset(header.end)
        if marker is None:
            if header.has_producer:
                self.producers.apply(header, now_ms)
            return
        decided = self.producers.apply_marker(header, now_ms)
        if decided is not None and marker is ControlType.ABORT:
            self.aborted.add(
                AbortedRange(
                    producer_id=header.producer_id,
                    first=decided.first,
                    last=decided.marker_at,
                    stable=self.producers.first_open(default=header.end),
                )
            )

    def trim(self, log_start: Offset) -> None:
        """The log starts later now. Producers stay until they expire: a retry may still come."""
        self.epochs.truncate_from_start(log_start)
        self.aborted.truncate_from_start(log_start)

    def encode(self) -> bytes:
        """A snapshot."""
        parts = (self.epochs.encode(), self.producers.encode(), self.aborted.encode())
        head = _HEAD.pack(_VERSION, self.end, *map(len, parts))
        body = b"".join((head, *parts))
        return _CHECKSUM.pack(crc32(body)) + body


def decode_state(data: Buffer) -> LogState | None:
    """The inverse of `LogState.encode`; None if the bytes are damaged or of an unknown version."""
    view = memoryview(data)
    if len(view) < _CHECKSUM.size + _HEAD.size:
        return None
    body = view[_CHECKSUM.size :]
    version, end, *lengths = _HEAD.unpack_from(body, 0)
    sound = crc32(body) == _CHECKSUM.unpack_from(view, 0)[0]
    if not sound or version != _VERSION or sum(lengths) != len(body) - _HEAD.size:
        return None
    first = _HEAD.size
    second, third = first + lengths[0], first + lengths[0] + lengths[1]
    return LogState(
        end=Offset(end),
        epochs=LeaderEpochs.decode(body[first:second]),
        producers=ProducerStates.decode(body[second:third]),
        aborted=AbortedIndex.decode(body[third:]),
    )
