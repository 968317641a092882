"""What a partition remembers of its producers: `ProducerStates`.

For every producer the last five batches, which tell a retry from a new batch; its epoch, which
fences older instances; and its open transaction, which holds the last stable offset back. All of
it follows from the log alone: `check` decides and changes nothing, `apply` and `apply_marker`
are the only mutators and are what replays the log (I2: never ahead of the log).

A transaction marker carries a producer epoch above that of the records it decides. So whatever of
an ended transaction comes late has an old epoch and is refused, and a marker that comes late or
twice cannot end the transaction after it (T5).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from suiro.model.errors import (
    ConcurrentTransaction,
    InvalidTransaction,
    OutOfOrderSequence,
    ProducerFenced,
    UnknownProducer,
)
from suiro.model.ids import Offset
from suiro.model.limits import PRODUCE_IN_FLIGHT_MAX

if TYPE_CHECKING:
    from suiro.model.batch import BatchHeader, Buffer

NO_OFFSET: Final = Offset(-1)
SEQUENCE_MASK: Final = 0x7FFF_FFFF

_COUNTS: Final = struct.Struct("<II")
_STATE: Final = struct.Struct("<qhqqqB")
_SENT: Final = struct.Struct("<iiq")
_DECIDED: Final = struct.Struct("<qq")


@dataclass(frozen=True, slots=True)
class Fresh:
    """The batch is new and in order: append it."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The batch is in the log already: answer what was answered then."""

    base_offset: Offset
    end: Offset


FRESH: Final = Fresh()


