"""Whether what clients were told can be true: P1 to P8 and P10 of RELIABILITY.md over one history.

A history is what senders were answered and what readers were given; the last read of a partition
is the one after everything has healed. The checker is told nothing else, shares no code with the
product, and takes O(n log n). Names of anomalies follow Jepsen's workload for Kafka.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from suiro.verify.payload import Payload, decode

if TYPE_CHECKING:
    from collections.abc import Iterator


class Outcome(Enum):
    """What a sender knows: stored, certainly not stored, or neither."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Send(NamedTuple):
    """One send, from the call to its answer."""

    payload: Payload
    outcome: Outcome
    offset: int
    """-1 unless it is OK."""
    invoked_s: float
    answered_s: float


class Read(NamedTuple):
    """One record as a reader was given it; reads of one reader in the order of its polls."""

    reader: str
    topic: str
    partition: int
    offset: int
    value: bytes


class Advertised(NamedTuple):
    """Where somebody was told that a partition ends; each by one asker, in the order of asking."""

    topic: str
    partition: int
    latest: int
    asked_s: float


class Anomaly(NamedTuple):
    promise: str
    name: str
    detail: str

    def __str__(self) -> str:
        return f"{self.promise} {self.name}: {self.detail}"


@dataclass
class History:
    """Everything that was told, and which reader read all of it at the end."""

    sends: list[Send] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    advertised: list[Advertised] = field(default_factory=list)
    final_reader: str = "final"
    without_gaps: bool = True
    """False where compaction or transactions leave offsets without records."""


def check(history: History) -> list[Anomaly]:
    """Every promise that the history breaks; empty if it may be what happened."""
    placed = [(read, _decoded(read)) for read in history.reads]
    final = {
        (read.topic, read.partition, read.offset): payload
        for read, payload in placed
        if read.reader == history.final_reader and payload is not None
    }
    return [
        *_misplaced(history, placed),
        *_divergent(history, placed),
        *_lost(history, final),
        *_duplicates(final),
        *_out_of_order(final),
        *_real_time(history),
        *_failed_but_read(history, placed),
        *_discontinuous(history),
        *_regressed(history),
    ]


def _decoded(read: Read) -> Payload | None:
    try:
        return decode(read.value)
    except ValueError:
        return None


def _misplaced(history: History, placed: list[tuple[Read, Payload | None]]) -> Iterator[Anomaly]:
    """P6: nothing is invented, and nothing is where it was not sent."""
    invoked = {send.payload for send in history.sends}
    for read, payload in placed:
        if payload is None:
            yield Anomaly("P6", "corrupt", f"{read.value[:60]!r} at {_where(read)}")
        elif payload not in invoked:
            yield Anomaly("P6", "invented", f"{payload} at {_where(read)}")
        elif (payload.topic, payload.partition) != (read.topic, read.partition):
            yield Anomaly("P6", "misplaced", f"{payload} at {_where(read)}")


def _divergent(history: History, placed: list[tuple[Read, Payload | None]]) -> Iterator[Anomaly]:
    """P2: an offset has one value, for all readers and in every answer, at all times."""
    values: dict[tuple[str, int, int], Payload] = {}
    for read, payload in placed:
        if payload is not None:
            first = values.setdefault((read.topic, read.partition, read.offset), payload)
            if first != payload:
                yield Anomaly("P2", "divergent_offset", f"{first} and {payload} at {_where(read)}")
    for send in _acknowledged(history):
        payload = send.payload
        first = values.setdefault((payload.topic, payload.partition, send.offset), payload)
        if first != payload:
            yield Anomaly("P2", "divergent_offset", f"{payload} acknowledged at {send.offset}")


def _lost(history: History, final: dict[tuple[str, int, int], Payload]) -> Iterator[Anomaly]:
    """P1: what was acknowledged is there in the end."""
    for send in _acknowledged(history):
        payload = send.payload
        if final.get((payload.topic, payload.partition, send.offset)) != payload:
            yield Anomaly("P1", "lost_write", f"{payload} acknowledged at {send.offset}")


