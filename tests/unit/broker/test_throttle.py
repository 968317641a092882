"""The throttle of reassignments: a rate that holds, and turns that go round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.broker.throttle import Throttle, Turn


def send_for(turns: list[Turn], size: int, until_ms: int) -> list[int]:
    """Whoever may send does; what each has sent. The first one always asks first."""
    sent = [0] * len(turns)
    for now_ms in range(until_ms):
        for at, turn in enumerate(turns):
            if not turn.wait_ms(now_ms):
                turn.spend(size, now_ms)
                sent[at] += size
    return sent


@given(st.integers(1_000, 10_000_000), st.integers(1, 4), st.integers(1, 200_000))
def test_the_rate_holds_and_nobody_starves(rate: int, streams: int, size: int) -> None:
    throttle = Throttle()
    throttle.set_rate(rate)
    sent = send_for([Turn(throttle) for _ in range(streams)], size, until_ms=500)
    assert sum(sent) <= rate / 2 + streams * size
    assert min(sent) + 2 * size >= max(sent) / 2


def test_without_a_limit_nobody_waits() -> None:
    throttle = Throttle()
    turn = Turn(throttle)
    turn.spend(1 << 40, 0)
    assert turn.wait_ms(0) == 0


def test_another_rate_begins_anew() -> None:
    throttle = Throttle()
    throttle.set_rate(1_000)
    turn = Turn(throttle)
    turn.spend(1_000_000, 0)
    assert turn.wait_ms(0) == 1_000_000
    throttle.set_rate(1_000_000)
    assert turn.wait_ms(0) == 0, "what was waited for at the old rate is forgiven"
    turn.spend(500_000, 10)
    assert turn.wait_ms(10) == 500
    throttle.set_rate(0)
    assert turn.wait_ms(10) == 0


def test_a_turn_is_small_enough_to_keep_the_rate_even() -> None:
    throttle = Throttle()
    throttle.set_rate(8_000_000)
    assert throttle.part_bytes == 1_000_000
    throttle.set_rate(10)
    assert throttle.part_bytes == 16 << 10
