"""The small state of a log directory in its `Store`: which keys, and what is in them.

Everything here but the log start is a hint. A recovery point, a high watermark or a snapshot that
is lost or older than the log costs time, never data. One that claims more than the log holds
would be dangerous, so whoever cuts the log says so here first, durably. The log start is not
a hint: it is durable before the records below it go. Values carry a checksum; a damaged one counts
as lost. Keys hold the topic's id, so a topic made anew under an old name finds nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zlib import crc32

from suiro.model.ids import BrokerEpoch, Offset

from cluster.log.clean_plan import CleanHistory
from cluster.log.state import decode_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from suiro.model.ids import TopicId

    from cluster.host.store import Store
    from cluster.log.state import LogState

SNAPSHOTS_KEPT: Final = 3
"""The newest serves recovery; an older one a truncation to before the newest. A truncation to
before all of them replays the log, and so forgets producers whose every batch was trimmed."""

_CLEAN: Final = b"clean"
_LOG: Final = b"log/"
_PARTITION: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">q")
_CHECKED: Final = struct.Struct(">qI")
_CHECKSUM: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Saved:
    """What was saved of one log; None where nothing (sound) is there."""

    log_start: Offset | None
    recovery_point: Offset | None
    """Everything below was on stable storage when this was written."""
    high_watermark: Offset | None


class Checkpoint:
    """The saved state of one partition's log."""

    def __init__(self, store: Store, topic_id: TopicId, partition: int) -> None:
        self._store = store
        prefix = _LOG + topic_id + _PARTITION.pack(partition)
        self._log_start = prefix + b"/log_start"
        self._recovery_point = prefix + b"/recovery_point"
        self._high_watermark = prefix + b"/high_watermark"
        self._cleaned = prefix + b"/cleaned"
        self._snapshot = prefix + b"/snapshot/"
        self._first, self._last = prefix + b"/", prefix + b"0"  # "0" comes after "/"

    def load(self) -> Saved:
        return Saved(
            log_start=self._number(self._log_start),
            recovery_point=self._number(self._recovery_point),
            high_watermark=self._number(self._high_watermark),
        )

    def save(self, recovery_point: Offset, high_watermark: Offset) -> None:
        """Hints, so without sync."""
        puts = [
            (self._recovery_point, _encode_number(recovery_point)),
            (self._high_watermark, _encode_number(high_watermark)),
        ]
        self._store.write(puts, sync=False)

    def start_at(self, log_start: Offset) -> None:
        """Durably: the log starts here, the records below may go."""
        self._store.write([(self._log_start, _encode_number(log_start))], sync=True)

    def end_at(self, log_start: Offset, recovery_point: Offset, end: Offset) -> None:
        """Durably: the log is new, or about to be cut at `end`; nothing here may claim more."""
        puts = [
            (self._log_start, _encode_number(log_start)),
            (self._recovery_point, _encode_number(recovery_point)),
            (self._cleaned, _encode_history(self.history().cut(end))),
        ]
        self._store.write(puts, ranges=[self._snapshots_above(end)], sync=True)

    def restart_at(self, offset: Offset) -> None:
        """Durably: the log is about to be emptied, and its next offset is this one.

        Nothing of the old log is promised any more, so the recovery point falls to 0.
        """
        puts = [
            (self._log_start, _encode_number(offset)),
            (self._recovery_point, _encode_number(0)),
        ]
        self._store.write(puts, ranges=[(self._first, self._last)], sync=True)

    def history(self) -> CleanHistory:
        """Which parts of the log were compacted, and when."""
        return _decode_history(self._store.get(self._cleaned))

    def save_history(self, history: CleanHistory) -> None:
        """A hint, so without sync; but never before what it speaks of is in place, durably."""
        self._store.write([(self._cleaned, _encode_history(history))], sync=False)

    def forget(self) -> None:
        """Durably: the log is gone."""
        self._store.write(ranges=[(self._first, self._last)], sync=True)

    # -- snapshots --------------------------------------------------------------------------------

    def save_snapshot(self, state: LogState) -> None:
        """A snapshot at the state's end; the oldest one over the number kept goes."""
        keys = [key for key, _ in self._scan_snapshots(Offset(state.end - 1))]
        spare = keys[: max(0, len(keys) - SNAPSHOTS_KEPT + 1)]
        put = (self._snapshot + _NUMBER.pack(state.end), state.encode())
        self._store.write([put], deletes=spare, sync=False)

    def snapshots(self, up_to: Offset) -> Iterator[LogState]:
        """The sound snapshots at or below an offset, newest first."""
        for key, value in reversed(list(self._scan_snapshots(up_to))):
            state = decode_state(value)
            if state is not None and key.endswith(_NUMBER.pack(state.end)):
                yield state

    def has_snapshot_above(self, end: Offset) -> bool:
        return any(True for _ in self._store.scan(*self._snapshots_above(end)))

    def _scan_snapshots(self, up_to: Offset) -> Iterator[tuple[bytes, bytes]]:
        return self._store.scan(self._snapshot, self._snapshots_above(up_to)[0])

    def _snapshots_above(self, end: Offset) -> tuple[bytes, bytes]:
        return self._snapshot + _NUMBER.pack(end + 1), self._last

    def _number(self, key: bytes) -> Offset | None:
        value = _decode_number(self._store.get(key))
        return None if value is None else Offset(value)


def mark_clean(store: Store, broker_epoch: BrokerEpoch) -> None:
    """Durably: every log of this directory was closed in order by the broker of this epoch."""
    store.write([(_CLEAN, _encode_number(broker_epoch))], sync=True)


def take_clean(store: Store) -> BrokerEpoch | None:
    """The mark of the last shutdown, if that was clean; from now on, durably, there is none."""
    broker_epoch = _decode_number(store.get(_CLEAN))
    store.write(deletes=[_CLEAN], sync=True)
    return None if broker_epoch is None else BrokerEpoch(broker_epoch)


def _encode_number(number: int) -> bytes:
    return _CHECKED.pack(number, crc32(_NUMBER.pack(number)))


def _decode_number(value: bytes | None) -> int | None:
    if value is None or len(value) != _CHECKED.size:
        return None
    number, checksum = _CHECKED.unpack(value)
    return int(number) if checksum == crc32(_NUMBER.pack(number)) else None


def _encode_history(history: CleanHistory) -> bytes:
    body = history.encode()
    return _CHECKSUM.pack(crc32(body)) + body


def _decode_history(value: bytes | None) -> CleanHistory:
    if value is None or len(value) < _CHECKSUM.size:
        return CleanHistory()
    body = value[_CHECKSUM.size :]
    sound = _CHECKSUM.unpack_from(value)[0] == crc32(body)
    return CleanHistory.decode(body) if sound else CleanHistory()
