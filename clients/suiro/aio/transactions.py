"""A producer's transactions: carries out at the coordinator what `Transaction` wants.

The dispatcher asks before a batch leaves for a partition (`admits`), and tells when one was
refused. When a transaction can only be aborted any more, whatever of it still waits is failed at
once, so that nobody waits for it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from suiro._proto import groupcoord_pb2 as group_pb
from suiro._proto import txncoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.aio import coordinators
from suiro.aio.group_offsets import GroupOffsets
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidTransaction, TimedOut, TransactionAborted
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity
from suiro.transaction import EndTxn, InitProducer, Register, State, Transaction, Verdict
from suiro.transport.methods import GroupCoordinatorMethods, TxnCoordinatorMethods
from suiro.transport.wire_errors import raise_if_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from suiro.aio.group_offsets import GroupMembership, OffsetAndMetadata
    from suiro.aio.tasks import TaskScope
    from suiro.connection import Connection
    from suiro.model.ids import TopicPartition
    from suiro.settings import ProducerSettings
    from suiro.transaction import Step


class Records(Protocol):
    """The producer's records, as a transaction sees them."""

    def identify(self, identity: ProducerIdentity) -> None:
        """Who writes from now on."""

    def abandon(self, error: SuiroError) -> None:
        """Fail whatever has not been answered yet."""

    def wake_lines(self) -> None:
        """More may leave."""


class Part(Protocol):
    """A producer's part in a transaction: of its own (`Transactions`) or shared with others."""

    @property
    def is_open(self) -> bool:
        """Whether something is left to be aborted."""

    def start(self) -> None:
        """Work in the background until the producer's tasks are ended."""

    def check_open(self) -> None:
        """Raise unless a record may be sent now."""

    def admits(self, partition: TopicPartition) -> bool:
        """Whether a batch may leave for this partition; if not yet, it is registered."""

    def on_refused(self, error: SuiroError) -> None:
        """A batch will not be stored, or nobody knows whether it is."""

    async def abort(self) -> None:
        """Fail what was not answered yet; nobody will see what was."""


