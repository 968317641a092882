"""How much may still be written to a directory: `Room`.

The last of a disk is a reserve. Appends and compaction are refused before they touch it, so that
what frees space can always run: moving a log start, renaming and unlinking files, the store's own
writes. A store that once failed to write would be lost until the next start.

The file system is asked only now and then: whoever asks is granted a part of what is free, at most
a part of the reserve, as others may write to the same disk. All logs of a directory share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from suiro.model.errors import DiskFull

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.host.fs import Fs

GRANT_SHARE: Final = 8


class Room:
    """The room of one directory. For any thread: a count that is a little off does no harm."""

    def __init__(self, fs: Fs, path: Path, reserve_bytes: int) -> None:
        self._fs = fs
        self._path = path
        self._reserve_bytes = reserve_bytes
        self._granted_bytes = 0

    def take(self, size: int) -> None:
        """So much is about to be written. Raises DiskFull if that would eat into the reserve; once
        there is room again, it is granted again.
        """
        if size > self._granted_bytes:
            spare = self._spare_bytes()
            if size > spare:
                raise DiskFull(
                    f"{self._path.name}: {size} bytes to write, {max(spare, 0)} free beside the "
                    f"reserve of {self._reserve_bytes}"
                )
            self._granted_bytes = max(size, min(spare, self._reserve_bytes) // GRANT_SHARE)
        self._granted_bytes -= size

    def _spare_bytes(self) -> int:
        try:
            return self._fs.free_bytes(self._path) - self._reserve_bytes
        except OSError as error:
            raise DiskFull(f"{self._path.name}: nobody knows what is free: {error}") from error
