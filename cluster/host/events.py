"""The event log of a node: what it decided and did, one JSON object per line, for a checker.

Off by default (`NO_EVENTS`); then it costs one look at `on`. Switched on, an event is put into a
bounded queue, and a thread of its own encodes, appends and flushes. Nothing ever waits for it: when
the queue is full events are dropped, and a line `dropped` says how many, so that whoever reads the
log knows that it has a hole. Lines of one node are in the order in which things happened there.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from suiro.model.limits import EVENTS_WAITING_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from suiro.model.ids import NodeId

    from cluster.host.clock import Clock


class Events(Protocol):
    """Where a node tells what happened; ask `on` before building what to tell."""

    @property
    def on(self) -> bool: ...
    def emit(self, event: str, **facts: Any) -> None: ...
    def close(self) -> None: ...


class NoEvents:
    """Nobody listens."""

    on: Final = False

    def emit(self, event: str, **facts: Any) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


NO_EVENTS: Final = NoEvents()


class FileEvents:
    """Appends to a file that outlives the process."""

    on: Final = True

    def __init__(self, path: Path, node_id: NodeId, clock: Clock) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._node_id = node_id
        self._clock = clock
        self._waiting: deque[dict[str, Any]] = deque()
        self._dropped = 0
        self._arrived = threading.Event()
        self._is_closing = False
        self._writer = threading.Thread(target=self._write_forever, name="events", daemon=True)
        self._writer.start()

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= EVENTS_WAITING_MAX

    def emit(self, event: str, **facts: Any) -> None:
        """In the loop's thread."""
        if self.is_full:
            self._dropped += 1
            return
        if self._dropped:
            self._waiting.append(self._line("dropped", {"count": self._dropped}))
            self._dropped = 0
        self._waiting.append(self._line(event, facts))
        self._arrived.set()

    def close(self) -> None:
        """Write what is left."""
        self._is_closing = True
        self._arrived.set()
        self._writer.join()
        self._file.close()

    def _line(self, event: str, facts: dict[str, Any]) -> dict[str, Any]:
        return {
            "at_ms": self._clock.now_ms(),
            "monotonic_ms": round(self._clock.monotonic_ms(), 3),
            "node": self._node_id,
            "event": event,
            **facts,
        }

    def _write_forever(self) -> None:
        while not self._is_closing or self._waiting:
            self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                self._file.write(json.dumps(self._waiting.popleft(), default=_plain) + "\n")
            self._file.flush()


def _plain(value: Any) -> Any:
    """What JSON cannot hold: bytes as hexadecimal digits, everything else as it prints."""
    return value.hex() if isinstance(value, bytes) else str(value)
