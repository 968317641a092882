"""Keyed deadlines, without a clock: who set what is told when it is asked with the time.

A key has at most one deadline; setting it again moves it. Equal deadlines expire in the order in
which they were set, so the same calls give the same answers in every process. Nothing here waits or
wakes: a shell asks `next_deadline`, sleeps, and calls `expired`.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")

GARBAGE_MAX: Final = 64
"""Dead heap entries that are always tolerated; beyond it they may not outnumber the live ones."""


class Timers(Generic[K]):
    """Deadlines by key, in a heap whose moved and cancelled entries are left behind for a while.

    What was left behind is skipped when it comes to the top, and swept once it outnumbers what
    lives, so memory stays proportional to the keys that are set.
    """

    __slots__ = ("_heap", "_live", "_sequence")

    def __init__(self) -> None:
        self._live: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: K) -> bool:
        return key in self._live

    def set(self, key: K, at_ms: float) -> None:
        """Let `key` expire at `at_ms`, and no longer at the time set before."""
        self._sequence += 1
        self._live[key] = (at_ms, self._sequence)
        heappush(self._heap, (at_ms, self._sequence, key))
        self._sweep()

    def cancel(self, key: K) -> None:
        """Forget the deadline of `key`; fine if it has none."""
        if self._live.pop(key, None) is not None:
            self._sweep()

    def next_deadline(self) -> float | None:
        """The earliest deadline, or None when nothing is set."""
        self._drop_dead_top()
        return self._heap[0][0] if self._heap else None

    def expired(self, now_ms: float) -> list[K]:
        """Remove and return the keys whose deadline is not after `now_ms`, earliest first."""
        keys = []
        self._drop_dead_top()
        while self._heap and self._heap[0][0] <= now_ms:
            key = heappop(self._heap)[2]
            del self._live[key]
            keys.append(key)
            self._drop_dead_top()
        return keys

    def clear(self) -> None:
        """Forget everything."""
        self._live.clear()
        self._heap.clear()

    def _is_live(self, entry: tuple[float, int, K]) -> bool:
        at_ms, sequence, key = entry
        return self._live.get(key) == (at_ms, sequence)

    def _drop_dead_top(self) -> None:
        while self._heap and not self._is_live(self._heap[0]):
            heappop(self._heap)

    def _sweep(self) -> None:
        if len(self._heap) - len(self._live) > max(GARBAGE_MAX, len(self._live)):
            self._heap = [entry for entry in self._heap if self._is_live(entry)]
            heapify(self._heap)
