"""Transactional commits of one process, and the coordinator that ends its transactions.

A transaction commits only if its offsets were all accepted. How it ends is decided once; the word
is repeated until it is answered, also after the process has died; only then may the next begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.ids import ProducerEpoch, ProducerId

from cluster.groupcoord.requests import Settle

if TYPE_CHECKING:
    from suiro.model.ids import TopicPartition

    from tests.sim.group_member import Process
    from tests.sim.group_world import World

SETTLE_AGAIN_MS = 300
TXN_MS = 600


class Transactions:
    """One producer id."""

    def __init__(self, world: World, process: Process) -> None:
        self.world = world
        self.process = process
        self.producer_id = world.next_number()
        self.epoch = 0
        self.is_open = False
        self._offsets: dict[TopicPartition, int] = {}
        self._resets = 0

    def begin(self) -> None:
        if self.is_open:
            return
        self.is_open = True
        self.epoch += 1
        epoch = self.epoch
        self._offsets = dict(self.process.positions)
        self._resets = self.world.checker.resets
        self.world.counts["transactions"] += 1
        self.process.send_commit(
            sorted(self._offsets),
            metadata=f"txn {self.producer_id} {epoch}",
            txn=(self.producer_id, epoch),
            done=lambda outcomes: self._on_pended(epoch, outcomes),
        )
        self.world.at(TXN_MS, self._end, epoch, False)

    def _on_pended(self, epoch: int, outcomes: Any) -> None:
        if not isinstance(outcomes, SuiroError) and all(o.error is None for o in outcomes):
            self._end(epoch, self.world.random.random() < 0.7)

    def _end(self, epoch: int, commit: bool) -> None:
        key = (self.producer_id, epoch)
        if epoch != self.epoch or key in self.world.checker.ends:
            return
        self.world.checker.ends[key] = commit
        self._settle(epoch)

    def _settle(self, epoch: int) -> None:
        if epoch != self.epoch or not self.is_open:
            return
        commit = self.world.checker.ends[self.producer_id, epoch]
        end = Settle("g", ProducerId(self.producer_id), ProducerEpoch(epoch), commit)
        self.world.settle(end, lambda reply: self._on_settled(epoch, commit, reply))
        self.world.at(SETTLE_AGAIN_MS, self._settle, epoch)

    def _on_settled(self, epoch: int, commit: bool, reply: Any) -> None:
        if epoch != self.epoch or not self.is_open:
            return
        assert not isinstance(reply, SuiroError), f"a transaction cannot be settled: {reply}"
        self.is_open = False
        if commit:
            for partition, offset in self._offsets.items():
                self.world.checker.on_acked(partition, offset, self._resets)
