"""Which partition a record goes to. Keys land where Kafka's own clients would put them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from murmurhash2 import murmurhash2

if TYPE_CHECKING:
    from random import Random

KAFKA_SEED = 0x9747B28C


def partition_of_key(key: bytes, partitions: int) -> int:
    """Kafka's default: murmur2 of the key, sign bit cleared, modulo the number of partitions."""
    return int(murmurhash2(key, KAFKA_SEED) & 0x7FFF_FFFF) % partitions


class StickyChoice:
    """For records without a key: one partition until a batch has left it, then another.

    Batches stay large that way. The next one is drawn from all the others with equal chance, so
    that no partition is skipped by an unlucky rhythm (KAFKA-16283).
    """

    __slots__ = ("_current", "_rng")

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._current = -1

    def current(self, partitions: int) -> int:
        if not 0 <= self._current < partitions:
            self._current = self._rng.randrange(partitions)
        return self._current

    def batch_left(self, partition: int, partitions: int) -> None:
        """A batch of this partition is on its way: choose another for what comes next."""
        if partition == self._current and partitions > 1:
            step = self._rng.randrange(1, partitions)
            self._current = (self._current + step) % partitions
