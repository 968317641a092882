"""The waitlist against a twin that keeps a plain list and looks through it each time."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from suiro.model.errors import Overloaded

from cluster.host.waitlist import Ticket, Waitlist

ITEMS_MAX = 8
names = st.sampled_from("abc")
small = st.integers(0, 6)
steps = st.one_of(
    st.tuples(st.just("park"), small, small),
    st.tuples(st.just("park_on"), st.lists(names, max_size=3), small),
    st.tuples(st.just("release"), small),
    st.tuples(st.just("wake"), names),
    st.tuples(st.just("expire"), small),
    st.tuples(st.just("drop"), st.integers(0, 20)),
    st.tuples(st.just("drain")),
)


@dataclass
class Waiting:
    item: int
    offset: int | None
    keys: list[str]
    deadline_ms: int


class DumbWaitlist:
    def __init__(self) -> None:
        self.waiting: list[Waiting] = []

    def take(self, chosen: list[Waiting]) -> list[int]:
        self.waiting = [w for w in self.waiting if w not in chosen]
        return [w.item for w in chosen]

    def release(self, offset: int) -> list[int]:
        due = [w for w in self.waiting if w.offset is not None and w.offset <= offset]
        return self.take(sorted(due, key=lambda w: (w.offset, w.item)))

    def wake(self, key: str) -> list[int]:
        return self.take([w for w in self.waiting if key in w.keys])

    def expire(self, now_ms: int) -> list[int]:
        due = [w for w in self.waiting if w.deadline_ms <= now_ms]
        return self.take(sorted(due, key=lambda w: (w.deadline_ms, w.item)))

    def drop(self, item: int) -> int | None:
        return next(iter(self.take([w for w in self.waiting if w.item == item])), None)

    def drain(self) -> list[int]:
        return self.take(self.waiting)


@given(st.lists(steps, max_size=50))
def test_agrees_with_the_dumb_twin(script: list[tuple]) -> None:  # type: ignore[type-arg]
    """Items are numbered in the order of arrival, and so are tickets."""
    real: Waitlist[int] = Waitlist(ITEMS_MAX)
    twin = DumbWaitlist()
    arrived = 0
    for action, *arguments in script:
        if action in {"park", "park_on"}:
            where, deadline_ms = arguments
            if len(twin.waiting) == ITEMS_MAX:
                with pytest.raises(Overloaded):
                    real.park(arrived, offset=0, deadline_ms=0)
                continue
            if action == "park":
                real.park(arrived, offset=where, deadline_ms=deadline_ms)
                twin.waiting.append(Waiting(arrived, where, [], deadline_ms))
            else:
                real.park_on(arrived, where, deadline_ms=deadline_ms)
                twin.waiting.append(Waiting(arrived, None, where, deadline_ms))
            arrived += 1
        elif action == "drop":
            assert real.drop(Ticket(arguments[0])) == twin.drop(arguments[0])
        else:
            assert getattr(real, action)(*arguments) == getattr(twin, action)(*arguments)
        assert len(real) == len(twin.waiting)
        assert real.next_deadline() == min((w.deadline_ms for w in twin.waiting), default=None)


def test_nothing_is_left_behind_when_all_is_handed_out() -> None:
    waitlist: Waitlist[str] = Waitlist(10)
    waitlist.park("produce", offset=5, deadline_ms=10)
    waitlist.park_on("fetch", ["a-0", "b-0", "a-0"], deadline_ms=20)
    assert waitlist.wake("b-0") == ["fetch"]
    assert waitlist.wake("a-0") == []
    assert waitlist.release(5) == ["produce"]
    assert waitlist.expire(100) == []
    assert not waitlist._by_key
    assert waitlist.next_deadline() is None


def test_a_full_waitlist_refuses_and_has_room_again_after_a_release() -> None:
    waitlist: Waitlist[str] = Waitlist(1)
    waitlist.park("first", offset=1, deadline_ms=10)
    with pytest.raises(Overloaded):
        waitlist.park_on("second", ["k"], deadline_ms=10)
    assert waitlist.release(1) == ["first"]
    waitlist.park_on("second", ["k"], deadline_ms=10)
    assert waitlist.drain() == ["second"]
