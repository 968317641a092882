"""The TxnCoordinator service: the wire's messages to the machine's questions, and back.

What it leaves to others: which shard an id is in and whether it is ours (`Hosts`), markers,
deadlines, and blocks of producer ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from suiro._proto import txncoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.model.errors import ConcurrentTransaction, InvalidRequest
from suiro.model.ids import (
    NO_PRODUCER_ID,
    ProducerEpoch,
    ProducerId,
    ProducerIdentity,
    TopicPartition,
    shared_id,
)
from suiro.transport.api import Route
from suiro.transport.methods import TxnCoordinatorMethods as Methods

from cluster.txncoord.failpoint import UNANSWERED
from cluster.txncoord.moment import at_time
from cluster.txncoord.requests import Completing, EndShared, Init, Joined, Open, Places
from cluster.txncoord.txn import NOBODY, Txn, TxnState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from suiro._proto.common_pb2 import Hello, NodeAddress
    from suiro.transport.api import Peer

    from cluster.host.clock import Clock
    from cluster.host.machine import Decision
    from cluster.host.machine_host import MachineHost
    from cluster.txncoord.failpoint import Failpoint
    from cluster.txncoord.machine import TxnMachine

    Host = MachineHost[TxnMachine]


class Hosts(NamedTuple):
    """The machines that are served here."""

    of: Callable[[str], Host]
    """Of a transactional id; raises NotCoordinator if its shard is not ours."""
    owned: Callable[[], Sequence[Host]]
    completed: Callable[[str], Awaitable[None]]
    """Returns when no markers of the id are under way any more, or after a moment."""


class TxnService:
    """What producers, brokers, group coordinators and administrators ask."""

    def __init__(
        self,
        hosts: Hosts,
        new_producer_id: Callable[[], Awaitable[ProducerId]],
        clock: Clock,
        address: Callable[[], NodeAddress],
        failpoint: Failpoint,
    ) -> None:
        self._hosts = hosts
        self._new_producer_id = new_producer_id
        self._clock = clock
        self._address = address
        self._failpoint = failpoint

    def routes(self) -> list[Route]:
        return [
            Route(Methods.INIT_PRODUCER, self.handle_init),
            Route(Methods.ADD_PARTITIONS, self.handle_add_partitions),
            Route(Methods.ADD_OFFSETS, self.handle_add_offsets),
            Route(Methods.VERIFY_PARTITIONS, self.handle_verify),
            Route(Methods.END_TXN, self.handle_end),
            Route(Methods.OPEN_SHARED, self.handle_open_shared),
            Route(Methods.PREPARE_WRITER, self.handle_prepare_writer),
            Route(Methods.END_SHARED, self.handle_end_shared),
            Route(Methods.LIST_TRANSACTIONS, self.handle_list),
            Route(Methods.DESCRIBE_TRANSACTION, self.handle_describe),
            Route(Methods.ABORT_TRANSACTION, self.handle_abort),
        ]

    # -- one producer -----------------------------------------------------------------------------

    async def handle_init(
        self, request: pb.InitProducerRequest, peer: Peer
    ) -> pb.InitProducerReply:
        if not request.transactional_id:
            return pb.InitProducerReply(producer_id=await self._new_producer_id())
        go_on = NOBODY if request.producer_id == NO_PRODUCER_ID else _identity(request)
        client = _client(request.hello, peer)
        init = Init(request.transactional_id, request.transaction_timeout_ms, client, go_on)
        given = await self._decide(
            request.transactional_id, lambda machine, now_ms: machine.decide_init(init, now_ms)
        )
        return pb.InitProducerReply(
            producer_id=given.producer_id, producer_epoch=given.producer_epoch
        )

    async def handle_add_partitions(
        self, request: pb.AddPartitionsRequest, _peer: Peer
    ) -> pb.AddPartitionsReply:
        await self._add(request, Places(_partitions(request.partitions)))
        return pb.AddPartitionsReply()

    async def handle_add_offsets(
        self, request: pb.AddOffsetsRequest, _peer: Peer
    ) -> pb.AddOffsetsReply:
        await self._add(request, Places((), (request.group,)))
        return pb.AddOffsetsReply()

    async def handle_verify(
        self, request: pb.VerifyPartitionsRequest, _peer: Peer
    ) -> pb.VerifyPartitionsReply:
        name, identity = request.transactional_id, _identity(request)
        places = Places(_partitions(request.partitions), tuple(request.groups))
        await self._decide(name, lambda machine, _: machine.decide_verify(name, identity, places))
        return pb.VerifyPartitionsReply()

    async def handle_end(self, request: pb.EndTxnRequest, _peer: Peer) -> pb.EndTxnReply:
        name, identity, commit = request.transactional_id, _identity(request), request.commit
        given = await self._decide(
            name,
            lambda machine, now_ms: machine.decide_end(
                name, identity, commit=commit, now_ms=now_ms
            ),
        )
        return pb.EndTxnReply(producer_id=given.producer_id, producer_epoch=given.producer_epoch)

    async def _add(
        self, request: pb.AddPartitionsRequest | pb.AddOffsetsRequest, places: Places
    ) -> None:
        name, identity = request.transactional_id, _identity(request)
        await self._decide(
            name, lambda machine, now_ms: machine.decide_add(name, identity, places, now_ms)
        )

    # -- many writers -----------------------------------------------------------------------------

    async def handle_open_shared(
        self, request: pb.OpenSharedRequest, peer: Peer
    ) -> pb.OpenSharedReply:
        wanted = Open(
            request.name,
            request.sequence,
            request.attempt,
            request.writer,
            request.timeout_ms,
            client=_client(request.hello, peer),
        )
        opened = await self._decide(
            shared_id(request.name),
            lambda machine, now_ms: machine.decide_open_shared(wanted, now_ms),
        )
        if not isinstance(opened, Joined):
            return pb.OpenSharedReply(already_committed=True)
        return pb.OpenSharedReply(
            transactional_id=opened.transactional_id,
            producer_id=opened.identity.producer_id,
            producer_epoch=opened.identity.producer_epoch,
        )

    async def handle_prepare_writer(
        self, request: pb.PrepareWriterRequest, _peer: Peer
    ) -> pb.PrepareWriterReply:
        name, identity = request.transactional_id, _identity(request)
        await self._decide(
            name, lambda machine, now_ms: machine.decide_prepare_writer(name, identity, now_ms)
        )
        return pb.PrepareWriterReply()

    async def handle_end_shared(
        self, request: pb.EndSharedRequest, _peer: Peer
    ) -> pb.EndSharedReply:
        end = EndShared(
            request.name,
            request.sequence,
            request.attempt,
            request.commit,
            tuple(request.producer_ids),
        )
        outcome = await self._decide(
            shared_id(request.name), lambda machine, now_ms: machine.decide_end_shared(end, now_ms)
        )
        return pb.EndSharedReply(already_committed=outcome.already_committed)

    # -- operators --------------------------------------------------------------------------------

    async def handle_list(
        self, request: pb.ListTransactionsRequest, _peer: Peer
    ) -> pb.ListTransactionsReply:
        """Those of the shards that are owned here; whoever wants all asks every coordinator."""
        try:
            states = [TxnState(state) for state in request.states]
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
        before_ms = self._clock.now_ms() - request.older_than_ms if request.older_than_ms else None
        found: list[Txn] = []
        for host in self._hosts.owned():
            found += await host.read(lambda machine: machine.transactions(states, before_ms))
        return pb.ListTransactionsReply(transactions=[_summary(txn) for txn in found])

    async def handle_describe(
        self, request: pb.DescribeTransactionRequest, _peer: Peer
    ) -> pb.DescribeTransactionReply:
        name = request.transactional_id
        txn = await self._hosts.of(name).read(lambda machine: machine.table.known(name))
        return _described(txn, self._address())

    async def handle_abort(
        self, request: pb.AbortTransactionRequest, peer: Peer
    ) -> pb.AbortTransactionReply:
        name, who = request.transactional_id, f"an operator at {peer.host}"
        await self._decide(name, lambda machine, now_ms: machine.decide_abort(name, who, now_ms))
        return pb.AbortTransactionReply()

    async def _decide(self, name: str, choose: Callable[[TxnMachine, int], Decision[Any]]) -> Any:
        """Who comes while the last transaction of the id is being completed waits here for it, and
        need not ask again and again.
        """
        try:
            return await self._decide_now(name, choose)
        except ConcurrentTransaction:
            await self._hosts.completed(name)
            return await self._decide_now(name, choose)

    async def _decide_now(
        self, name: str, choose: Callable[[TxnMachine, int], Decision[Any]]
    ) -> Any:
        now_ms, host = self._clock.now_ms(), self._hosts.of(name)
        reply = await host.decide(lambda machine: choose(machine, now_ms))
        if self._failpoint.is_set:
            txn = await host.read(lambda machine: machine.get(name))
            self._failpoint.reached(UNANSWERED, "" if txn is None else txn.state)
        if isinstance(reply, Completing):
            raise ConcurrentTransaction(f"the last transaction of {name!r} is being completed")
        return reply


# -- wire -----------------------------------------------------------------------------------------


def _client(hello: Hello, peer: Peer) -> str:
    """Who asks, for people."""
    return f"{hello.client_id or 'a client'} at {peer.host}"


def _identity(request: Any) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))


def _partitions(partitions: Iterable[WirePartition]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(p.topic, p.partition) for p in partitions)


def _to_wire(partitions: Iterable[TopicPartition]) -> list[WirePartition]:
    return [WirePartition(topic=p.topic, partition=p.partition) for p in partitions]


def _summary(txn: Txn) -> pb.TransactionSummary:
    return pb.TransactionSummary(
        transactional_id=txn.transactional_id,
        state=txn.state.value,
        producer_id=txn.identity.producer_id,
        producer_epoch=txn.identity.producer_epoch,
        started_at_ms=txn.opened_ms,
        client=txn.client,
    )


def _described(txn: Txn, address: NodeAddress) -> pb.DescribeTransactionReply:
    writers = txn.writers if txn.is_shared else ()
    last = txn.ended
    outcome = ""
    if last is not None:
        word = "committed" if last.commit else "aborted"
        outcome = f"{word} {at_time(last.at_ms)} ({last.by.name.lower()}: {last.who})"
    return pb.DescribeTransactionReply(
        summary=_summary(txn),
        timeout_ms=txn.timeout_ms,
        partitions=_to_wire(sorted({p for w in txn.writers for p in w.partitions})),
        groups=sorted({group for writer in txn.writers for group in writer.groups}),
        writers=[
            pb.SharedWriter(
                writer=writer.name,
                producer_id=writer.identity.producer_id,
                prepared=writer.prepared,
                partitions=_to_wire(writer.partitions),
            )
            for writer in writers
        ],
        last_committed_sequence=txn.committed_sequence,
        coordinator=address,
        last_outcome=outcome,
        fenced_by=txn.fenced_by,
        fenced_at_ms=txn.fenced_ms,
    )
