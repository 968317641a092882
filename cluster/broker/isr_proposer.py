"""Carries the leaders' ISR proposals to the controller, many in one call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from suiro._proto import controller_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.transport.methods import ControllerMethods
from suiro.transport.wire_errors import error_from_proto

if TYPE_CHECKING:
    from suiro.model.ids import BrokerEpoch, NodeId

    from cluster.broker.partition import Partition
    from cluster.broker.replication_effects import ProposeIsr
    from cluster.host.quorum_client import QuorumClient

PROPOSE_TIMEOUT_S: Final = 5.0
AT_ONCE_MAX: Final = 1_000


class IsrProposer:
    """`run` is a task of the broker."""

    def __init__(self, quorum: QuorumClient, node: NodeId) -> None:
        self.broker_epoch: BrokerEpoch | None = None
        self._quorum = quorum
        self._node = node
        self._waiting: dict[Partition, ProposeIsr] = {}
        self._arrived = asyncio.Event()

    def propose(self, partition: Partition, proposal: ProposeIsr) -> None:
        self._waiting[partition] = proposal
        self._arrived.set()

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                some = [
                    self._waiting.popitem() for _ in range(min(AT_ONCE_MAX, len(self._waiting)))
                ]
                await self._ask(some)

    async def _ask(self, proposals: list[tuple[Partition, ProposeIsr]]) -> None:
        request = pb.AlterPartitionsRequest(
            node_id=self._node,
            broker_epoch=-1 if self.broker_epoch is None else self.broker_epoch,
            changes=[_change(partition, proposal) for partition, proposal in proposals],
        )
        errors: list[SuiroError | None]
        try:
            reply = await self._quorum.call(
                ControllerMethods.ALTER_PARTITIONS, request, timeout_s=PROPOSE_TIMEOUT_S
            )
            errors = [
                error_from_proto(result.error) if result.error.code else None
                for result in reply.results
            ]
        except SuiroError as error:
            errors = [error] * len(proposals)
        for (partition, proposal), outcome in zip(proposals, errors, strict=True):
            partition.on_outcome(proposal, outcome)


def _change(partition: Partition, proposal: ProposeIsr) -> pb.PartitionChange:
    state = partition.state
    return pb.PartitionChange(
        topic_id=state.topic_id,
        partition=state.partition,
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.partition_epoch,
        isr=[
            pb.IsrMember(node_id=member.node_id, broker_epoch=member.broker_epoch)
            for member in proposal.members
        ],
    )
