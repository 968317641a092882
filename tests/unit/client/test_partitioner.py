"""Keys land where Kafka's clients put them; records without a key are spread."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from murmurhash2 import murmurhash2
from suiro.partitioner import KAFKA_SEED, StickyChoice, partition_of_key

# The values that Kafka's own tests publish for its murmur2, as signed 32-bit numbers.
PUBLISHED = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "expected"), PUBLISHED.items())
def test_the_hash_is_kafkas(key: bytes, expected: int) -> None:
    assert murmurhash2(key, KAFKA_SEED) == expected & 0xFFFF_FFFF
    assert partition_of_key(key, 7) == (expected & 0x7FFF_FFFF) % 7


def test_without_a_key_every_partition_gets_its_share() -> None:
    choice = StickyChoice(Random(1))
    counts: Counter[int] = Counter()
    for _ in range(6_000):
        partition = choice.current(6)
        assert choice.current(6) == partition, "it stays until a batch has left"
        counts[partition] += 1
        choice.batch_left(partition, 6)
    assert set(counts) == set(range(6))
    assert max(counts.values()) < 1.15 * min(counts.values())


def test_one_partition_is_always_chosen() -> None:
    choice = StickyChoice(Random(1))
    choice.batch_left(choice.current(1), 1)
    assert choice.current(1) == 0
