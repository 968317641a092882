"""What becomes of each batch when a log is compacted: `Compactor`. Pure.

Batches come in the order of the log, in runs; what goes out has the same offsets without a gap.
Stays: the newest record of each key, if it was committed; the mark of a deleted key for a while;
records without a key; of each producer the batches that its state remembers, empty if need be; the
marker of a transaction as long as anything is left of it, and for a while after. All the rest
becomes filler.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from suiro.model.batch import walk
from suiro.model.columns import read_keys
from suiro.model.compact import empty_batch, filler, filter_batch, is_filler
from suiro.model.errors import BatchTooLarge
from suiro.model.limits import BATCH_RECORDS_MAX

from cluster.log.offset_map import NOT_THERE, hash_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from suiro.model.batch import BatchHeader, Buffer
    from suiro.model.columns import KeyColumns

    from cluster.log.aborted import AbortedRange
    from cluster.log.clean_plan import CleanPlan
    from cluster.log.offset_map import KeyHashes, OffsetMap


_LAST: Final = attrgetter("last")


class Facts(NamedTuple):
    """What is known of the log when a pass begins."""

    log_start: int
    aborted: Sequence[AbortedRange]
    remembered: frozenset[int]
    """Where the batches and markers begin that the states of producers are made of."""


class Batch(NamedTuple):
    """One batch: its header, and all of its bytes."""

    header: BatchHeader
    data: memoryview


class Keyed(NamedTuple):
    """Those records of a run of batches that have a key."""

    hashes: KeyHashes
    valid: NDArray[np.bool_]
    """One bool per record of the run: whether it has a key."""


class Compactor:
    """One pass. `survey` every run of the dirty part, then `rewrite` every run of the log."""

    def __init__(self, plan: CleanPlan, facts: Facts, newest: OffsetMap, seed: int) -> None:
        self.end = plan.end
        """Where the pass ends; what comes after is taken as it is. It may still be lowered to what
        was surveyed."""
        self._marks_before = plan.marks_before
        self._facts = facts
        self._newest = newest
        self._seed = seed
        self._aborted: dict[int, list[AbortedRange]] = {}
        for aborted in facts.aborted:
            self._aborted.setdefault(aborted.producer_id, []).append(aborted)
        self._has_left: set[int] = set()  # producers whose transaction has something left
        self._gone: _Gone | None = None

    def survey(self, run: Sequence[Batch]) -> None:
        """Note the newest record of each key."""
        columns = [
            read_keys(batch.data, verify_crc=False)
            for batch in run
            if self._has_candidates(batch.header)
        ]
        if columns:
            keyed = self._keyed(columns)
            offsets = np.concatenate([column.offsets() for column in columns])
            self._newest.add(keyed.hashes, offsets[keyed.valid])

    def rewrite(self, run: Sequence[Batch]) -> Iterator[Buffer]:
        """What stays of a run of batches; filler is held back, as more may follow (`finish`)."""
        masks = self._masks(run)
        for batch in run:
            kept = self._kept(batch, masks)
            if kept is None:
                yield from self._fill(batch.header)
            else:
                yield from self.finish()
                yield kept

    def finish(self) -> Iterator[Buffer]:
        """The filler that was held back, if there is any: nothing more may be added to it."""
        if self._gone is not None:
            yield filler(*self._gone)
            self._gone = None

    # -- which stay -------------------------------------------------------------------------------

    def _kept(self, batch: Batch, masks: dict[int, NDArray[np.bool_]]) -> Buffer | None:
        header = batch.header
        if header.base_offset >= self.end:
            return batch.data
        if is_filler(header):
            return None
        if header.is_control:
            return batch.data if self._keeps_marker(header) else None
        kept: Buffer | None = None
        if header.base_offset in masks:
            kept = _filtered(batch.data, masks[header.base_offset])
        if kept is None and header.base_offset in self._facts.remembered:
            kept = empty_batch(header)
        if kept is not None and header.is_transactional:
            self._has_left.add(header.producer_id)
        return kept

    def _keeps_marker(self, header: BatchHeader) -> bool:
        has_left = header.producer_id in self._has_left
        self._has_left.discard(header.producer_id)
        return (
            has_left
            or header.base_offset >= self._marks_before
            or header.base_offset in self._facts.remembered
        )

    def _has_candidates(self, header: BatchHeader) -> bool:
        """Whether a record of the batch may stay, or show that an older one need not."""
        return (
            bool(header.record_count)
            and not header.is_control
            and header.base_offset < self.end
            and header.end > self._facts.log_start
            and not self._is_aborted(header)
        )

    def _is_aborted(self, header: BatchHeader) -> bool:
        ranges = self._aborted.get(header.producer_id)
        if ranges is None or not header.is_transactional:
            return False
        at = bisect_left(ranges, header.base_offset, key=_LAST)
        return at < len(ranges) and ranges[at].first <= header.base_offset

    def _masks(self, found: Sequence[Batch]) -> dict[int, NDArray[np.bool_]]:
        """Of each batch that has candidates, by base offset, which records stay."""
        columns = [
            read_keys(batch.data, verify_crc=False)
            for batch in found
            if self._has_candidates(batch.header)
        ]
        if not columns:
            return {}
        keyed = self._keyed(columns)
        newest = np.full(len(keyed.valid), NOT_THERE, np.int64)
        newest[keyed.valid] = self._newest.newest(keyed.hashes)
        offsets = np.concatenate([column.offsets() for column in columns])
        tombstones = np.concatenate([column.tombstones() for column in columns])
        forgotten = tombstones & keyed.valid & (offsets < self._marks_before)
        stays = (offsets >= newest) & (offsets >= self._facts.log_start) & ~forgotten
        ends = np.cumsum([len(column) for column in columns])[:-1]
        parts = np.split(stays, ends)
        return {
            column.header.base_offset: part for column, part in zip(columns, parts, strict=True)
        }

    def _keyed(self, columns: Sequence[KeyColumns]) -> Keyed:
        """The keys of all these batches at once: many are small, and a call of numpy is not."""
        lengths, valid, data = [], [], []
        for column in columns:
            keys = column.keys
            if keys is None:
                valid.append(np.zeros(len(column), np.bool_))
                continue
            found = keys.valid()
            found = np.ones(len(column), np.bool_) if found is None else found
            valid.append(found)
            lengths.append(keys.lengths[found].astype(np.int64))
            data.append(np.frombuffer(keys.data, np.uint8))
        hashes = hash_keys(
            np.concatenate(data) if data else np.empty(0, np.uint8),
            np.concatenate(lengths) if lengths else np.empty(0, np.int64),
            self._seed,
        )
        return Keyed(hashes, np.concatenate(valid))

    # -- what takes the place of the others -------------------------------------------------------

    def _fill(self, header: BatchHeader) -> Iterator[Buffer]:
        gone = self._gone
        if (
            gone is not None
            and gone.leader_epoch == header.leader_epoch
            and header.end - gone.base <= BATCH_RECORDS_MAX
        ):
            self._gone = gone._replace(end=header.end)
            return
        yield from self.finish()
        self._gone = _Gone(header.base_offset, header.end, header.leader_epoch)


class _Gone(NamedTuple):
    """Offsets of which nothing is left, all of one leader epoch."""

    base: int
    end: int
    leader_epoch: int


def _filtered(data: Buffer, mask: NDArray[np.bool_]) -> Buffer | None:
    try:
        return filter_batch(data, mask)
    except BatchTooLarge:
        return data  # offset deltas need room too: rather a record too many than none


def batches(data: Buffer) -> list[Batch]:
    """A run of whole batches."""
    view = memoryview(data)
    return [
        Batch(header, view[position : position + header.size]) for position, header in walk(data)
    ]
