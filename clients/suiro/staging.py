"""Records between `send` and their batch: `Chunk` while they are gathered, `Rows` from then on.

A chunk belongs to the thread that opened it: only that thread appends, key and value in one step,
so neither a lock nor a signal handler can come between them. The client's loop takes what is there
at any time; it closes a chunk by lowering its limit, which the owner sees at its next `send`.
Everything after that is done for whole runs of records, never for one.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from suiro.handle import Piece
from suiro.model.encode import encode_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suiro.handle import Outcomes, Places
    from suiro.model.encode import BatchOptions
    from suiro.model.error_base import SuiroError

RECORD_OVERHEAD: Final = 16
"""Bytes that a record costs beside its key, value and headers; for accounting only."""

CLOSED: Final = -1
NS_PER_MS: Final = 1_000_000


class Extra(NamedTuple):
    """What few records have."""

    headers: Any
    partition: int | None
    timestamp_ms: int | None


class Chunk:
    """Records of one topic, as one thread hands them in."""

    __slots__ = (
        "extras", "has_keys", "is_closed", "is_left", "last", "limit", "outcomes", "owner",
        "reserved", "taken", "times_ns", "values",
    )  # fmt: skip

    def __init__(self, owner: int, limit: int, reserved: int, outcomes: Outcomes) -> None:
        self.owner = owner
        self.limit = limit
        self.reserved = reserved
        """Bytes of the buffer that are set aside for it."""
        self.outcomes = outcomes
        self.values: list[Any] = []
        """A record without a key makes no object of its own; one with a key is both in a tuple."""
        self.times_ns: list[int] = []
        """When each was sent; one more than there are values while the owner is between the two."""
        self.has_keys = False
        self.extras: dict[int, Extra] = {}
        self.last = 0
        """The owner looks up once it has appended a record at this place or beyond."""
        self.is_closed = False
        self.is_left = False
        """The owner appends no more."""
        self.taken = 0

    def begin(self) -> None:
        """The owner's part, after the first record: go on without looking up until it is full."""
        self.last = self.limit - 1
        if self.is_closed:
            self.last = CLOSED

    def take(self) -> Rows | None:
        """The loop's part: what has come since the last time. The owner adds one more at most."""
        start, end = self.taken, len(self.values)
        if start == end:
            return None
        self.is_closed = True
        self.last = CLOSED
        end = len(self.values)
        values, keys = self.values[start:end], None
        self.values[start:end] = [None] * (end - start)
        self.taken = end
        if self.has_keys:
            values, keys = _unpair(values)
        times_ns = np.frombuffer(array("q", self.times_ns[start:end]), np.int64)
        rows = Rows(self.outcomes, range(start, end), values, keys, times_ns // NS_PER_MS)
        if self.extras:
            rows.add_extras({p: self.extras.pop(p) for p in list(self.extras) if p < end})
        rows.size = rows.measure()
        return rows


def _unpair(cells: list[Any]) -> tuple[list[bytes | None], list[bytes | None]]:
    """Values and keys of cells of which some have keys."""
    pairs = [cell if type(cell) is tuple else (cell, None) for cell in cells]
    return [value for value, _ in pairs], [key for _, key in pairs]


@dataclass(slots=True)
class Rows:
    """A run of records as columns; a piece of it goes into a batch."""

    outcomes: Outcomes
    places: Places
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    timestamps_ms: NDArray[np.int64]
    headers: list[Any] | None = None
    partitions: NDArray[np.int64] | None = None
    """Where the sender wants them; -1: not said."""
    size: int = 0
    is_followed: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def add_extras(self, extras: dict[int, Extra]) -> None:
        start, count = int(self.places[0]), len(self)
        for place, (headers, partition, timestamp_ms) in extras.items():
            row = place - start
            if headers is not None:
                self.headers = self.headers or [()] * count
                self.headers[row] = headers
            if partition is not None:
                if self.partitions is None:
                    self.partitions = np.full(count, -1, np.int64)
                self.partitions[row] = partition
            if timestamp_ms is not None:
                self.timestamps_ms[row] = timestamp_ms

    def measure(self) -> int:
        size = _bytes_of(self.values) + RECORD_OVERHEAD * len(self)
        if self.keys is not None:
            size += _bytes_of(self.keys)
        if self.headers is not None:
            pairs = chain.from_iterable(self.headers)
            size += sum(len(name) + len(value or b"") for name, value in pairs)
        return size

    def pick(self, places: NDArray[np.int64]) -> Rows:
        """Some of the records, by their positions here, which rise."""
        wanted = places.tolist()
        picked = Rows(
            self.outcomes,
            picked_places(self.places, places),
            [self.values[place] for place in wanted],
            None if self.keys is None else [self.keys[place] for place in wanted],
            self.timestamps_ms[places],
            None if self.headers is None else [self.headers[place] for place in wanted],
        )
        picked.size = picked.measure()
        return picked

    def cut(self, start: int, end: int) -> Rows:
        """A part of the run."""
        part = Rows(
            self.outcomes,
            self.places[start:end],
            self.values[start:end],
            None if self.keys is None else self.keys[start:end],
            self.timestamps_ms[start:end],
            None if self.headers is None else self.headers[start:end],
            None if self.partitions is None else self.partitions[start:end],
        )
        part.size = part.measure()
        return part

    def split(self, size_max: int) -> list[Rows]:
        """Runs of at most `size_max` bytes, or of one record where that is larger."""
        return split_evenly(self, size_max)

    def settle(self, partition: int, base_offset: int, error: SuiroError | None) -> None:
        self.outcomes.settle(Piece(self.places, partition, self.timestamps_ms, base_offset, error))

    def joins(self, other: object) -> bool:
        return isinstance(other, Rows)

    def encode(self, runs: Sequence[Any], options: BatchOptions) -> bytearray:
        return encode_rows(runs, options)

    # -- as a KeyColumn ---------------------------------------------------------------------------

    def is_empty(self) -> bool:
        return self.keys is None

    def arrays(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
        keys = self.keys or ()
        present: Any = [key or b"" for key in keys] if None in keys else keys
        lengths = np.fromiter(map(len, present), np.int64, len(present))
        valid = None if present is keys else np.array([key is not None for key in keys])
        return (
            np.frombuffer(b"".join(present), np.uint8),
            lengths.cumsum() - lengths,
            lengths,
            valid,
        )

    def to_list(self) -> Sequence[bytes | None]:
        return self.keys if self.keys is not None else [None] * len(self)


def _bytes_of(column: Sequence[bytes | None]) -> int:
    try:
        return sum(map(len, column))  # type: ignore[arg-type]
    except TypeError:  # some are null, which takes twice as long
        return sum(map(len, filter(None, column)))


class Divisible(Protocol):
    """A run that can be cut into parts."""

    size: int

    def __len__(self) -> int: ...
    def cut(self, start: int, end: int) -> Self: ...


D = TypeVar("D", bound=Divisible)


def split_evenly(run: D, size_max: int) -> list[D]:
    """Parts with as many records as should fit; those that are too large still are cut again."""
    count = len(run)
    if run.size <= size_max or count <= 1:
        return [run]
    step = max(1, min(count - 1, int(count * size_max / run.size)))
    cuts = (run.cut(start, min(start + step, count)) for start in range(0, count, step))
    return [part for cut in cuts for part in split_evenly(cut, size_max)]


def picked_places(places: Places, picked: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places in the chunk of some records of a run."""
    if isinstance(places, range):
        return picked * places.step + places.start
    return places[picked]


def encode_rows(runs: Sequence[Rows], options: BatchOptions) -> bytearray:
    """One batch of these runs, in their order."""
    if len(runs) == 1:
        rows = runs[0]
        return encode_lists(
            rows.keys,
            rows.values,
            timestamps_ms=rows.timestamps_ms,
            headers=rows.headers,
            options=options,
        )
    keys = headers = None
    if any(rows.keys is not None for rows in runs):
        keys = list(chain.from_iterable(rows.to_list() for rows in runs))
    if any(rows.headers is not None for rows in runs):
        headers = [pairs for rows in runs for pairs in rows.headers or [()] * len(rows)]
    return encode_lists(
        keys,
        list(chain.from_iterable(rows.values for rows in runs)),
        timestamps_ms=np.concatenate([rows.timestamps_ms for rows in runs]),
        headers=headers,
        options=options,
    )
