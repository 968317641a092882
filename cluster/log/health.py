"""Whether a log directory can be trusted: `Health`, and the store that tells it: `WatchedStore`.

After a write, a sync or a rename that failed nobody knows what the directory holds, so all of it
counts as failed, for good: only a new start may look at it again. A full disk is no failure, and
neither is a log that is damaged in one place: that is the log's own trouble (`failures`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.errors import StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cluster.host.store import Store


class Health:
    """One directory's. For any thread; `on_failed` is called once, by whoever finds it out."""

    def __init__(self, on_failed: Callable[[str], None]) -> None:
        self.failure: str | None = None
        self._on_failed = on_failed

    def fail(self, reason: str) -> None:
        """The first reason counts."""
        if self.failure is None:
            self.failure = reason
            self._on_failed(reason)


class WatchedStore:
    """A store whose failure is its directory's."""

    def __init__(self, store: Store, health: Health) -> None:
        self._store = store
        self._health = health

    def get(self, key: bytes) -> bytes | None:
        return self._store.get(key)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return self._store.scan(start, end)

    def write(
        self,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        ranges: Sequence[tuple[bytes, bytes]] = (),
        *,
        sync: bool,
    ) -> None:
        try:
            self._store.write(puts, deletes, ranges, sync=sync)
        except StorageFailed as error:
            self._health.fail(str(error))
            raise

    def close(self) -> None:
        self._store.close()
