"""When batches close, when they leave, and that nothing is lost or reordered on the way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from suiro.accumulator import Accumulator, Row
from suiro.model.ids import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def accumulator() -> Accumulator:
    return Accumulator(batch_bytes=100, batch_records=5, linger_ms=10, delivery_timeout_ms=1_000)


def row(value: bytes) -> Row:
    return Row(None, value, 0, None, handle=value)


def test_a_batch_is_due_when_full_or_lingered() -> None:
    waiting = accumulator()
    waiting.add(A, row(b"x"), 60, now_ms=0)
    assert waiting.due_in_ms(A, 4) == 6
    assert waiting.due_in_ms(A, 10) == 0
    waiting.add(A, row(b"y"), 60, now_ms=1)  # does not fit: the first batch is closed
    assert waiting.due_in_ms(A, 1) == 0
    first = waiting.take(A)
    assert first is not None
    assert first.values == [b"x"]
    assert waiting.due_in_ms(A, 1) == 10


def test_what_waits_too_long_expires() -> None:
    waiting = accumulator()
    waiting.add(A, row(b"old"), 10, now_ms=0)
    waiting.add(B, row(b"new"), 10, now_ms=500)
    assert [batch.values for batch in waiting.take_expired(1_000)] == [[b"old"]]
    assert waiting.partitions() == [B]


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 120)), max_size=60))
def test_rows_leave_in_the_order_in_which_they_came(
    sends: list[tuple[TopicPartition, int]],
) -> None:
    waiting = accumulator()
    for number, (partition, size) in enumerate(sends):
        waiting.add(partition, row(b"%d" % number), size, now_ms=0)
    for partition in (A, B):
        left: list[bytes | None] = []
        while (batch := waiting.take(partition)) is not None:
            assert len(batch) <= 5
            assert batch.size <= 100 or len(batch) == 1
            left += batch.values
        assert left == [b"%d" % n for n, (where, _) in enumerate(sends) if where == partition]
    assert len(waiting) == 0
