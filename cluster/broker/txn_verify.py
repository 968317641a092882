"""Before a batch opens a transaction in a partition, the broker asks the transaction's coordinator.

So no partition can hold an open transaction that its coordinator does not know of, which nobody
would ever end (T6; rows 19 and 23). One question per producer and request, and only for what would
open one: batches that follow in the same transaction cost nothing.

The answer may be old by the time of the append. That is sound: once a transaction that was verified
ends, its marker is in the log with a higher epoch, and the log refuses the batch by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from suiro.model.batch import walk
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity

from cluster.log.producers import NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.batch import BatchHeader, Buffer
    from suiro.model.ids import TopicPartition

    from cluster.log.producers import ProducerState, ProducerStates


class AskCoordinator(Protocol):
    """The rpc VerifyPartitions at whoever owns the transactional id; raises why it may not be."""

    async def __call__(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        /,
    ) -> None: ...


class ArrivedPart(NamedTuple):
    """What a produce request has for one partition, and what is known of the producers there."""

    partition: TopicPartition
    producers: ProducerStates
    data: Buffer


class TxnVerifier:
    """Tells which parts of a produce request may not be appended; remembers nothing."""

    def __init__(self, ask: AskCoordinator) -> None:
        self._ask = ask

    async def refusals(
        self, transactional_id: str, parts: Sequence[ArrivedPart]
    ) -> dict[TopicPartition, SuiroError]:
        """The parts that may not be appended, and why; without a transaction this is free."""
        refused: dict[TopicPartition, SuiroError] = {}
        for identity, partitions in openings(parts).items():
            try:
                if not transactional_id:
                    raise InvalidRequest("a transactional batch without a transactional id")
                await self._ask(transactional_id, identity, partitions)
            except SuiroError as error:
                refused.update(dict.fromkeys(partitions, error))
        return refused


def openings(parts: Sequence[ArrivedPart]) -> dict[ProducerIdentity, list[TopicPartition]]:
    """Which producers would open a transaction, and where."""
    found: dict[ProducerIdentity, list[TopicPartition]] = {}
    for part in parts:
        for _, header in walk(part.data):
            if opens_transaction(part.producers.get(header.producer_id), header):
                identity = ProducerIdentity(
                    ProducerId(header.producer_id), ProducerEpoch(header.producer_epoch)
                )
                partitions = found.setdefault(identity, [])
                if part.partition not in partitions:
                    partitions.append(part.partition)
    return found


def opens_transaction(state: ProducerState | None, header: BatchHeader) -> bool:
    """Whether the partition has nothing open for the batch to join, and would not refuse it."""
    if not header.is_transactional:
        return False
    if state is None:
        return True
    return state.open_from == NO_OFFSET and header.producer_epoch >= state.producer_epoch
