"""Check what is to be appended, and lay it out: bytes in, `Draft` out, nothing written yet.

A draft is all or nothing: one bad batch refuses the whole append before anything has changed. The
CRC of a batch is computed here, once; payloads are not copied.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, assert_never

from suiro.model.batch import STAMP_BYTES, check_crc, read_header, stamp, walk
from suiro.model.control import ControlType, decode_marker
from suiro.model.errors import BatchTooLarge, CorruptBatch, FencedLeaderEpoch, InvalidRequest
from suiro.model.ids import LeaderEpoch, Offset

from cluster.log.producers import FRESH, Duplicate, Fresh, ProducerState, after_batch, check_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suiro.model.batch import BatchHeader, Buffer

    from cluster.log.state import LogState
NOTHING: Final = Offset(0)


@dataclass(slots=True)
class Draft:
    """What an append will write; nothing, if all of it is in the log already."""

    end: Offset
    """Everything handed in is below this, duplicates too."""
    base_offsets: list[Offset] = field(default_factory=list)
    """Of every batch handed in, in order; a duplicate has the offset it got the first time."""
    parts: list[Buffer] = field(default_factory=list)
    headers: list[BatchHeader] = field(default_factory=list)
    """Of every batch to be written, as it will be stored."""
    markers: list[ControlType | None] = field(default_factory=list)
    size: int = 0

    def add_duplicate(self, duplicate: Duplicate) -> None:
        self.base_offsets.append(duplicate.base_offset)
        self.end = max(self.end, duplicate.end)

    def add(self, header: BatchHeader, marker: ControlType | None = None) -> None:
        self.headers.append(header)
        self.markers.append(marker)
        self.base_offsets.append(Offset(header.base_offset))
        self.end = max(self.end, Offset(header.end))
        self.size += header.size

    def write_stamped(self, data: Buffer, position: int, header: BatchHeader) -> None:
        """The leader's own first 16 bytes, then the bytes it was given."""
        self.parts.append(stamp(header, header.base_offset, header.leader_epoch))
        self.parts.append(memoryview(data)[position + STAMP_BYTES : position + header.size])


class LeaderDraft:
    """Drafts for the leader: it gives offsets and its epoch, and tells retries from new batches."""

    __slots__ = ("_leader_epoch", "_now_ms", "_size_max", "_state")

    def __init__(
        self, state: LogState, leader_epoch: LeaderEpoch, size_max: int, now_ms: int
    ) -> None:
        if leader_epoch < state.epochs.last:
            raise FencedLeaderEpoch(
                f"leader epoch {leader_epoch} cannot append after epoch {state.epochs.last}"
            )
        self._state = state
        self._leader_epoch = leader_epoch
        self._size_max = size_max
        self._now_ms = now_ms

    def of_batches(self, batches: Buffer | Sequence[Buffer]) -> Draft:
        """Batches of producers, in one buffer or several."""
        draft, end = Draft(NOTHING), self._state.end
        ahead: dict[int, ProducerState] = {}  # producers as they will be after the batches so far
        for data, position, header in _each(batches):
            self._check_batch(data, position, header)
            known = ahead.get(header.producer_id) or self._state.producers.get(header.producer_id)
            verdict = check_batch(known, header) if header.has_producer else FRESH
            match verdict:
                case Duplicate():
                    draft.add_duplicate(verdict)
                case Fresh():
                    stored = self._stamped(header, end)
                    end = Offset(stored.end)
                    if header.has_producer:
                        ahead[header.producer_id] = after_batch(known, stored, self._now_ms)
                    draft.add(stored)
                    draft.write_stamped(data, position, stored)
                case other:
                    assert_never(other)
        if not draft.base_offsets:
            raise InvalidRequest("there is no batch to append")
        return draft

    def of_marker(self, batch: Buffer) -> Draft:
        """One control batch, from the transaction coordinator."""
        draft = Draft(NOTHING)
        header = read_header(batch)
        if header.size != len(batch) or not header.is_control:
            raise InvalidRequest("a transaction marker is one control batch and nothing else")
        check_crc(batch, header)
        marker = _read_marker(batch, header)
        verdict = self._state.producers.check_marker(header)
        match verdict:
            case Duplicate():
                draft.add_duplicate(verdict)
            case Fresh():
                header = self._stamped(header, self._state.end)
                draft.add(header, marker)
                draft.write_stamped(batch, 0, header)
            case other:
                assert_never(other)
        return draft

    def _stamped(self, header: BatchHeader, base_offset: int) -> BatchHeader:
        return header._replace(base_offset=base_offset, leader_epoch=self._leader_epoch)

    def _check_batch(self, data: Buffer, position: int, header: BatchHeader) -> None:
        """Refuse what no producer may send."""
        if header.size > self._size_max:
            raise BatchTooLarge(f"a batch of {header.size} bytes, {self._size_max} are allowed")
        if header.is_control:
            raise InvalidRequest("only a coordinator writes control batches")
        if header.record_count == 0 or header.record_count != header.last_offset_delta + 1:
            raise InvalidRequest(
                f"{header.record_count} records with a last offset delta of "
                f"{header.last_offset_delta}"
            )
        identified = header.producer_epoch >= 0 and header.base_sequence >= 0
        if header.has_producer and not identified:
            raise InvalidRequest("a producer id without an epoch or a sequence")
        if header.is_transactional and not header.has_producer:
            raise InvalidRequest("a transactional batch without a producer id")
        check_crc(data, header, position)


def draft_replica(state: LogState, data: Buffer) -> Draft:
    """Batches as the leader stored them: they have to continue this log exactly."""
    draft, end, leader_epoch = Draft(NOTHING), state.end, state.epochs.last
    for position, header in walk(data):
        if header.base_offset != end:
            raise InvalidRequest(
                f"a batch at offset {header.base_offset} cannot follow a log that ends at {end}",
                expected=end,
            )
        if header.leader_epoch < leader_epoch:
            raise InvalidRequest(
                f"leader epoch {header.leader_epoch} cannot follow epoch {leader_epoch}"
            )
        check_crc(data, header, position)
        draft.add(header, _read_marker(data, header, position) if header.is_control else None)
        end, leader_epoch = Offset(header.end), LeaderEpoch(header.leader_epoch)
    if not draft.base_offsets:
        raise InvalidRequest("there is no batch to append")
    draft.parts.append(data)
    return draft


def _each(batches: Buffer | Sequence[Buffer]) -> Iterator[tuple[Buffer, int, BatchHeader]]:
    buffers = [batches] if isinstance(batches, bytes | bytearray | memoryview) else batches
    for data in buffers:
        for position, header in walk(data):
            yield data, position, header


def _read_marker(data: Buffer, header: BatchHeader, position: int = 0) -> ControlType:
    """What a control batch says; its CRC has been checked."""
    if not header.has_producer or header.producer_epoch < 0 or not header.is_transactional:
        raise CorruptBatch("a control batch that belongs to no transaction")
    return decode_marker(data, position, verify_crc=False).kind
