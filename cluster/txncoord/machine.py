"""The machine of a transaction shard: every change of its transactional ids is decided here.

Each `decide_*` reads the table and returns the records, the reply and the markers to send; it
changes nothing. `apply` is the only mutator. The rules are in the modules beside this one, by
subject; this class is the list of what can be asked. The host appends, waits, sends the markers
and brings their answers back; after a take-over it starts again what `open_work` lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from cluster.txncoord import end, expire, init, partitions, shared
from cluster.txncoord.records import TxnChanged, TxnForgotten, TxnRecord
from cluster.txncoord.table import TxnLimits, TxnTable, markers_of
from cluster.txncoord.txn import TxnState

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from suiro.model.ids import ProducerId, ProducerIdentity

    from cluster.host.machine import Decision
    from cluster.txncoord.requests import (
        Completing,
        EndShared,
        Init,
        Marked,
        Open,
        Places,
        SendMarkers,
        SharedEnd,
    )
    from cluster.txncoord.shared import Opened
    from cluster.txncoord.txn import Txn


class TxnMachine:
    """The transactional ids of one shard, at the coordinator that owns it."""

    def __init__(self, limits: TxnLimits | None = None) -> None:
        self.table = TxnTable(TxnLimits() if limits is None else limits)

    def apply(self, record: TxnRecord) -> None:
        match record:
            case TxnChanged(txn):
                self.table.txns[txn.transactional_id] = txn
                self.table.ids.use([txn.identity.producer_id])
                self.table.ids.use([writer.identity.producer_id for writer in txn.writers])
            case TxnForgotten(transactional_id):
                self.table.txns.pop(transactional_id, None)
            case _:
                assert_never(record)

    def on_producer_ids(self, start: ProducerId, end: ProducerId) -> None:
        """A fact, not a record: the controller has allocated [start, end) to this node."""
        self.table.ids.add(start, end)

    @property
    def wants_producer_ids(self) -> bool:
        return self.table.ids.wants_block

    def open_work(self) -> tuple[SendMarkers, ...]:
        """What is decided and not complete: whoever loads this machine has to finish it."""
        txns = self.table.txns
        return tuple(work for name in sorted(txns) for work in markers_of(txns[name]))

    # -- one producer -----------------------------------------------------------------------------

    def decide_init(self, request: Init, now_ms: int) -> Decision[ProducerIdentity | Completing]:
        """Take an id: bump its epoch, fence who had it, abort what was open."""
        return init.init(self.table, request, now_ms)

    def decide_add(
        self, transactional_id: str, identity: ProducerIdentity, places: Places, now_ms: int
    ) -> Decision[None]:
        """Partitions and groups join the transaction, before anything is written there."""
        return partitions.add(self.table, transactional_id, identity, places, now_ms)

    def decide_verify(
        self, transactional_id: str, identity: ProducerIdentity, places: Places
    ) -> Decision[None]:
        """May these let the transaction in? Raises if not."""
        return partitions.verify(self.table, transactional_id, identity, places)

    def decide_end(
        self, transactional_id: str, identity: ProducerIdentity, *, commit: bool, now_ms: int
    ) -> Decision[ProducerIdentity]:
        """Commit or abort; replies the identity of the next transaction."""
        return end.end(self.table, transactional_id, identity, commit, now_ms)

    # -- many writers -----------------------------------------------------------------------------

    def decide_open_shared(self, request: Open, now_ms: int) -> Decision[Opened]:
        return shared.open_or_join(self.table, request, now_ms)

    def decide_prepare_writer(
        self, transactional_id: str, identity: ProducerIdentity, now_ms: int
    ) -> Decision[None]:
        return shared.prepare(self.table, transactional_id, identity, now_ms)

    def decide_end_shared(self, request: EndShared, now_ms: int) -> Decision[SharedEnd]:
        return shared.end(self.table, request, now_ms)

    # -- markers, time, operators -----------------------------------------------------------------

    def decide_marked(
        self, transactional_id: str, answers: Sequence[Marked], now_ms: int
    ) -> Decision[bool]:
        """Places have their marker; replies whether all have."""
        return end.marked(self.table, transactional_id, answers, now_ms)

    def decide_expire(self, now_ms: int) -> Decision[int]:
        return expire.expire(self.table, now_ms)

    def decide_forget(self, now_ms: int) -> Decision[int]:
        return expire.forget(self.table, now_ms)

    def decide_abort(self, transactional_id: str, who: str, now_ms: int) -> Decision[None]:
        """An operator's word."""
        return end.abort(self.table, transactional_id, who, now_ms)

    # -- reading ----------------------------------------------------------------------------------

    def get(self, transactional_id: str) -> Txn | None:
        return self.table.txns.get(transactional_id)

    def transactions(
        self, states: Collection[TxnState] = (), opened_before_ms: int | None = None
    ) -> list[Txn]:
        """In the order of their ids; all of them unless it is said which."""
        found = [self.table.txns[name] for name in sorted(self.table.txns)]
        if states:
            found = [txn for txn in found if txn.state in states]
        if opened_before_ms is not None:
            found = [txn for txn in found if 0 <= txn.opened_ms <= opened_before_ms]
        return found

    def next_deadline_ms(self) -> int | None:
        """When `decide_expire` will next have something to do."""
        open_ones = (t for t in self.table.txns.values() if t.state is TxnState.ONGOING)
        return min((txn.expires_ms for txn in open_ones), default=None)
