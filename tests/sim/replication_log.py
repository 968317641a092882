"""A partition's log for the replication simulation: a list in memory, part of it on disk.

The epochs are the real `LeaderEpochs`. A record is its leader epoch and a value that no other
record has. What a power failure takes is a tail that was not synced; a sync that was under way
while the log was cut proves nothing beyond the cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from suiro.model.ids import LeaderEpoch, Offset

from cluster.log.epochs import LeaderEpochs

if TYPE_CHECKING:
    from collections.abc import Sequence


class Record(NamedTuple):
    leader_epoch: LeaderEpoch
    value: int


@dataclass(slots=True)
class Sync:
    """One sync under way: it will have brought to disk what is below `end`."""

    end: Offset


class MemoryLog:
    """What `LogView` asks for, and what a shell needs to change it."""

    def __init__(self) -> None:
        self.log_start = Offset(0)
        self.log_end = Offset(0)
        self.records: list[Record] = []
        self.epochs = LeaderEpochs()
        self.synced_end = Offset(0)
        self.offset_of: dict[int, Offset] = {}
        """Stands for the producer states: which value is where, or was before it was deleted."""
        self._syncs: list[Sync] = []

    @property
    def last_epoch(self) -> LeaderEpoch:
        return self.epochs.last

    def end_offset_for(self, leader_epoch: LeaderEpoch) -> tuple[LeaderEpoch, Offset] | None:
        return self.epochs.end_offset_for(leader_epoch, self.log_end)

    def at(self, offset: int) -> Record:
        return self.records[offset - self.log_start]

    def has(self, offset: int) -> bool:
        return self.log_start <= offset < self.log_end

    def read(self, start: Offset, count: int) -> list[Record]:
        assert self.log_start <= start
        at = start - self.log_start
        return self.records[at : at + count]

    # -- changing ---------------------------------------------------------------------------------

    def append(self, records: Sequence[Record]) -> None:
        for record in records:
            self.epochs.assign(record.leader_epoch, self.log_end)
            self.offset_of[record.value] = self.log_end
            self.records.append(record)
            self.log_end = Offset(self.log_end + 1)

    def truncate_to(self, end: Offset) -> None:
        assert self.log_start <= end <= self.log_end
        for record in self.records[end - self.log_start :]:
            self.offset_of.pop(record.value, None)
        del self.records[end - self.log_start :]
        self.log_end = end
        self.epochs.truncate_from_end(end)
        self.synced_end = min(self.synced_end, end)
        for sync in self._syncs:
            sync.end = min(sync.end, end)

    def restart_at(self, start: Offset) -> None:
        self.truncate_to(self.log_start)
        self.epochs = LeaderEpochs()
        self.log_start = self.log_end = self.synced_end = start
        for sync in self._syncs:
            sync.end = Offset(0)

    def trim_to(self, start: Offset) -> None:
        assert start <= self.log_end
        if start <= self.log_start:
            return
        del self.records[: start - self.log_start]
        self.epochs.truncate_from_start(start)
        self.log_start = start
        self.synced_end = max(self.synced_end, start)

    # -- durability -------------------------------------------------------------------------------

    def begin_sync(self) -> Sync:
        sync = Sync(self.log_end)
        self._syncs.append(sync)
        return sync

    def end_sync(self, sync: Sync) -> None:
        if sync in self._syncs:
            self._syncs.remove(sync)
            self.synced_end = max(self.synced_end, sync.end)

    def stop(self, end: Offset) -> None:
        """The process is gone, and with it what was beyond `end`; the rest is on disk."""
        assert self.synced_end <= end <= self.log_end
        self._syncs.clear()
        self.truncate_to(end)
        self.synced_end = end

    def wipe(self) -> None:
        """The disk is gone."""
        self._syncs.clear()
        self.restart_at(Offset(0))
