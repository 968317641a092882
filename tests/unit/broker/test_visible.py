"""What readers do not see: control batches and, for read_committed, aborted ones."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.ids import Offset, ProducerId

from cluster.broker.visible import visible_batches
from cluster.log.aborted import AbortedRange

if TYPE_CHECKING:
    from suiro.model.batch import Buffer


def batch(base: int, producer_id: int = -1, *, txn: bool = False, control: bool = False) -> bytes:
    options = BatchOptions(
        producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=txn,
        control=control,
    )  # fmt: skip
    encoded = encode_lists(None, [b"%d" % base], timestamps_ms=0, options=options)
    struct.pack_into(">q", encoded, 0, base)
    return bytes(encoded)


def bases(kept: list[Buffer]) -> list[int]:
    found = []
    for run in kept:
        position = 0
        while position < len(run):
            base, length = struct.unpack_from(">qi", run, position)
            found.append(base)
            position += 12 + length
    return found


def test_only_committed_batches_remain() -> None:
    log = [
        batch(0),
        batch(1, 7, txn=True),  # aborted by the marker at 4
        batch(2, 8, txn=True),  # committed by the marker at 5
        batch(3, 7),  # the same producer outside a transaction
        batch(4, 7, txn=True, control=True),
        batch(5, 8, txn=True, control=True),
        batch(6, 7, txn=True),  # its next transaction
    ]
    aborted = [AbortedRange(ProducerId(7), Offset(1), Offset(4), Offset(5))]
    assert bases(visible_batches(b"".join(log), aborted)) == [0, 2, 3, 6]


def test_who_reads_uncommitted_sees_all_but_the_markers() -> None:
    log = [batch(0, 7, txn=True), batch(1, 7, txn=True, control=True), batch(2)]
    assert bases(visible_batches(b"".join(log), [])) == [0, 2]


def test_nothing_left_out_is_one_view() -> None:
    data = batch(0) + batch(1)
    assert [bytes(run) for run in visible_batches(data, [])] == [data]
