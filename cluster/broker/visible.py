"""What a reader may see of a run of batches. Pure.

The broker leaves out control batches and, for read_committed, those of aborted transactions, so
that every client in every language stays simple. An aborted range belongs to one producer: from its
first offset up to its abort marker, every transactional batch of that producer is aborted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.batch import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.batch import BatchHeader, Buffer

    from cluster.log.aborted import AbortedRange


def visible_batches(data: Buffer, aborted: Sequence[AbortedRange]) -> list[Buffer]:
    """The batches that remain, as views of `data`, neighbours joined."""
    view = memoryview(data)
    kept: list[Buffer] = []
    start = end = 0
    for position, header in walk(data):
        if not (header.is_control or _is_aborted(header, aborted)):
            end = position + header.size
            continue
        if end > start:
            kept.append(view[start:end])
        start = end = position + header.size
    if end > start:
        kept.append(view[start:end])
    return kept


def _is_aborted(header: BatchHeader, aborted: Sequence[AbortedRange]) -> bool:
    return header.is_transactional and any(
        gone.producer_id == header.producer_id and gone.first <= header.base_offset <= gone.last
        for gone in aborted
    )
