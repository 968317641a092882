"""How a node asks the coordinator of a transactional id, wherever its shard is owned now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import txncoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.attempts import until_done
from suiro.model.errors import CoordinatorLoading
from suiro.model.records import ShardKind
from suiro.model.topics import TXN_TOPIC, shard_of
from suiro.retry import Backoff
from suiro.transport.methods import TxnCoordinatorMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.ids import Address, ProducerIdentity, TopicPartition
    from suiro.model.image import ClusterImage

    from cluster.host.env import Env

ASK_TIMEOUT_S = 5.0
CALL_TIMEOUT_S = 2.0


class TxnOwner:
    """VerifyPartitions, tried again while the coordinator is being replaced."""

    def __init__(self, env: Env, image: Callable[[], ClusterImage | None]) -> None:
        self._env = env
        self._image = image

    async def __call__(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        groups: Sequence[str] = (),
        /,
    ) -> None:
        """Return if all of these are part of that transaction; raises why not."""
        request = pb.VerifyPartitionsRequest(
            transactional_id=transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            partitions=[WirePartition(topic=p.topic, partition=p.partition) for p in partitions],
            groups=groups,
        )

        async def verify() -> None:
            await self._env.transport.call(
                self._address(transactional_id),
                TxnCoordinatorMethods.VERIFY_PARTITIONS,
                request,
                timeout_s=CALL_TIMEOUT_S,
            )

        await until_done(
            verify,
            timeout_s=ASK_TIMEOUT_S,
            backoff=Backoff(self._env.rng),
            late=f"the coordinator of {transactional_id!r} does not answer",
        )

    def _address(self, transactional_id: str) -> Address:
        image = self._image()
        topic = None if image is None else image.topic(TXN_TOPIC)
        if image is None or topic is None:
            raise CoordinatorLoading(f"{TXN_TOPIC} has not been created yet")
        state = image.shard(ShardKind.TXN, shard_of(transactional_id, len(topic.partitions)))
        node = None if state is None else image.nodes.get(state.owner)
        if node is None:
            raise CoordinatorLoading(f"no coordinator owns {transactional_id!r} now")
        return node.registration.address
