"""How long to wait before trying again: doubling, with jitter, and a ceiling. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class Backoff:
    """Delays for one thing that is being retried; `reset` it once it worked."""

    __slots__ = ("_first_s", "_most_s", "_rng", "_step")

    def __init__(self, rng: Random, *, first_s: float = 0.02, most_s: float = 1.0) -> None:
        self._rng = rng
        self._first_s = first_s
        self._most_s = most_s
        self._step = 0

    def next_s(self) -> float:
        """The next delay: between half and all of it, so that many clients do not march in step."""
        ceiling = min(self._most_s, self._first_s * float(1 << self._step))
        self._step = min(self._step + 1, 30)
        return ceiling * (0.5 + self._rng.random() / 2)

    def reset(self) -> None:
        self._step = 0
