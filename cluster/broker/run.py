"""What a reader gets of a log, and whether it comes from this log at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.batch import walk
from suiro.model.errors import PositionTruncated
from suiro.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.batch import Buffer

    from cluster.log.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class Run:
    """Batches for a reader, and where it goes on; what was left out lies before `next_offset`."""

    batches: Sequence[Buffer]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start: int
    last_epoch: int = NO_LEADER_EPOCH


def check_position(log: PartitionLog, offset: int, last_epoch: int) -> None:
    """Refuse a reader whose last record, of leader epoch `last_epoch`, is not before `offset`."""
    found = log.end_offset_for(LeaderEpoch(last_epoch)) if last_epoch >= 0 else None
    if found is None:
        return  # nothing to compare with: nobody knows, or that part of the log was trimmed
    if found.leader_epoch != last_epoch or found.end < offset:
        raise PositionTruncated(
            f"{log.home.partition}: offset {offset} after epoch {last_epoch}, which ends at "
            f"{found.end} here: the records before it were replaced",
            offset=min(offset, found.end),
        )


def end_of(data: bytes) -> Offset:
    """The offset after a run of batches."""
    end = 0
    for _, header in walk(data):
        end = header.end
    return Offset(end)