def _duplicates(final: dict[tuple[str, int, int], Payload]) -> Iterator[Anomaly]:
    """P3: a value is in at most one place."""
    first: dict[Payload, int] = {}
    for (_, _, offset), payload in final.items():
        if first.setdefault(payload, offset) != offset:
            yield Anomaly("P3", "duplicate", f"{payload} at {first[payload]} and {offset}")


def _out_of_order(final: dict[tuple[str, int, int], Payload]) -> Iterator[Anomaly]:
    """P4: a producer's records are in the order in which it sent them; of one that is there
    more than once the first place counts, the others are duplicates.
    """
    newest: dict[tuple[str, int, int], int] = {}
    seen: set[Payload] = set()
    for (topic, partition, offset), payload in sorted(final.items()):
        if payload in seen:
            continue
        seen.add(payload)
        key = (topic, partition, payload.producer)
        if newest.get(key, -1) > payload.sequence:
            yield Anomaly("P4", "non_monotonic_send", f"{payload} at {offset} after {newest[key]}")
        newest[key] = max(newest.get(key, -1), payload.sequence)


def _real_time(history: History) -> Iterator[Anomaly]:
    """P5: what was sent after another was acknowledged stands behind it."""
    by_partition: dict[tuple[str, int], list[Send]] = defaultdict(list)
    for send in _acknowledged(history):
        by_partition[send.payload.topic, send.payload.partition].append(send)
    for sends in by_partition.values():
        answered = sorted(sends, key=lambda send: send.answered_s)
        highest, at = -1, 0
        for send in sorted(sends, key=lambda send: send.invoked_s):
            while at < len(answered) and answered[at].answered_s < send.invoked_s:
                highest = max(highest, answered[at].offset)
                at += 1
            if send.offset <= highest:
                yield Anomaly("P5", "real_time", f"{send.payload} at {send.offset} <= {highest}")


def _failed_but_read(
    history: History, placed: list[tuple[Read, Payload | None]]
) -> Iterator[Anomaly]:
    """P7: a definite failure is final."""
    failed = {send.payload for send in history.sends if send.outcome is Outcome.FAIL}
    for read, payload in placed:
        if payload in failed:
            yield Anomaly("P7", "failed_read", f"{payload} at {_where(read)}")


def _discontinuous(history: History) -> Iterator[Anomaly]:
    """P8: a reader goes forward, and leaves nothing out."""
    positions: dict[tuple[str, str, int], int] = {}
    for read in history.reads:
        key = (read.reader, read.topic, read.partition)
        expected = positions.get(key, read.offset)
        if read.offset < expected:
            yield Anomaly("P8", "non_monotonic_poll", f"{_where(read)} after {expected - 1}")
        elif read.offset > expected and history.without_gaps:
            yield Anomaly("P8", "skipped", f"{_where(read)}, expected {expected}")
        positions[key] = read.offset + 1


def _regressed(history: History) -> Iterator[Anomaly]:
    """P10: `latest` never goes back, and is never before what was acknowledged by then."""
    acknowledged = sorted(_acknowledged(history), key=lambda send: send.answered_s)
    floor: dict[tuple[str, int], int] = {}
    at = 0
    for told in sorted(history.advertised, key=lambda told: told.asked_s):
        while at < len(acknowledged) and acknowledged[at].answered_s < told.asked_s:
            send = acknowledged[at]
            where = (send.payload.topic, send.payload.partition)
            floor[where] = max(floor.get(where, 0), send.offset + 1)
            at += 1
        where = (told.topic, told.partition)
        least = floor.get(where, 0)
        if told.latest < least:
            name = f"{told.topic}-{told.partition} ends at {told.latest}, it was {least}"
            yield Anomaly("P10", "latest_went_back", name)
        floor[where] = max(least, told.latest)


def _acknowledged(history: History) -> Iterator[Send]:
    return (send for send in history.sends if send.outcome is Outcome.OK)


def _where(read: Read) -> str:
    return f"{read.topic}-{read.partition}@{read.offset} ({read.reader})"
