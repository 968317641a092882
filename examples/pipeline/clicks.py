"""The events of the pipeline, and what must come out of it, computed in plain Python. Pure.

Visitors click on pages. Their browsers are as browsers are: some send a click twice, some send
nonsense, some are not logged in as anybody we know, and a few come an hour late.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

WINDOW_MS: Final = 5_000
WATERMARK_MS: Final = 5_000
OUT_OF_ORDER_MS: Final = 2_000
"""Clicks arrive up to so late; less than the watermark waits for, so none of these is lost."""
MUCH_TOO_LATE_MS: Final = 3600_000

USERS: Final = {
    f"user-{number}": ("Japan", "France", "Kenya", "Brazil")[number % 4] for number in range(40)
}
PAGES: Final = ("/", "/search", "/cart", "/pay")
LINES: Final = (
    "In the beginning was the log",
    "A log is a river: the water goes on, the river stays",
    "What is written is written, once",
    "The river, the canal and the log: water on its way",
)


class Cell(NamedTuple):
    """One row of the result: a window (by its start) and a country."""

    start_ms: int
    country: str


class Total(NamedTuple):
    clicks: int
    dwell_ms: int


@dataclass(slots=True)
class Visitors:
    """Makes messages, the same ones for the same seed and times."""

    dice: random.Random = field(default_factory=lambda: random.Random(1))
    made: int = 0
    _again: list[bytes] = field(default_factory=list)

    def messages(self, now_ms: int, count: int) -> list[bytes]:
        """What arrives at this moment."""
        sent, self._again = self._again, []
        for _ in range(count):
            message = self._one(now_ms - self.dice.randrange(OUT_OF_ORDER_MS))
            sent.append(message)
            if self.dice.random() < 0.03:
                self._again.append(message)  # the browser did not hear the answer
        return sent

    def late(self, now_ms: int, count: int) -> list[bytes]:
        """Clicks that the windows have not waited for."""
        return [self._click(now_ms - MUCH_TOO_LATE_MS, "user-1") for _ in range(count)]

    def _one(self, at_ms: int) -> bytes:
        kind = self.dice.random()
        if kind < 0.02:
            return b'{"id": "broken'
        if kind < 0.04:
            return self._click(at_ms, "nobody")
        if kind < 0.06:
            return self._click(at_ms, "user-1", dwell_ms=-1)
        return self._click(at_ms, self.dice.choice(tuple(USERS)))

    def _click(self, at_ms: int, user: str, dwell_ms: int | None = None) -> bytes:
        self.made += 1
        return json.dumps(
            {
                "id": f"click-{self.made}",
                "user": user,
                "page": self.dice.choice(PAGES),
                "at_ms": at_ms,
                "dwell_ms": self.dice.randrange(9_000) if dwell_ms is None else dwell_ms,
            }
        ).encode()


def closing_click(now_ms: int) -> bytes:
    """One of a later time, which lets the watermark pass every window before it."""
    at_ms = now_ms + 2 * (WINDOW_MS + WATERMARK_MS)
    return json.dumps(
        {"id": "closing", "user": "user-0", "page": "/", "at_ms": at_ms, "dwell_ms": 0}
    ).encode()


# -- what must come out ---------------------------------------------------------------------------


def expected(messages: Iterable[bytes], since_ms: int) -> dict[Cell, Total]:
    """The whole pipeline in a loop: clean, join, window, aggregate. Clicks of before `since_ms` are
    too late.
    """
    totals: dict[Cell, Total] = {}
    seen: set[str] = set()
    for message in messages:
        click = _cleaned(message)
        if click is None or click["id"] in seen or click["at_ms"] < since_ms:
            continue
        seen.add(click["id"])
        country = USERS.get(click["user"])
        if country is None:
            continue
        cell = Cell(click["at_ms"] // WINDOW_MS * WINDOW_MS, country)
        before = totals.get(cell, Total(0, 0))
        totals[cell] = Total(before.clicks + 1, before.dwell_ms + click["dwell_ms"])
    return totals


def _cleaned(message: bytes) -> dict[str, Any] | None:
    try:
        click: dict[str, Any] = json.loads(message)
    except ValueError:
        return None
    return click if click["dwell_ms"] >= 0 else None


def expected_words(lines: Iterable[str]) -> Counter[str]:
    return Counter(word for line in lines for word in re.split(r"\W+", line.lower()) if word)
