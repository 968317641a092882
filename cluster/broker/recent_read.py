"""What was last read for a follower: the others mostly need the same bytes a moment later."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from suiro.model.ids import LeaderEpoch, Offset

    from cluster.log.partition_log import PartitionLog


class RecentRead:
    """One for all partitions of a broker. Within a leader epoch a leader's log only grows, so what
    lies between two offsets stays what it is.
    """

    __slots__ = ("_data", "_what")

    def __init__(self) -> None:
        self._what: tuple[PartitionLog, LeaderEpoch, Offset, int, Offset] | None = None
        self._data = b""

    def read(
        self, log: PartitionLog, leader_epoch: LeaderEpoch, start: Offset, bytes_max: int
    ) -> bytes:
        """Batches from `start` on, for a follower in this leader epoch."""
        what = (log, leader_epoch, start, bytes_max, log.log_end)
        if what != self._what:
            self._data = log.read_from(start, bytes_max)
            self._what = what
        return self._data
