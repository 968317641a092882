"""Timers against a twin that looks through all of them each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.host.timers import GARBAGE_MAX, Timers

keys = st.integers(0, 5)
times = st.integers(0, 20)
steps = st.one_of(
    st.tuples(st.just("set"), keys, times),
    st.tuples(st.just("cancel"), keys, st.just(0)),
    st.tuples(st.just("expired"), st.just(0), times),
)


class DumbTimers:
    """A list in the order of setting; sorting is stable, so equal deadlines keep it."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int]] = []

    def set(self, key: int, at_ms: int) -> None:
        self.cancel(key)
        self.entries.append((at_ms, key))

    def cancel(self, key: int) -> None:
        self.entries = [entry for entry in self.entries if entry[1] != key]

    def next_deadline(self) -> int | None:
        return min((at_ms for at_ms, _ in self.entries), default=None)

    def expired(self, now_ms: int) -> list[int]:
        due = sorted((e for e in self.entries if e[0] <= now_ms), key=lambda entry: entry[0])
        self.entries = [e for e in self.entries if e[0] > now_ms]
        return [key for _, key in due]


@given(st.lists(steps, max_size=60))
def test_agrees_with_the_dumb_twin(script: list[tuple[str, int, int]]) -> None:
    timers: Timers[int] = Timers()
    twin = DumbTimers()
    for action, key, at_ms in script:
        if action == "set":
            timers.set(key, at_ms)
            twin.set(key, at_ms)
        elif action == "cancel":
            timers.cancel(key)
            twin.cancel(key)
        else:
            assert timers.expired(at_ms) == twin.expired(at_ms)
        assert timers.next_deadline() == twin.next_deadline()
        assert len(timers) == len(twin.entries)
        assert [key in timers for key in range(6)] == [
            key in {k for _, k in twin.entries} for key in range(6)
        ]


def test_a_heartbeat_that_moves_its_deadline_for_ever_leaves_no_heap_behind() -> None:
    timers: Timers[str] = Timers()
    timers.set("other", 10**9)
    for now_ms in range(10_000):
        timers.set("member", now_ms + 30_000)
    assert len(timers._heap) <= GARBAGE_MAX + 2 * len(timers)
    timers.cancel("member")
    assert timers.next_deadline() == 10**9


def test_a_deadline_is_reached_at_its_very_moment() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 5)
    assert timers.expired(4.999) == []
    assert timers.expired(5) == ["a"]
    assert timers.expired(5) == []


def test_clear_forgets_everything() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 5)
    timers.clear()
    assert timers.next_deadline() is None
    assert timers.expired(9) == []
