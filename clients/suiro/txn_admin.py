"""An operator's view of transactions, for ordinary threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.aio.txn_admin import TxnAdmin as AioTxnAdmin
    from suiro.loop_thread import LoopThread
    from suiro.model.ids import TopicPartition
    from suiro.txn_info import OpenTransaction, PartitionProducers, TxnInfo, TxnListing


class TxnAdmin:
    """`Admin.transactions`."""

    def __init__(self, loop: LoopThread, transactions: AioTxnAdmin) -> None:
        self._loop = loop
        self._transactions = transactions

    def list_transactions(
        self, states: Iterable[str] = (), *, older_than_ms: int = 0
    ) -> list[TxnListing]:
        """Every transactional id, or those in these states or with one open for so long."""
        return self._loop.run(
            self._transactions.list_transactions(states, older_than_ms=older_than_ms)
        )

    def describe(self, transactional_id: str) -> TxnInfo:
        """All that its coordinator knows. Raises InvalidTransaction if nobody has taken the id."""
        return self._loop.run(self._transactions.describe(transactional_id))

    def abort(self, transactional_id: str) -> None:
        """Abort what is open, if anything is; its producer is told. Raises InvalidTransaction if it
        is committed and being completed, or if nobody has taken the id.
        """
        self._loop.run(self._transactions.abort(transactional_id))

    def producers(self, partition: TopicPartition) -> PartitionProducers:
        """Who has written to a partition, and what they have open there."""
        return self._loop.run(self._transactions.producers(partition))

    def open_in_partitions(
        self, topics: Iterable[str] = (), *, older_than_ms: int = 0
    ) -> list[OpenTransaction]:
        """Transactions that are open in partitions of these topics, or of all."""
        return self._loop.run(
            self._transactions.open_in_partitions(topics, older_than_ms=older_than_ms)
        )
