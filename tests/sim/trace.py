"""What happened, in order: a running digest to compare runs by, and the last events to read.

The same seed has to give the same digest in every process. So a fact is a plain value whose text
is the same everywhere: never an object whose text has an address in it.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

Fact = str | int | float | None

FOLD_EVENTS: Final = 512


class Trace:
    """Events with the virtual time at which they happened. Adding one costs half a microsecond:
    they are folded into the digest by the hundred.
    """

    def __init__(self, now_s: Callable[[], float], *, kept: int = 100) -> None:
        self._now_s = now_s
        self._hash = blake2b(digest_size=16)
        self._unfolded: list[tuple[Fact, ...]] = []
        self._last: deque[tuple[Fact, ...]] = deque(maxlen=kept)
        self._folded = 0
        self.notes: list[str] = []
        """With `keep_notes`, every event whose name begins with `**`."""
        self._keeps_notes = False

    def keep_notes(self) -> None:
        self._keeps_notes = True

    def __len__(self) -> int:
        """How many events there were."""
        return self._folded + len(self._unfolded)

    def add(self, event: str, *facts: Fact) -> None:
        """Note that `event` happened now."""
        line = (self._now_s(), event, *facts)
        self._unfolded.append(line)
        if self._keeps_notes and event.startswith("**"):
            self.notes.append(_line(line))
        if len(self._unfolded) >= FOLD_EVENTS:
            self._fold()

    def digest(self) -> str:
        """One text for everything so far: equal for equal runs."""
        self._fold()
        return self._hash.hexdigest()

    def story(self) -> str:
        """The last events, one a line, for a person."""
        self._fold()
        return "\n".join(_line(event) for event in self._last)

    def _fold(self) -> None:
        self._hash.update("".join(map(repr, self._unfolded)).encode())
        self._last.extend(self._unfolded)
        self._folded += len(self._unfolded)
        self._unfolded.clear()


def _line(event: tuple[Fact, ...]) -> str:
    now_s, name, *facts = event
    return " ".join([f"{now_s:12.6f}", str(name), *map(str, facts)])
