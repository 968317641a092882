"""Which partition a record goes to, decided for a whole run of records at once. Pure.

Keys land where Kafka's own clients would put them: murmur2 of the key, sign bit cleared, modulo the
number of partitions. Records without a key stay with one partition until a batch of them is full
(`StickyChoice`), or take turns (`RoundRobin`). A function of your own is called once per record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from suiro.model.errors import InvalidRequest
from suiro.murmur import murmur2

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from numpy.typing import NDArray

    Key = bytes | None
    OwnPartitioner = Callable[[Key, int], int]

SIGN_CLEARED: Final = np.uint32(0x7FFF_FFFF)


class KeyColumn(Protocol):
    """The keys of a run of records, in whatever form they came."""

    def __len__(self) -> int: ...
    def is_empty(self) -> bool:
        """Whether no record has a key."""

    def arrays(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]:
        """The bytes of all keys, where each begins, how long it is, and which there are."""

    def to_list(self) -> Sequence[Key]: ...


class Partitioner(Protocol):
    """One topic's way to choose."""

    def choose(self, keys: KeyColumn, size: int, partitions: int) -> int | NDArray[np.int64]:
        """The partition of all these records (`size` bytes of them), or of each."""


class StickyChoice:
    """One partition until a batch of it is full, then another.

    Batches stay large that way. Every partition has its turn, in an order that is drawn anew after
    each round: no rhythm of the sender skips a partition (KAFKA-16283), none is more than a batch
    ahead of another, and how fast a broker answers has no say, so a slow one gets no more than its
    share (KIP-794).
    """

    __slots__ = ("_batch_bytes", "_count", "_filled", "_rng", "_round")

    def __init__(self, rng: Random, batch_bytes: int) -> None:
        self._rng = rng
        self._batch_bytes = batch_bytes
        self._filled = 0
        self._count = 0
        self._round: list[int] = []
        """Whose turns are left in this round, the last one's is now."""

    def choose(self, keys: KeyColumn, size: int, partitions: int) -> int:
        """The same one for all."""
        if partitions != self._count:
            self._count, self._round, self._filled = partitions, [], 0
        if self._filled and self._filled + size > self._batch_bytes:
            self._round.pop()
            self._filled = 0
        if not self._round:
            self._round = self._rng.sample(range(partitions), partitions)
        self._filled += size
        return self._round[-1]


class KeyHash:
    """Kafka's default: by the key where there is one, else sticky."""

    __slots__ = ("_without_key",)

    def __init__(self, without_key: StickyChoice) -> None:
        self._without_key = without_key

    def choose(self, keys: KeyColumn, size: int, partitions: int) -> int | NDArray[np.int64]:
        if keys.is_empty():
            return self._without_key.choose(keys, size, partitions)
        data, starts, lengths, valid = keys.arrays()
        chosen = (murmur2(data, starts, lengths) & SIGN_CLEARED).astype(np.int64) % partitions
        if valid is not None and not valid.all():
            missing = size * int((~valid).sum()) // len(keys)
            chosen[~valid] = self._without_key.choose(keys, missing, partitions)
        return chosen


class RoundRobin:
    """Each record to the next partition, whatever its key."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 0

    def choose(self, keys: KeyColumn, size: int, partitions: int) -> NDArray[np.int64]:
        chosen = (self._next + np.arange(len(keys), dtype=np.int64)) % partitions
        self._next = (self._next + len(keys)) % partitions
        return chosen


class OwnChoice:
    """A function of the user's: (key, number of partitions) -> partition."""

    __slots__ = ("_choose",)

    def __init__(self, choose: OwnPartitioner) -> None:
        self._choose = choose

    def choose(self, keys: KeyColumn, size: int, partitions: int) -> NDArray[np.int64]:
        choose = self._choose
        chosen = np.array([choose(key, partitions) for key in keys.to_list()], np.int64)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < partitions):
            raise InvalidRequest(f"the partitioner chose outside of 0 to {partitions - 1}")
        return chosen


def make_partitioner(kind: str | OwnPartitioner, rng: Random, batch_bytes: int) -> Partitioner:
    """What the setting `partitioner` names."""
    if callable(kind):
        return OwnChoice(kind)
    if kind == "round_robin":
        return RoundRobin()
    sticky = StickyChoice(rng, batch_bytes)
    return sticky if kind == "sticky" else KeyHash(sticky)
