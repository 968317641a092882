"""Which leader epoch wrote which offsets: `LeaderEpochs`.

Two replicas whose logs have the same epoch at an offset are equal up to there, so this table is
what decides where a follower truncates. Epochs and start offsets both rise strictly.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from suiro.model.errors import CorruptBatch
from suiro.model.ids import NO_LEADER_EPOCH, LeaderEpoch, Offset

if TYPE_CHECKING:
    from suiro.model.batch import Buffer

_ENTRY: Final = struct.Struct("<iq")


class EpochEnd(NamedTuple):
    """An epoch and the offset after its last record."""

    leader_epoch: LeaderEpoch
    end: Offset


class LeaderEpochs:
    """Epoch -> its first offset, for the part of the log that is still there."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self) -> None:
        self._epochs: list[LeaderEpoch] = []
        self._starts: list[Offset] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeaderEpochs) and self.entries() == other.entries()

    __hash__ = None  # type: ignore[assignment]

    def entries(self) -> list[tuple[LeaderEpoch, Offset]]:
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def last(self) -> LeaderEpoch:
        """The newest epoch, or NO_LEADER_EPOCH."""
        return self._epochs[-1] if self._epochs else NO_LEADER_EPOCH

    def assign(self, leader_epoch: int, offset: int) -> None:
        """A batch of this epoch starts at `offset`, the end of the log."""
        if leader_epoch == self.last:
            return
        if leader_epoch < self.last:
            raise CorruptBatch(
                f"leader epoch {leader_epoch} at offset {offset} follows epoch {self.last}"
            )
        self.truncate_from_end(Offset(offset))  # an epoch whose every record was trimmed away
        self._epochs.append(LeaderEpoch(leader_epoch))
        self._starts.append(Offset(offset))

    def end_offset_for(self, leader_epoch: LeaderEpoch, log_end: Offset) -> EpochEnd | None:
        """The largest epoch <= the one asked for, and where it ends.

        An epoch older than all we know ends where our oldest begins: what came before is either
        the same in every log or gone. None if the log has no epochs at all.
        """
        if not self._epochs:
            return None
        at = bisect_right(self._epochs, leader_epoch)
        end = self._starts[at] if at < len(self._starts) else log_end
        return EpochEnd(self._epochs[at - 1] if at else leader_epoch, end)

    def epoch_of(self, offset: Offset) -> LeaderEpoch | None:
        """The epoch that wrote an offset; beyond the end the last one, before all of them None."""
        at = bisect_right(self._starts, offset)
        return self._epochs[at - 1] if at else None

    def truncate_from_end(self, end: Offset) -> None:
        """The log ends at `end` now."""
        at = bisect_left(self._starts, end)
        del self._epochs[at:], self._starts[at:]

    def truncate_from_start(self, start: Offset) -> None:
        """The log starts at `start` now; the epoch that wrote it stays, from there on."""
        at = bisect_right(self._starts, start)
        if at:
            del self._epochs[: at - 1], self._starts[: at - 1]
            self._starts[0] = start

    def encode(self) -> bytes:
        return b"".join([_ENTRY.pack(*entry) for entry in self.entries()])

    @classmethod
    def decode(cls, data: Buffer) -> LeaderEpochs:
        """The inverse of `encode`; ValueError or struct.error if it was not made by it."""
        table = cls()
        for leader_epoch, start in _ENTRY.iter_unpack(data):
            if table._starts and (leader_epoch <= table.last or start <= table._starts[-1]):
                raise ValueError("epochs do not rise")
            table._epochs.append(LeaderEpoch(leader_epoch))
            table._starts.append(Offset(start))
        return table
