"""How many transactions are open at this coordinator, and for how long the oldest has been."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.txncoord.txn import DECIDED, TxnState

if TYPE_CHECKING:
    from cluster.host.metrics import Metrics
    from cluster.txncoord.machine import TxnMachine


class TxnMetrics:
    """Over all shards that this node owns."""

    def __init__(self, metrics: Metrics) -> None:
        self._open = metrics.transactions_open.of()
        self._oldest = metrics.transaction_oldest_seconds.of()
        self._shards: dict[int, tuple[int, int]] = {}

    def look(self, shard: int, machine: TxnMachine, now_ms: int) -> None:
        """Count what a shard has under way."""
        opened = [
            txn.opened_ms
            for txn in machine.table.txns.values()
            if txn.state is TxnState.ONGOING or txn.state in DECIDED
        ]
        self._shards[shard] = len(opened), min(opened, default=now_ms)
        self._show(now_ms)

    def forget(self, shard: int, now_ms: int) -> None:
        """It has another owner."""
        self._shards.pop(shard, None)
        self._show(now_ms)

    def _show(self, now_ms: int) -> None:
        self._open.set(sum(count for count, _ in self._shards.values()))
        oldest_ms = min((oldest_ms for _, oldest_ms in self._shards.values()), default=now_ms)
        self._oldest.set(max(0, now_ms - oldest_ms) / 1000)
