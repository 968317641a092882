"""An operator's questions about transactions, and the word that ends one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2
from suiro._proto import txncoord_pb2 as pb
from suiro.aio import coordinators
from suiro.model.errors import LeaderNotAvailable, NotLeader, UnknownTopicOrPartition
from suiro.model.ids import SHARED_PREFIX, Address, TopicPartition
from suiro.transport.methods import BrokerMethods, TxnCoordinatorMethods
from suiro.txn_info import (
    OpenTransaction,
    PartitionProducers,
    ProducerInfo,
    TxnInfo,
    TxnListing,
    TxnWriterInfo,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from suiro._proto.common_pb2 import TopicPartition as WirePartition
    from suiro.connection import Connection

AT_ONCE: Final = 32
"""Partitions that are asked about at the same time."""
UNDER_WAY: Final = ("ongoing", "prepare_commit", "prepare_abort")


class TxnAdmin:
    """`Admin.transactions`. `now_ms` is the time of day."""

    def __init__(
        self, connection: Connection, timeout_s: float, now_ms: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._now_ms = now_ms
        self._coordinators = coordinators.transactions(connection)

    async def list_transactions(
        self, states: Iterable[str] = (), *, older_than_ms: int = 0
    ) -> list[TxnListing]:
        """Every transactional id, or those in these states or with one open for so long."""
        request = pb.ListTransactionsRequest(states=states, older_than_ms=older_than_ms)
        replies = await self._coordinators.call_everyone(
            TxnCoordinatorMethods.LIST_TRANSACTIONS, request, timeout_s=self._timeout_s
        )
        found = [
            _listing(summary, address)
            for address, reply in replies
            for summary in reply.transactions
        ]
        return sorted(found, key=lambda listing: listing.transactional_id)

    async def describe(self, transactional_id: str) -> TxnInfo:
        """All that its coordinator knows. Raises InvalidTransaction if nobody has taken the id."""
        reply = await self._coordinators.call(
            transactional_id,
            TxnCoordinatorMethods.DESCRIBE_TRANSACTION,
            pb.DescribeTransactionRequest(transactional_id=transactional_id),
            timeout_s=self._timeout_s,
        )
        return TxnInfo(
            listing=_listing(
                reply.summary, Address(reply.coordinator.host, reply.coordinator.port)
            ),
            timeout_ms=reply.timeout_ms,
            partitions=_partitions(reply.partitions),
            groups=tuple(reply.groups),
            writers=tuple(
                TxnWriterInfo(w.writer, w.producer_id, w.prepared, _partitions(w.partitions))
                for w in reply.writers
            ),
            last_committed_sequence=reply.last_committed_sequence,
            last_outcome=reply.last_outcome,
            fenced_by=reply.fenced_by,
            fenced_at_ms=reply.fenced_at_ms,
        )

    async def abort(self, transactional_id: str) -> None:
        """Abort what is open, if anything is; its producer is told. Raises InvalidTransaction if it
        is committed and being completed, or if nobody has taken the id.
        """
        await self._coordinators.call(
            transactional_id,
            TxnCoordinatorMethods.ABORT_TRANSACTION,
            pb.AbortTransactionRequest(transactional_id=transactional_id),
            timeout_s=self._timeout_s,
        )

    async def producers(self, partition: TopicPartition) -> PartitionProducers:
        """Who has written to a partition, and what they have open there."""
        topic = await self._connection.topic(partition.topic, timeout_s=self._timeout_s)
        if not 0 <= partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartition(f"{partition.topic} has no {partition}")
        leader = topic.partitions[partition.partition].leader
        if leader is None or leader not in self._connection.brokers:
            raise LeaderNotAvailable(f"{partition} has no leader now")
        reply = await self._connection.transport.call(
            self._connection.brokers[leader],
            BrokerMethods.DESCRIBE_PRODUCERS,
            broker_pb2.DescribeProducersRequest(
                topic=partition.topic, partition=partition.partition
            ),
            timeout_s=self._timeout_s,
        )
        return PartitionProducers(
            partition=partition,
            producers=tuple(
                ProducerInfo(
                    producer_id=p.producer_id,
                    producer_epoch=p.producer_epoch,
                    last_sequence=p.last_sequence,
                    last_timestamp_ms=p.last_timestamp_ms,
                    open_from=p.open_transaction_start,
                )
                for p in reply.producers
            ),
            last_stable_offset=reply.last_stable_offset,
            high_watermark=reply.high_watermark,
        )

    async def open_in_partitions(
        self, topics: Iterable[str] = (), *, older_than_ms: int = 0
    ) -> list[OpenTransaction]:
        """Transactions that are open in the partitions of these topics, or of all, and of which
        nothing was written for so long; with the coordinator's word on each.

        The partitions are asked first: what they have open, a coordinator must know.
        """
        partitions = await self._all_partitions(topics)
        limit = asyncio.Semaphore(AT_ONCE)

        async def ask(partition: TopicPartition) -> PartitionProducers | None:
            async with limit:
                try:
                    return await self.producers(partition)
                except (LeaderNotAvailable, NotLeader):
                    return None  # nobody can read it now, so nobody is held back

        answers = await asyncio.gather(*map(ask, partitions))
        before_ms = self._now_ms() - older_than_ms
        held = [
            (answer, producer)
            for answer in answers
            if answer is not None
            for producer in answer.producers
            if producer.open_from >= 0 and producer.last_timestamp_ms <= before_ms
        ]
        owners = await self._owners() if held else {}
        found = []
        for answer, producer in held:
            owner = owners.get(producer.producer_id)
            back = answer.high_watermark - producer.open_from
            name, state = (owner.transactional_id, owner.state) if owner else ("", "")
            found.append(OpenTransaction(answer.partition, producer, back, name, state))
        return found

    async def _all_partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        found = {
            name: await self._connection.topic(name, timeout_s=self._timeout_s) for name in topics
        }
        found = found or await self._connection.all_topics(timeout_s=self._timeout_s)
        return [
            TopicPartition(name, number)
            for name in sorted(found)
            for number in range(len(found[name].partitions))
        ]

    async def _owners(self) -> dict[int, TxnListing]:
        """Whose producer ids have a transaction under way; those of shared ones too."""
        found = {}
        for listing in await self.list_transactions(UNDER_WAY):
            found[listing.producer_id] = listing
            if listing.transactional_id.startswith(SHARED_PREFIX):
                info = await self.describe(listing.transactional_id)
                found |= dict.fromkeys(info.producer_ids, listing)
        return found


def _listing(summary: pb.TransactionSummary, coordinator: Address) -> TxnListing:
    return TxnListing(
        transactional_id=summary.transactional_id,
        state=summary.state,
        producer_id=summary.producer_id,
        producer_epoch=summary.producer_epoch,
        started_at_ms=summary.started_at_ms,
        client=summary.client,
        coordinator=coordinator,
    )


def _partitions(partitions: Iterable[WirePartition]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(p.topic, p.partition) for p in partitions)
