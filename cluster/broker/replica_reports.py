"""Tells the controllers which replicas cannot be used, and which can again, until they have heard.

Only the last word on a replica counts. Whoever starts says it before it says that it is ready
(`flush`): no election may count on a log that is not there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from suiro._proto import controller_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.retry import Backoff
from suiro.transport.methods import ControllerMethods

if TYPE_CHECKING:
    from random import Random

    from suiro.model.ids import BrokerEpoch, NodeId
    from suiro.model.records import PartitionId

    from cluster.host.quorum_client import QuorumClient

log = logging.getLogger("suiro.broker")

REPORT_TIMEOUT_S: Final = 5.0
AT_ONCE_MAX: Final = 1_000


class ReplicaReports:
    """`run` is a task of the broker."""

    def __init__(self, quorum: QuorumClient, node: NodeId, rng: Random) -> None:
        self._quorum = quorum
        self._node = node
        self._rng = rng
        self._waiting: dict[PartitionId, bool] = {}
        self._arrived = asyncio.Event()

    def offline(self, replica: PartitionId) -> None:
        self._say(replica, is_offline=True)

    def online(self, replica: PartitionId) -> None:
        self._say(replica, is_offline=False)

    def _say(self, replica: PartitionId, *, is_offline: bool) -> None:
        self._waiting.pop(replica, None)  # the order of the last words
        self._waiting[replica] = is_offline
        self._arrived.set()

    async def run(self, broker_epoch: BrokerEpoch) -> None:
        while True:
            await self._arrived.wait()
            await self.flush(broker_epoch)

    async def flush(self, broker_epoch: BrokerEpoch) -> None:
        """Return when everything is heard that was to be said."""
        backoff = Backoff(self._rng)
        self._arrived.clear()
        while self._waiting:
            some = dict(list(self._waiting.items())[:AT_ONCE_MAX])
            try:
                await self._quorum.call(
                    ControllerMethods.REPORT_REPLICAS,
                    self._request(broker_epoch, some),
                    timeout_s=REPORT_TIMEOUT_S,
                )
            except SuiroError as error:
                log.warning("the controllers do not know yet what is offline: %s", error)
                await asyncio.sleep(backoff.next_s())
                continue
            for replica, is_offline in some.items():
                if self._waiting.get(replica) is is_offline:
                    del self._waiting[replica]

    def _request(
        self, broker_epoch: BrokerEpoch, some: dict[PartitionId, bool]
    ) -> pb.ReportReplicasRequest:
        request = pb.ReportReplicasRequest(node_id=self._node, broker_epoch=broker_epoch)
        for (topic_id, partition), is_offline in some.items():
            where = request.offline if is_offline else request.online
            where.add(topic_id=topic_id, partition=partition)
        return request
