"""Planted bugs between the areas: what clients are answered and given, moved replicas, readiness.

They are hunted by directed tests of several areas, and by seeds of the whole system.
"""

from __future__ import annotations

from suiro.aio.fetcher import Fetcher
from suiro.fetch_buffer import FetchBuffer
from suiro.partitioner import StickyChoice

from cluster.controller_quorum import reassignment
from cluster.log.drafts import Draft
from cluster.log.epochs import LeaderEpochs
from cluster.log.partition_log import PartitionLog
from cluster.node import Node
from tests.mutants.registry import Edit, Mutant

_REBUILT = "self._state, _ = rebuild_state("

SYSTEM_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "row 12: replicas are let go before those that replace them hold anything",
        "P1",
        (Edit(reassignment.advanced, "not set(moving.adding) <= set(isr) or ", ""),),
    ),
    Mutant(
        "row 14: an epoch is said to end where it begins",
        "P10",
        (
            Edit(
                LeaderEpochs.end_offset_for,
                "self._starts[at] if at <",
                "self._starts[at - 1] if at <",
            ),
        ),
    ),
    Mutant(
        "row 17: an append is answered with offset 0",
        "P2",
        (Edit(Draft.add, "Offset(header.base_offset)", "Offset(0)"),),
    ),
    Mutant(
        "row 24: the sender's rhythm skips partitions",
        "fairness",
        (
            Edit(
                StickyChoice.choose,
                "range(partitions), partitions)",
                "range(0, partitions, 2), (partitions + 1) // 2)",
            ),
        ),
    ),
    Mutant(
        "row 25: what was fetched of one partition is taken for another's",
        "P6",
        (
            Edit(
                Fetcher.on_reply,
                "self._slots.get(slot)",
                "self._slots.get(slot ^ 1) or self._slots.get(slot)",
            ),
        ),
    ),
    Mutant(
        "row 39: what is known of producers outlives the records that were cut off",
        "I2",
        (
            Edit(PartitionLog.truncate_to, _REBUILT, f"former = self._state.producers; {_REBUILT}"),
            Edit(
                PartitionLog.truncate_to,
                "self._state.trim(self._log_start)",
                "self._state.producers = former; self._state.trim(self._log_start)",
            ),
        ),
    ),
    Mutant(
        "row 40: a broker is ready before it is in sync",
        "L2",
        (Edit(Node._in_sync, "while self._broker is not None and", "while False and"),),
    ),
    Mutant(
        "row 42: a reader waits at an offset that has no record",
        "C2",
        (
            Edit(
                FetchBuffer._drop_read_chunk,
                "max(self.position, chunk.next_offset)",
                "self.position",
            ),
        ),
    ),
)

CANARY = Mutant(
    "canary: a freed chunk's bytes are counted before its size goes down",
    "nothing",
    (
        Edit(
            FetchBuffer._drop_read_chunk,
            "chunk = self._chunks.popleft()",
            "chunk = self._chunks[0]; self._chunks.popleft()",
        ),
    ),
)
