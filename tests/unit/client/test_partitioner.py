"""Keys land where Kafka's clients put them; records without a key are spread."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from murmurhash2 import murmurhash2
from suiro.handle import Outcomes
from suiro.model.errors import InvalidRequest
from suiro.murmur import KAFKA_SEED, murmur2
from suiro.partitioner import make_partitioner
from suiro.placing import place
from suiro.staging import Rows

# The values that Kafka's own tests publish for its murmur2, as signed 32-bit numbers.
PUBLISHED = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def run(keys: list[bytes | None], partitions: list[int] | None = None) -> Rows:
    count = len(keys)
    return Rows(
        Outcomes(cast("Any", None), "t"),
        range(count),
        [b"%d" % n for n in range(count)],
        keys if any(key is not None for key in keys) else None,
        np.zeros(count, np.int64),
        partitions=None if partitions is None else np.array(partitions, np.int64),
        size=100 * count,
    )


def placed(rows: Rows, kind: object, count: int) -> dict[int, list[int]]:
    partitioner = make_partitioner(kind, Random(1), 1_000)  # type: ignore[arg-type]
    return {
        partition: [int(value or b"") for value in part.values]  # type: ignore[attr-defined]
        for partition, part in place(rows, partitioner, count)
    }


def test_the_hash_is_kafkas() -> None:
    keys: list[bytes | None] = list(PUBLISHED)
    data, starts, lengths, _ = run(keys).arrays()
    assert murmur2(data, starts, lengths).view(np.int32).tolist() == list(PUBLISHED.values())
    for partition, numbers in placed(run(keys), "murmur2", 7).items():
        for number in numbers:
            assert partition == (list(PUBLISHED.values())[number] & 0x7FFF_FFFF) % 7


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=50))
def test_the_hash_of_a_column_is_that_of_each(keys: list[bytes]) -> None:
    data, starts, lengths, _ = run(list(keys)).arrays()
    if not any(keys):
        data, lengths = np.empty(0, np.uint8), np.zeros(len(keys), np.int64)
    expected = [murmurhash2(key, KAFKA_SEED) for key in keys]
    assert murmur2(data, starts, lengths).tolist() == expected


@pytest.mark.parametrize("kind", ["murmur2", "sticky", "round_robin"])
@pytest.mark.parametrize("records", [1, 7])
def test_without_a_key_every_partition_gets_its_share(kind: str, records: int) -> None:
    """Whatever the rhythm of the sender (KAFKA-16283)."""
    partitioner = make_partitioner(kind, Random(1), 500)
    counts: Counter[int] = Counter()
    for _ in range(30_000 // records):
        for partition, part in place(run([None] * records), partitioner, 6):
            counts[partition] += len(part)
    assert set(counts) == set(range(6))
    assert max(counts.values()) < 1.15 * min(counts.values())


@pytest.mark.parametrize("size", [100, 99, 1_000, 999, 1_001])
def test_sticky_stays_for_a_batch_and_nobody_gets_ahead(size: int) -> None:
    partitioner = make_partitioner("sticky", Random(1), 1_000)
    in_batch = max(1, 1_000 // size)
    chosen = [partitioner.choose(run([None]), size, 6) for _ in range(18 * in_batch)]
    turns = [set(chosen[n : n + in_batch]) for n in range(0, len(chosen), in_batch)]
    assert all(len(turn) == 1 for turn in turns)
    for start in range(0, 18, 6):
        assert set().union(*turns[start : start + 6]) == set(range(6))


def test_sticky_goes_on_when_there_are_more_partitions() -> None:
    partitioner = make_partitioner("sticky", Random(1), 1_000)
    assert [partitioner.choose(run([None]), 1_000, 1) for _ in range(3)] == [0, 0, 0]
    assert {partitioner.choose(run([None]), 1_000, 4) for _ in range(4)} == set(range(4))


def test_records_of_a_partition_keep_their_order() -> None:
    keys: list[bytes | None] = [b"%d" % (n % 9) for n in range(100)]
    parts = placed(run(keys), "murmur2", 4)
    assert all(numbers == sorted(numbers) for numbers in parts.values())
    assert sorted(n for numbers in parts.values() for n in numbers) == list(range(100))


def test_a_mix_of_keys_and_none() -> None:
    parts = placed(run([b"a", None, b"a", None]), "murmur2", 3)
    assert any(set(numbers) >= {0, 2} for numbers in parts.values())
    assert any(set(numbers) >= {1, 3} for numbers in parts.values())


def test_said_by_the_sender_or_by_a_function() -> None:
    assert placed(run([None, b"k", None], [2, 0, 2]), "murmur2", 3) == {0: [1], 2: [0, 2]}
    assert placed(run([b"a", b"bb"]), lambda key, count: len(key) % count, 3) == {1: [0], 2: [1]}


def test_a_partition_that_is_not_there_is_set_apart_or_refused() -> None:
    assert placed(run([None] * 3, [0, 3, 0]), "murmur2", 3) == {0: [0, 2], 3: [1]}
    with pytest.raises(InvalidRequest, match="outside of 0 to 2"):
        placed(run([b"a"]), lambda _key, count: count, 3)
