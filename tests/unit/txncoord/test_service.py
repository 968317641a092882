"""The service over a served machine: what travels, and what a refusal becomes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from suiro._proto import txncoord_pb2 as pb
from suiro._proto.common_pb2 import Hello, NodeAddress, TopicPartition
from suiro.model.errors import ConcurrentTransaction, InvalidRequest, ProducerFenced, ShuttingDown
from suiro.model.ids import ProducerId
from suiro.transport.api import Peer

from cluster.host.clock import SystemClock
from cluster.host.machine_host import MachineHost
from cluster.txncoord.codec import encode
from cluster.txncoord.failpoint import Failpoint
from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.requests import Marked, Places, SendMarkers
from cluster.txncoord.service import Hosts, TxnService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

PEER = Peer(address="ipv4:10.0.0.7:50123")
PARTITION = TopicPartition(topic="t", partition=0)


class MemoryLog:
    """Commits at once."""

    def __init__(self) -> None:
        self.end = 0

    def append(self, records: Sequence[Any]) -> int:
        self.end += len(records)
        return self.end

    async def committed(self, _position: int) -> int:
        return self.end


class Stage:
    """One shard, and the effects that its decisions had."""

    def __init__(self) -> None:
        self.effects: list[SendMarkers] = []
        self.machine = TxnMachine()
        self.machine.on_producer_ids(ProducerId(1), ProducerId(100))
        self.host: MachineHost[TxnMachine] = MachineHost(MemoryLog(), encode, self.effects.append)

        self.answers = False
        """Whether all places answer while somebody waits for the last transaction."""

        async def new_producer_id() -> ProducerId:
            return ProducerId(77)

        async def completed(_: str) -> None:
            if self.answers:
                await self.marked()

        self.service = TxnService(
            Hosts(lambda _: self.host, lambda: [self.host], completed),
            new_producer_id,
            SystemClock(),
            lambda: NodeAddress(node_id=1, host="here", port=9000),
            Failpoint(""),
        )

    async def init(self, name: str = "id", client: str = "copier") -> pb.InitProducerReply:
        request = pb.InitProducerRequest(
            hello=Hello(client_id=client),
            transactional_id=name,
            transaction_timeout_ms=1000,
            producer_id=-1,
        )
        return await self.service.handle_init(request, PEER)

    async def marked(self) -> None:
        """All places answer."""
        (work,) = self.effects
        answers = [
            Marked(w.marker, Places(w.places.partitions, w.places.groups)) for w in work.writers
        ]
        await self.host.decide(lambda m: m.decide_marked(work.transactional_id, answers, 0))
        self.effects.clear()


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    stage = Stage()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.host.serve(stage.machine, 0))
        await asyncio.sleep(0)
        yield stage
        stage.host.stop(ShuttingDown("the test is over"))


async def test_who_comes_while_the_last_one_is_completed_waits_for_it() -> None:
    async with staged() as stage:
        who = await stage.init()
        same: dict[str, Any] = {"transactional_id": "id", "producer_id": who.producer_id}
        add = pb.AddPartitionsRequest(**same, partitions=[PARTITION])
        await stage.service.handle_add_partitions(add, PEER)
        await stage.service.handle_end(pb.EndTxnRequest(**same, commit=True), PEER)
        following = pb.AddPartitionsRequest(**same, producer_epoch=1, partitions=[PARTITION])
        with pytest.raises(ConcurrentTransaction):
            await stage.service.handle_add_partitions(following, PEER)
        stage.answers = True
        await stage.service.handle_add_partitions(following, PEER)


async def test_a_transaction_from_its_beginning_to_its_end() -> None:
    async with staged() as stage:
        service, who = stage.service, await stage.init()
        same: dict[str, Any] = {"transactional_id": "id", "producer_id": who.producer_id}
        add = pb.AddPartitionsRequest(**same, partitions=[PARTITION])
        await service.handle_add_partitions(add, PEER)
        await service.handle_add_offsets(pb.AddOffsetsRequest(**same, group="g"), PEER)
        verify = pb.VerifyPartitionsRequest(**same, partitions=[PARTITION], groups=["g"])
        await service.handle_verify(verify, PEER)
        end = await service.handle_end(pb.EndTxnRequest(**same, commit=True), PEER)
        assert (end.producer_id, end.producer_epoch) == (who.producer_id, 1)
        with pytest.raises(ConcurrentTransaction):
            await stage.init()
        await stage.marked()
        await stage.init(client="second")
        again = pb.AddPartitionsRequest(**same, producer_epoch=1, partitions=[PARTITION])
        with pytest.raises(ProducerFenced) as fenced:
            await service.handle_add_partitions(again, PEER)
        assert fenced.value.hints["fenced_by"] == "second at 10.0.0.7"


async def test_a_producer_without_a_transactional_id_gets_an_id() -> None:
    async with staged() as stage:
        assert (await stage.init("")).producer_id == 77
        assert stage.machine.transactions() == []


async def test_operators_list_describe_and_abort() -> None:
    async with staged() as stage:
        service, who = stage.service, await stage.init()
        add = pb.AddPartitionsRequest(
            transactional_id="id", producer_id=who.producer_id, partitions=[PARTITION]
        )
        await service.handle_add_partitions(add, PEER)
        listed = await service.handle_list(pb.ListTransactionsRequest(states=["ongoing"]), PEER)
        assert [t.transactional_id for t in listed.transactions] == ["id"]
        with pytest.raises(InvalidRequest):
            await service.handle_list(pb.ListTransactionsRequest(states=["half"]), PEER)
        await service.handle_abort(pb.AbortTransactionRequest(transactional_id="id"), PEER)
        asked = pb.DescribeTransactionRequest(transactional_id="id")
        described = await service.handle_describe(asked, PEER)
        assert described.summary.state == "prepare_abort"
        assert list(described.partitions) == [PARTITION]
        assert "operator" in described.last_outcome
        assert [w.commit for work in stage.effects for w in work.writers] == [False]


async def test_a_shared_transaction() -> None:
    async with staged() as stage:
        service = stage.service
        open_one = pb.OpenSharedRequest(
            name="q", sequence=3, attempt="a", writer="w", timeout_ms=1000,
            hello=Hello(client_id="spark-clicks"),
        )  # fmt: skip
        joined = await service.handle_open_shared(open_one, PEER)
        name, producer_id = joined.transactional_id, joined.producer_id
        same: dict[str, Any] = {"transactional_id": name, "producer_id": producer_id}
        add = pb.AddPartitionsRequest(**same, partitions=[PARTITION])
        await service.handle_add_partitions(add, PEER)
        await service.handle_prepare_writer(pb.PrepareWriterRequest(**same), PEER)
        asked = pb.DescribeTransactionRequest(transactional_id=joined.transactional_id)
        described = await service.handle_describe(asked, PEER)
        assert described.summary.client == f"spark-clicks at {PEER.host}"
        (writer,) = described.writers
        assert writer.prepared
        end = pb.EndSharedRequest(
            name="q", sequence=3, attempt="a", commit=True, producer_ids=[joined.producer_id]
        )
        assert not (await service.handle_end_shared(end, PEER)).already_committed
        assert (await service.handle_end_shared(end, PEER)).already_committed
        assert (await service.handle_open_shared(open_one, PEER)).already_committed
