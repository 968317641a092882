"""What has gone wrong with one log, and what follows from it: `Failures`.

Two kinds. A write or a sync that failed leaves nobody knowing what the disk holds: the log refuses
every further write, and its whole directory counts as failed (`Health`). A batch that is not what
was written, or cannot be read, is *damage*: it is never handed out, the rest of the log stays as it
is, and the broker is told, which has other replicas to turn to.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from suiro.model.errors import CorruptBatch, DiskFull, StorageFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.error_base import SuiroError

    from cluster.log.home import LogHome

FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Failures:
    """Of one log; `reason` is set for good."""

    def __init__(self, home: LogHome) -> None:
        self.reason: str | None = None
        self.on_damage: Callable[[str], None] | None = None
        """Called whenever damage is met, perhaps again and again for the same."""
        self._home = home

    def check_writable(self) -> None:
        if self.reason is not None:
            raise StorageFailed(self.reason)

    def refused(self, error: OSError) -> DiskFull | StorageFailed:
        """A write that left the file as it was: a full disk may have room again later."""
        if error.errno in FULL:
            return DiskFull(f"{self._home.partition}: {error}")
        return self.failed(error)

    def failed(self, error: Exception) -> StorageFailed:
        """From now on nobody knows what is on the disk."""
        self.reason = f"{self._home.partition}: {error}"
        if isinstance(error, CorruptBatch):
            self._damaged(self.reason)
        elif self._home.health is not None:
            self._home.health.fail(self.reason)
        return StorageFailed(self.reason)

    def unreadable(self, error: OSError | CorruptBatch) -> SuiroError:
        """A place that cannot be read, or holds something else than was written there."""
        reason = f"{self._home.partition}: {error}"
        self._damaged(reason)
        return error if isinstance(error, CorruptBatch) else StorageFailed(reason)

    def _damaged(self, reason: str) -> None:
        if self.on_damage is not None:
            self.on_damage(reason)
