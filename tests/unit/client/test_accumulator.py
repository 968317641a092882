"""When batches close, when they leave, and that nothing is lost or reordered on the way."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from suiro.accumulator import Accumulator, Batch
from suiro.handle import Outcomes, RecordMetadata
from suiro.model.ids import TopicPartition
from suiro.staging import Rows

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def accumulator() -> Accumulator:
    return Accumulator(batch_bytes=100, batch_records=5, linger_ms=10, delivery_timeout_ms=1_000)


def rows(*values: bytes, size: int) -> Rows:
    outcomes = Outcomes(cast("Any", None), "t")
    return Rows(
        outcomes, range(len(values)), values, None, np.zeros(len(values), np.int64), size=size
    )


def values_of(batch: Batch | None) -> list[bytes | None]:
    assert batch is not None
    return [value for run in batch.runs if isinstance(run, Rows) for value in run.values]


def test_a_batch_is_due_when_full_or_lingered() -> None:
    waiting = accumulator()
    waiting.add(A, rows(b"x", size=60), now_ms=0)
    assert waiting.due_in_ms(A, 4) == 6
    assert waiting.due_in_ms(A, 10) == 0
    waiting.add(A, rows(b"y", size=60), now_ms=1)  # does not fit: the first batch is closed
    assert waiting.due_in_ms(A, 1) == 0
    assert values_of(waiting.take(A)) == [b"x"]
    assert waiting.due_in_ms(A, 1) == 10


def test_an_idle_line_waits_for_nobody_but_a_sender_in_full_flow() -> None:
    waiting = accumulator()
    flowing, last = rows(b"x", size=60), rows(b"y", size=20)
    flowing.is_followed = True
    waiting.add(A, flowing, now_ms=0)
    assert waiting.due_in_ms(A, 4, idle=True) == 6
    waiting.add(A, last, now_ms=5)
    assert waiting.due_in_ms(A, 5) == 5
    assert waiting.due_in_ms(A, 5, idle=True) == 0


def test_what_waits_too_long_expires() -> None:
    waiting = accumulator()
    waiting.add(A, rows(b"old", size=10), now_ms=0)
    waiting.add(B, rows(b"new", size=10), now_ms=500)
    assert [values_of(batch) for batch in waiting.take_expired(1_000)] == [[b"old"]]
    assert waiting.partitions() == [B]


def test_every_run_of_a_batch_learns_its_offsets() -> None:
    waiting = accumulator()
    first, second = rows(b"0", b"1", size=10), rows(b"2", size=10)
    waiting.add(A, first, now_ms=0)
    waiting.add(A, second, now_ms=0)
    batch = waiting.take(A)
    assert batch is not None
    batch.settle(40)
    assert first.outcomes.find(1) == RecordMetadata("t", 0, 41, 0)
    assert second.outcomes.find(0) == RecordMetadata("t", 0, 42, 0)


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 100)), max_size=60))
def test_records_leave_in_the_order_in_which_they_came(
    sends: list[tuple[TopicPartition, int]],
) -> None:
    waiting = accumulator()
    for number, (partition, size) in enumerate(sends):
        waiting.add(partition, rows(b"%d" % number, size=size), now_ms=0)
    for partition in (A, B):
        left: list[bytes | None] = []
        while (batch := waiting.take(partition)) is not None:
            assert len(batch) <= 5
            assert batch.size <= 100
            left += values_of(batch)
        assert left == [b"%d" % n for n, (where, _) in enumerate(sends) if where == partition]
    assert len(waiting) == 0
