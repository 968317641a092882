"""A coordinator that dies where a test wants it to: `Failpoint`.

The environment variable SUIRO_TXN_FAILPOINT names a file. As long as the file is there and holds
the name of a point, whoever reaches that point first takes the file away and dies as by kill -9, so
of several coordinators one dies, once. Without the variable nothing is ever looked at.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

VARIABLE: Final = "SUIRO_TXN_FAILPOINT"

BEFORE: Final = "before"
"""A record of this state is decided, and not in the log."""
AFTER: Final = "after"
"""It is committed; nothing was done about it and nobody was told."""
UNANSWERED: Final = "unanswered"
"""It is committed and what follows from it has begun; nobody was told."""
MARKED: Final = "marked"
"""A first marker has been answered, and that is not in the log."""
COMPLETE: Final = "complete"
"""All is over and in the log."""


class Failpoint:
    """Of one coordinator."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None

    @classmethod
    def from_environment(cls) -> Failpoint:
        return cls(os.environ.get(VARIABLE, ""))

    @property
    def is_set(self) -> bool:
        return self._path is not None

    def reached(self, *words: str) -> None:
        """Die if this is the point."""
        if self._path is None:
            return
        try:
            if self._path.read_text() != " ".join(words):
                return
            self._path.unlink()
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)