class Transactions:
    """Of one producer with a transactional id."""

    def __init__(
        self,
        connection: Connection,
        settings: ProducerSettings,
        scope: TaskScope,
        records: Records,
    ) -> None:
        self.transactional_id = settings.transactional_id
        self._core = Transaction(settings.transactional_id)
        self._connection = connection
        self._settings = settings
        self._scope = scope
        self._records = records
        self._coordinators = coordinators.transactions(connection)
        self._groups = coordinators.groups(connection)
        self._stepping = asyncio.Lock()
        self._wanted = asyncio.Event()

    def start(self) -> None:
        self._scope.start(self._register_forever(), "register partitions")

    @property
    def is_open(self) -> bool:
        return self._core.state in {State.OPEN, State.MUST_ABORT}

    @property
    def identity(self) -> ProducerIdentity:
        """Of the transaction that is open, or of the next one."""
        return self._core.identity

    @property
    def is_usable(self) -> bool:
        """Whether another transaction can be begun, now or after this one has ended."""
        return self._core.state is not State.FENCED

    def check_open(self) -> None:
        """Raise unless a record may be sent now."""
        core = self._core
        if core.state is State.OPEN:
            return
        if core.state is State.FENCED and core.error is not None:
            raise core.error.with_traceback(None)
        if core.state is State.MUST_ABORT:
            raise TransactionAborted(f"{self.transactional_id}: {core.error}")
        raise InvalidTransaction(
            f"{self.transactional_id}: no transaction is open; begin one, or use "
            "`with producer.transaction():`"
        )

    # -- for the dispatcher -----------------------------------------------------------------------

    def admits(self, partition: TopicPartition) -> bool:
        """Whether a batch may leave for this partition; if not yet, it is registered."""
        if self._core.may_write(partition):
            return True
        if self._core.state is State.OPEN:
            self._core.write_to([partition])
            self._wanted.set()
        return False

    def on_refused(self, error: SuiroError) -> None:
        """A batch will not be stored, or nobody knows whether it is."""
        if self._core.on_refused(error) is not Verdict.RETRY:
            self._records.abandon(TransactionAborted(f"{self.transactional_id}: {error}"))

    # -- for the producer -------------------------------------------------------------------------

    async def init(self) -> None:
        """Take the id: whoever had it is fenced, what it left open is aborted."""
        if self._core.state is State.NEW:
            await self._advance()
            self._records.identify(self._core.identity)

    def begin(self) -> None:
        self._core.begin()

    async def commit(self) -> None:
        """Everything has been stored or refused by now."""
        self._core.commit()
        await self._end("committed")

    async def abort(self) -> None:
        self._records.abandon(TransactionAborted(f"{self.transactional_id}: it is being aborted"))
        self._core.abort()
        await self._end("aborted")

    async def settle(self) -> None:
        """Ask again for an end whose answer did not come, and abort what is open."""
        if self._core.state is State.COMMITTING:
            with suppress(TransactionAborted):
                await self._end("committed")
        if self._core.state in {State.OPEN, State.MUST_ABORT, State.ABORTING}:
            await self.abort()

    async def _end(self, how: str) -> None:
        await self._advance()
        if self._core.state is not State.READY:
            raise TransactionAborted(
                f"{self.transactional_id}: could not be {how}: {self._core.error}"
            ) from self._core.error
        self._records.identify(self._core.identity)

    async def send_offsets(
        self, member: GroupMembership, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """The group is there if, and only if, the transaction commits."""
        self.check_open()
        self._core.write_to([member.group])
        await self._advance()
        self.check_open()
        store = GroupOffsets(self._connection, self._groups, member.group)
        identity = self._core.identity
        request = group_pb.CommitOffsetsRequest(
            group=member.group,
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            transactional_id=self.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            offsets=[store.wire_commit(where, offsets[where]) for where in sorted(offsets)],
        )
        try:
            reply = await self._groups.call(
                member.group,
                GroupCoordinatorMethods.COMMIT_OFFSETS,
                request,
                timeout_s=self._timeout_s,
            )
            for result in reply.results:
                raise_if_error(result.error)
        except SuiroError as error:
            self._core.on_refused(TransactionAborted(str(error)) if error.retriable else error)
            raise

    # -- the coordinator --------------------------------------------------------------------------

    async def _register_forever(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._advance()
            except SuiroError as error:
                self._records.abandon(error)
            self._records.wake_lines()

    async def _advance(self) -> None:
        """Do what the core wants until it wants nothing more; raises what is fatal."""
        async with self._stepping:
            while (step := self._core.next_step()) is not None:
                try:
                    await self._carry_out(step)
                except SuiroError as error:
                    late = TimedOut(f"{self.transactional_id}: {error}")
                    verdict = self._core.on_error(error)
                    if verdict is Verdict.RETRY:  # it has been tried for long enough
                        raise late from error
                    if verdict is Verdict.FATAL:
                        self._records.abandon(error)
                        raise
                    if self._core.state is State.MUST_ABORT:
                        self._records.abandon(TransactionAborted(str(error)))

    async def _carry_out(self, step: Step) -> None:
        match step:
            case InitProducer(go_on):
                given = await self._coordinators.call(
                    self.transactional_id,
                    TxnCoordinatorMethods.INIT_PRODUCER,
                    pb.InitProducerRequest(
                        hello=self._connection.hello(),
                        transactional_id=self.transactional_id,
                        transaction_timeout_ms=int(self._settings.transaction_timeout_ms),
                        producer_id=go_on.producer_id,
                        producer_epoch=go_on.producer_epoch,
                    ),
                    timeout_s=self._timeout_s,
                )
                self._core.on_initialised(_identity(given))
            case EndTxn(identity, commit):
                ended = await self._coordinators.call(
                    self.transactional_id,
                    TxnCoordinatorMethods.END_TXN,
                    pb.EndTxnRequest(
                        transactional_id=self.transactional_id,
                        producer_id=identity.producer_id,
                        producer_epoch=identity.producer_epoch,
                        commit=commit,
                    ),
                    timeout_s=self._timeout_s,
                )
                self._core.on_ended(_identity(ended))
            case Register():
                await self._register(step)

    async def _register(self, step: Register) -> None:
        name, identity = self.transactional_id, step.identity
        if step.partitions:
            await self._coordinators.call(
                self.transactional_id,
                TxnCoordinatorMethods.ADD_PARTITIONS,
                pb.AddPartitionsRequest(
                    transactional_id=name,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.producer_epoch,
                    partitions=[
                        WirePartition(topic=p.topic, partition=p.partition) for p in step.partitions
                    ],
                ),
                timeout_s=self._timeout_s,
            )
        for group in step.groups:
            await self._coordinators.call(
                self.transactional_id,
                TxnCoordinatorMethods.ADD_OFFSETS,
                pb.AddOffsetsRequest(
                    transactional_id=name,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.producer_epoch,
                    group=group,
                ),
                timeout_s=self._timeout_s,
            )
        self._core.on_registered(step)

    @property
    def _timeout_s(self) -> float:
        return self._settings.max_block_ms / 1000


def _identity(reply: pb.InitProducerReply | pb.EndTxnReply) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(reply.producer_id), ProducerEpoch(reply.producer_epoch))
