"""Messages of an older transaction that come minutes later change nothing: T5, rows 18 to 20.

The world of `txn_bank_sim` doubles and delays at random; here each kind of message comes late on
purpose, in the worst moments: while the next transaction of the same producer is open (KAFKA-17754:
it must not be decided by the end of the last one), and while none is (KAFKA-9144: it must not open
one that nobody ends).
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from suiro._proto import broker_pb2
from suiro._proto import groupcoord_pb2 as group_pb
from suiro._proto import txncoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.aio import Admin, coordinators
from suiro.aio.group_offsets import OffsetAndMetadata
from suiro.model.columns import BatchOptions, encode_lists
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidTransaction, ProducerFenced
from suiro.model.ids import TopicPartition
from suiro.transport.framing import Framed
from suiro.transport.methods import (
    BrokerMethods,
    GroupCoordinatorMethods,
    TxnCoordinatorMethods,
)

from tests.sim.client_scene import client_scene
from tests.sim.loop import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from random import Random

    from suiro.aio import Producer
    from suiro.model.ids import Address, ProducerIdentity

    from tests.sim.client_scene import ClientScene

TOPIC = "orders"
NAME = "writer"
GROUP = "readers"
FIRST = TopicPartition(TOPIC, 0)
MINUTES_S = 180.0


@dataclass
class Late:
    """A producer with one transaction behind it and one open, and messages of the old one."""

    scene: ClientScene
    producer: Producer
    old: ProducerIdentity

    @property
    def leader(self) -> Address:
        connection = self.producer.connection
        leader = connection.topics[TOPIC].partitions[0].leader
        assert leader is not None
        return connection.brokers[leader]

    async def produce(self, sequence: int, value: bytes) -> int:
        """A batch of the old transaction; the error's code."""
        options = BatchOptions(
            producer_id=self.old.producer_id,
            producer_epoch=self.old.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        batch = encode_lists(None, [value], timestamps_ms=0, options=options)
        part = broker_pb2.ProducePart(topic=TOPIC, partition=0, size=len(batch))
        header = broker_pb2.ProduceRequest(
            acks=-1, timeout_ms=1000, transactional_id=NAME, parts=[part]
        )
        transport = self.scene.cluster.network.transport("late")
        reply = await transport.call(
            self.leader, BrokerMethods.PRODUCE, Framed(header, (batch,)), timeout_s=10
        )
        return int(reply.results[0].error.code)

    async def register(self) -> None:
        """Of the old transaction, a partition that it did not have."""
        await coordinators.transactions(self.producer.connection).call(
            NAME,
            TxnCoordinatorMethods.ADD_PARTITIONS,
            pb.AddPartitionsRequest(
                transactional_id=NAME,
                producer_id=self.old.producer_id,
                producer_epoch=self.old.producer_epoch,
                partitions=[WirePartition(topic=TOPIC, partition=1)],
            ),
            timeout_s=10,
        )

    async def commit_offsets(self, offset: int) -> None:
        """Of the group, as part of the old transaction."""
        await coordinators.groups(self.producer.connection).call(
            GROUP,
            GroupCoordinatorMethods.COMMIT_OFFSETS,
            group_pb.CommitOffsetsRequest(
                group=GROUP,
                member_epoch=-1,
                transactional_id=NAME,
                producer_id=self.old.producer_id,
                producer_epoch=self.old.producer_epoch,
                offsets=[
                    group_pb.OffsetCommit(
                        partition=WirePartition(topic=TOPIC, partition=0),
                        offset=offset,
                        leader_epoch=-1,
                    )
                ],
            ),
            timeout_s=10,
        )

    async def settle_offsets(self, *, commit: bool) -> None:
        """As the coordinator of transactions told the group, or the opposite."""
        owner = await self._owner()
        await coordinators.groups(self.producer.connection).call(
            GROUP,
            GroupCoordinatorMethods.SETTLE_OFFSETS,
            group_pb.SettleOffsetsRequest(
                group=GROUP,
                producer_id=self.old.producer_id,
                producer_epoch=self.old.producer_epoch,
                commit=commit,
                txn_owner_epoch=owner.owner_epoch,
                txn_shard=owner.shard,
            ),
            timeout_s=10,
        )

    async def end(self, *, commit: bool) -> None:
        await coordinators.transactions(self.producer.connection).call(
            NAME,
            TxnCoordinatorMethods.END_TXN,
            pb.EndTxnRequest(
                transactional_id=NAME,
                producer_id=self.old.producer_id,
                producer_epoch=self.old.producer_epoch,
                commit=commit,
            ),
            timeout_s=10,
        )

    async def mark(self, *, commit: bool) -> int:
        """The marker that ended the old transaction, or its opposite, under the owner's epoch."""
        owner = await self._owner()
        marker = broker_pb2.TxnMarker(
            producer_id=self.old.producer_id,
            producer_epoch=self.old.producer_epoch + 1,
            commit=commit,
            owner_epoch=owner.owner_epoch,
            shard=owner.shard,
            partitions=[WirePartition(topic=TOPIC, partition=0)],
        )
        reply = await self.scene.cluster.network.transport("late").call(
            self.leader,
            BrokerMethods.WRITE_TXN_MARKERS,
            broker_pb2.WriteTxnMarkersRequest(markers=[marker]),
            timeout_s=10,
        )
        return int(reply.results[0].error.code)

    async def _owner(self) -> pb.FindTxnCoordinatorReply:
        return await self.producer.connection.any_broker(
            TxnCoordinatorMethods.FIND_COORDINATOR,
            pb.FindTxnCoordinatorRequest(transactional_id=NAME),
            timeout_s=10,
        )


@asynccontextmanager
async def late(rng: Random) -> AsyncIterator[Late]:
    """`first` is committed, `second` is open; afterwards it is committed, and both are there."""
    async with client_scene(rng) as scene:
        await scene.create_topic(TOPIC, 1)
        async with scene.producer(NAME, transactional_id=NAME) as producer:
            await producer.init_transactions()
            old = producer.transactions.identity
            async with producer.transaction():
                await producer.send(TOPIC, b"first", partition=0)
            await asyncio.sleep(MINUTES_S)
            async with producer.transaction():
                await producer.send(TOPIC, b"second", partition=0)
                yield Late(scene, producer, old)
                await producer.send(TOPIC, b"third", partition=0)
        (log,) = await scene.read_all(TOPIC, 1)
        assert [record.value for record in log] == [b"first", b"second", b"third"]


async def late_produce(scene: Late) -> None:
    assert await scene.produce(0, b"first"), "neither stored nor answered as stored"
    assert await scene.produce(1, b"more of it")


async def late_end(scene: Late) -> None:
    """Asked again, it answers as before; its opposite is refused; what is open stays open."""
    await scene.end(commit=True)
    with pytest.raises(SuiroError):
        await scene.end(commit=False)


async def late_marker(scene: Late) -> None:
    for commit in (True, False):
        assert await scene.mark(commit=commit), "the marker would end the open transaction"


async def late_everything(scene: Late) -> None:
    await late_produce(scene)
    await late_end(scene)
    await late_marker(scene)


async def late_after_all(scene: Late) -> None:
    """The coordinator and the leader are others by then."""
    for node in scene.scene.victims[-2:]:
        await scene.scene.fail_over(node)
    await scene.scene.fail_over(scene.scene.cluster.brokers[0])
    await scene.producer.connection.refresh([TOPIC], timeout_s=10)
    await late_everything(scene)


@pytest.mark.parametrize("comes", [late_everything, late_after_all])
def test_what_comes_minutes_later_changes_nothing(comes: Callable[[Late], Awaitable[None]]) -> None:
    async def happen(rng: Random) -> None:
        async with late(rng) as scene:
            await comes(scene)

    run(happen, seed=3)


# -- none is open ---------------------------------------------------------------------------------


async def late_after_an_abort(rng: Random) -> None:
    """Row 19: what is refused by then would hold every reader back for good."""
    async with client_scene(rng) as scene:
        await scene.create_topic(TOPIC, 2)
        async with scene.producer(NAME, transactional_id=NAME) as producer:
            await producer.init_transactions()
            comes = Late(scene, producer, producer.transactions.identity)
            await producer.begin_transaction()
            await producer.send(TOPIC, b"aborted", partition=0)
            await producer.abort_transaction()
            await asyncio.sleep(MINUTES_S)
            assert await comes.produce(0, b"aborted"), "a second copy of what was aborted"
            assert await comes.produce(1, b"what followed it")
            with pytest.raises(SuiroError):
                await comes.register()
            with pytest.raises(SuiroError):
                await comes.end(commit=True)
            comes.old = producer.transactions.identity
            assert await comes.produce(0, b"before any registration"), "row 23"
            async with Admin(scene.bootstrap, env=scene.env("operator")) as admin:
                assert await admin.transactions.open_in_partitions() == []
                seen = await admin.transactions.producers(FIRST)
                assert seen.last_stable_offset == seen.high_watermark == 2
            async with producer.transaction():
                await producer.send(TOPIC, b"kept", partition=0)
        (log, _) = await scene.read_all(TOPIC, 2)
        assert [record.value for record in log] == [b"kept"]


def test_what_comes_minutes_after_an_abort_opens_nothing() -> None:
    run(late_after_an_abort, seed=4)


async def late_refusals(rng: Random) -> None:
    """A batch that is under way when its transaction is aborted may be refused while the next one
    is open. Aborted at many moments, so that some hit it.
    """
    async with client_scene(rng) as scene:
        await scene.create_topic(TOPIC, 1)
        async with scene.producer(NAME, transactional_id=NAME) as producer:
            for moment in range(60):
                await producer.begin_transaction()
                producer.send(TOPIC, b"aborted", partition=0)
                await asyncio.sleep(moment / 2000)
                await producer.abort_transaction()
                async with producer.transaction():
                    producer.send(TOPIC, b"kept %d" % moment, partition=0)
        (log,) = await scene.read_all(TOPIC, 1)
        assert [record.value for record in log] == [b"kept %d" % moment for moment in range(60)]


def test_a_late_refusal_does_not_end_the_next_transaction() -> None:
    run(late_refusals, seed=6)


async def late_offsets(rng: Random) -> None:
    async with (
        client_scene(rng) as scene,
        scene.consumer("reader", group_id=GROUP, enable_auto_commit=False) as consumer,
    ):
        await scene.create_topic(TOPIC, 1)
        await consumer.assign([FIRST])
        async with scene.producer(NAME, transactional_id=NAME) as producer:
            await producer.init_transactions()
            comes = Late(scene, producer, producer.transactions.identity)
            async with producer.transaction():
                await producer.send_offsets(consumer, {FIRST: OffsetAndMetadata(5)})
            await asyncio.sleep(MINUTES_S)
            async with producer.transaction():
                await producer.send_offsets(consumer, {FIRST: OffsetAndMetadata(7)})
                with pytest.raises(InvalidTransaction, match="that transaction ended at"):
                    await comes.commit_offsets(9)
                for commit in (True, False):
                    with pytest.raises(ProducerFenced):
                        await comes.settle_offsets(commit=commit)
            await asyncio.sleep(1)
            assert (await consumer.committed([FIRST]))[FIRST].offset == 7
            with pytest.raises(SuiroError):
                await comes.commit_offsets(9)
            with pytest.raises(ProducerFenced):
                await comes.settle_offsets(commit=False)
            assert (await consumer.committed([FIRST]))[FIRST].offset == 7


def test_offsets_that_come_minutes_later_change_nothing() -> None:
    run(late_offsets, seed=5)