class Sent(NamedTuple):
    """One batch that a producer has in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int

    @property
    def end(self) -> int:
        return self.base_offset + ((self.last_sequence - self.first_sequence) & SEQUENCE_MASK) + 1


class ProducerState(NamedTuple):
    """One producer: its newest batches last, all of its newest epoch."""

    producer_id: int
    producer_epoch: int
    sent: tuple[Sent, ...]
    open_from: int
    """The first offset of its open transaction, or NO_OFFSET."""
    marker_at: int
    """The offset of the marker that began this epoch, or NO_OFFSET."""
    seen_ms: int
    """When this replica last heard of it; only expiry looks at it."""

    @property
    def next_sequence(self) -> int:
        return (self.sent[-1].last_sequence + 1) & SEQUENCE_MASK if self.sent else 0


class Decided(NamedTuple):
    """A transaction whose marker is in the log, perhaps not yet below the high watermark."""

    first: int
    marker_at: int


class ProducerStates:
    """The producers of one partition."""

    __slots__ = ("_decided", "_open", "_states")

    def __init__(self) -> None:
        self._states: dict[int, ProducerState] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset, which rises
        self._decided: list[Decided] = []  # by marker

    def __len__(self) -> int:
        return len(self._states)

    def get(self, producer_id: int) -> ProducerState | None:
        return self._states.get(producer_id)

    def states(self) -> list[ProducerState]:
        return [self._states[producer_id] for producer_id in sorted(self._states)]

    def check(self, header: BatchHeader) -> Fresh | Duplicate:
        """Is the producer's batch new, or a retry? Raises if it may not be appended at all."""
        return check_batch(self._states.get(header.producer_id), header)

    def check_marker(self, header: BatchHeader) -> Fresh | Duplicate:
        """Is the marker new, or a retry? Raises ProducerFenced if it comes late."""
        state = self._states.get(header.producer_id)
        if state is None or header.producer_epoch > state.producer_epoch:
            return FRESH
        same = header.producer_epoch == state.producer_epoch
        if same and state.open_from == NO_OFFSET and state.marker_at != NO_OFFSET:
            return Duplicate(Offset(state.marker_at), Offset(state.marker_at + 1))
        raise _fenced(header, state)

    def apply(self, header: BatchHeader, now_ms: int) -> None:
        """The producer's batch is in the log."""
        state = after_batch(self._states.get(header.producer_id), header, now_ms)
        self._states[header.producer_id] = state
        if header.is_transactional:
            self._open.setdefault(header.producer_id, header.base_offset)

    def apply_marker(self, header: BatchHeader, now_ms: int) -> Decided | None:
        """The marker is in the log; returns the transaction that it decided, if one was open."""
        first = self._open.pop(header.producer_id, NO_OFFSET)
        self._states[header.producer_id] = ProducerState(
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            sent=(),
            open_from=NO_OFFSET,
            marker_at=header.base_offset,
            seen_ms=now_ms,
        )
        if first == NO_OFFSET:
            return None
        decided = Decided(first, header.base_offset)
        self._decided.append(decided)
        return decided

    def first_open(self, default: int) -> int:
        """Where the oldest transaction without a marker begins, or `default`."""
        return next(iter(self._open.values()), default)

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Everything below is decided, by markers that are themselves below the high watermark
        (T3).
        """
        undecided = (d.first for d in self._decided if d.marker_at >= high_watermark)
        first = min(undecided, default=high_watermark)
        return Offset(min(high_watermark, first, self.first_open(high_watermark)))

    def forget_decided(self, high_watermark: Offset) -> None:
        """Markers below the high watermark are final and need no more watching."""
        if self._decided and self._decided[0].marker_at < high_watermark:
            self._decided = [d for d in self._decided if d.marker_at >= high_watermark]

    def expire(self, before_ms: int) -> int:
        """Forget producers not heard of since; one with an open transaction stays (T6)."""
        old = [
            state.producer_id
            for state in self._states.values()
            if state.seen_ms < before_ms and state.open_from == NO_OFFSET
        ]
        for producer_id in old:
            del self._states[producer_id]
        return len(old)

    def encode(self) -> bytes:
        parts = [_COUNTS.pack(len(self._states), len(self._decided))]
        for state in self.states():
            parts.append(
                _STATE.pack(
                    state.producer_id,
                    state.producer_epoch,
                    state.open_from,
                    state.marker_at,
                    state.seen_ms,
                    len(state.sent),
                )
            )
            parts += [_SENT.pack(*sent) for sent in state.sent]
        parts += [_DECIDED.pack(*decided) for decided in self._decided]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: Buffer) -> ProducerStates:
        """The inverse of `encode`; ValueError or struct.error if it was not made by it."""
        states = cls()
        count, decided_count = _COUNTS.unpack_from(data, 0)
        at = _COUNTS.size
        for _ in range(count):
            producer_id, epoch, open_from, marker_at, seen_ms, sent_count = _STATE.unpack_from(
                data, at
            )
            at += _STATE.size
            sent = tuple(
                Sent._make(_SENT.unpack_from(data, at + number * _SENT.size))
                for number in range(sent_count)
            )
            at += sent_count * _SENT.size
            states._states[producer_id] = ProducerState(
                producer_id, epoch, sent, open_from, marker_at, seen_ms
            )
        end = at + decided_count * _DECIDED.size
        if end != len(data):
            raise ValueError(f"{len(data)} bytes of producer states, {end} expected")
        states._decided = [Decided._make(d) for d in _DECIDED.iter_unpack(memoryview(data)[at:])]
        still_open = [state for state in states._states.values() if state.open_from != NO_OFFSET]
        still_open.sort(key=lambda state: state.open_from)
        states._open = {state.producer_id: state.open_from for state in still_open}
        return states


def check_batch(state: ProducerState | None, header: BatchHeader) -> Fresh | Duplicate:
    """Does the batch follow from what is known of its producer?"""
    if state is None:
        if header.base_sequence != 0:
            raise UnknownProducer(
                f"producer {header.producer_id} begins with sequence {header.base_sequence}",
                expected=0,
            )
        return FRESH
    if header.producer_epoch < state.producer_epoch:
        raise _fenced(header, state)
    if header.producer_epoch == state.producer_epoch:
        for sent in state.sent:
            if sent[:2] == (header.base_sequence, header.last_sequence):
                return Duplicate(Offset(sent.base_offset), Offset(sent.end))
    _check_transaction(state, header)
    expected = state.next_sequence if header.producer_epoch == state.producer_epoch else 0
    if header.base_sequence != expected:
        raise OutOfOrderSequence(
            f"producer {header.producer_id} sends sequence {header.base_sequence}, "
            f"expected {expected}",
            expected=expected,
        )
    return FRESH


def after_batch(state: ProducerState | None, header: BatchHeader, now_ms: int) -> ProducerState:
    """What is known of the producer once its batch is in the log."""
    sent: tuple[Sent, ...] = ()
    open_from = marker_at = int(NO_OFFSET)
    if state is not None:
        open_from = state.open_from
        if state.producer_epoch == header.producer_epoch:
            kept = len(state.sent) - (PRODUCE_IN_FLIGHT_MAX - 1)
            sent = tuple(islice(state.sent, max(0, kept), None))
            marker_at = state.marker_at
    if header.is_transactional and open_from == NO_OFFSET:
        open_from = header.base_offset
    return ProducerState(
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        sent=(*sent, Sent(header.base_sequence, header.last_sequence, header.base_offset)),
        open_from=open_from,
        marker_at=marker_at,
        seen_ms=now_ms,
    )


def _check_transaction(state: ProducerState, header: BatchHeader) -> None:
    if state.open_from == NO_OFFSET:
        return
    if header.producer_epoch != state.producer_epoch:
        raise ConcurrentTransaction(
            f"producer {header.producer_id}: the marker of its last transaction is still to come"
        )
    if not header.is_transactional:
        raise InvalidTransaction(
            f"producer {header.producer_id} writes outside of its open transaction"
        )


def _fenced(header: BatchHeader, state: ProducerState) -> ProducerFenced:
    return ProducerFenced(
        f"producer {header.producer_id} has epoch {header.producer_epoch}, "
        f"and epoch {state.producer_epoch} was seen"
    )
