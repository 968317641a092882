"""A small ordered map on disk: `Store`, and the real one on RocksDB, `RocksStore`.

The quorum keeps its log and its votes here, a log directory its epochs and marks. A write is
atomic: after a crash all of it is there or none. A write with `sync` set survives a power loss
once it has returned, and so does every write before it; the others survive only the process. After
a write has failed nobody knows what is stored, so the store refuses everything from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Store(Protocol):
    """Keys in byte order. Every method blocks, a synced write perhaps for long (see Offload)."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values from `start` on, before `end`, in order, as they are when it begins."""

    def write(
        self,
        puts: Sequence[tuple[bytes, bytes]] = (),
        deletes: Sequence[bytes] = (),
        ranges: Sequence[tuple[bytes, bytes]] = (),
        *,
        sync: bool,
    ) -> None:
        """Atomically: first delete the keys in `ranges` (half-open), then `deletes`, then put.

        So one write can replace a tail. Raises StorageFailed, and then the store is poisoned.
        """

    def close(self) -> None: ...
