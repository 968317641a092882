"""What a broker's leaders may send to replicas that a reassignment adds, all together. Pure.

Whoever has sent something gets its next turn after all that was sent before has been paid for, at
the rate that is allowed. So turns go round, nobody starves, and what is sent in any stretch of time
is at most the rate times that stretch and one part for each stream.
"""

from __future__ import annotations

from typing import Final

PART_BYTES_MIN: Final = 16 << 10
PARTS_PER_S: Final = 8
"""A turn is an eighth of a second's worth: small enough to keep the rate even."""


class Throttle:
    """`bytes_per_s` of 0 is no limit."""

    def __init__(self) -> None:
        self.bytes_per_s = 0
        self.generation = 0
        """Rises when the rate changes: turns given out before are void then."""
        self._paid_ms = 0.0

    def set_rate(self, bytes_per_s: int) -> None:
        if bytes_per_s != self.bytes_per_s:
            self.bytes_per_s = bytes_per_s
            self.generation += 1
            self._paid_ms = 0.0

    @property
    def part_bytes(self) -> int:
        """How much to read for one turn."""
        return max(PART_BYTES_MIN, self.bytes_per_s // PARTS_PER_S)

    def spend(self, size: int, now_ms: float) -> float:
        """So much was sent; returns the time of the sender's next turn."""
        if not self.bytes_per_s:
            return now_ms
        self._paid_ms = max(self._paid_ms, now_ms) + size * 1000 / self.bytes_per_s
        return self._paid_ms


class Turn:
    """One stream's share of a throttle."""

    def __init__(self, throttle: Throttle) -> None:
        self._throttle = throttle
        self._generation = -1
        self._at_ms = 0.0

    @property
    def part_bytes(self) -> int:
        return self._throttle.part_bytes

    def wait_ms(self, now_ms: float) -> float:
        """0 if something may be sent now."""
        if not self._throttle.bytes_per_s or self._generation != self._throttle.generation:
            return 0.0
        return max(0.0, self._at_ms - now_ms)

    def spend(self, size: int, now_ms: float) -> None:
        self._generation = self._throttle.generation
        self._at_ms = self._throttle.spend(size, now_ms)
