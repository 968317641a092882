"""Shared transactions on asyncio: many writers, one decision (for Spark, and whatever is like it).

A *name* (a query) has one transaction at a time; a *sequence* (a batch) of it is committed once;
all writers of one try at it share an *attempt*, a random word. Every writer is a producer with an
identity of its own. Whoever leads commits the writers that count; all others are aborted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from suiro._proto import txncoord_pb2 as pb
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.aio import coordinators
from suiro.aio.producer import Producer
from suiro.client_env import real_env
from suiro.connection import Connection
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    AlreadyCommitted,
    InvalidTransaction,
    TimedOut,
    TransactionAborted,
)
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity, shared_id
from suiro.retry import Backoff
from suiro.settings import ProducerSettings, build_settings, parse_bootstrap
from suiro.transport.methods import TxnCoordinatorMethods

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.aio.coordinators import Coordinators
    from suiro.client_env import ClientEnv
    from suiro.model.ids import TopicPartition

SHARED_TIMEOUT_MS: Final = 3600_000
"""Counted from the last writer that joined, registered a partition or was prepared. A new attempt
ends an older one at once, so it only matters when nobody comes back.
"""
CALL_S: Final = 60.0
COMPLETING: Final = ("prepare_commit", "prepare_abort")


@dataclass(frozen=True, slots=True)
class SharedBatch:
    """What the writers of one try have in common; can be pickled.

    >>> suiro.SharedBatch("query-1", sequence=7, attempt="first try").sequence
    7
    """

    name: str
    sequence: int
    attempt: str
    """A word that no other try has; empty only to abort whatever try is open."""


class Outcome(StrEnum):
    """What became of a shared transaction.

    >>> with suiro.SharedTransactions() as shared:
    ...     shared.abort(suiro.SharedBatch("query-1", 7, "first try")) is suiro.Outcome.ABORTED
    True
    """

    COMMITTED = "committed"
    ABORTED = "aborted"
    ALREADY_COMMITTED = "already committed"
    """By an earlier try, or by this one whose answer was lost."""


class SharedWriter(Producer):
    """A producer whose records are part of a shared transaction.

    >>> batch = aio.SharedBatch("query-1", sequence=7, attempt="first try")
    >>> async with aio.SharedWriter(batch, "task-3") as writer:
    ...     handle = writer.send("orders", b"two apples")
    ...     producer_id = await writer.prepare()
    >>> async with aio.SharedTransactions() as shared:
    ...     await shared.commit(batch, [producer_id])
    <Outcome.COMMITTED: 'committed'>
    >>> async with aio.SharedWriter(batch, "task-4") as writer:
    ...     pass
    Traceback (most recent call last):
    suiro.model.errors.AlreadyCommitted: ...

    Entering raises AlreadyCommitted, StaleBatch when a later batch of the name was committed, and
    TransactionAborted when this attempt is over. A writer's name is used once: one that comes again
    after a failure needs another name. A writer that does not say `prepare` is aborted with the
    commit of the others.
    """

    def __init__(
        self,
        batch: SharedBatch,
        writer: str,
        bootstrap: str | None = None,
        *,
        timeout_ms: int = SHARED_TIMEOUT_MS,
        env: ClientEnv | None = None,
        **given: Any,
    ) -> None:
        settings = build_settings(ProducerSettings, given)
        settings = replace(settings, transactional_id=shared_id(batch.name))
        super().__init__(bootstrap, settings=settings, env=env)
        self.batch = batch
        self._request = pb.OpenSharedRequest(
            name=batch.name,
            sequence=batch.sequence,
            attempt=batch.attempt,
            writer=writer,
            timeout_ms=timeout_ms,
            hello=self.connection.hello(),
        )
        self._joined: _SharedPart | None = None

    async def _take_part(self) -> _SharedPart:
        found = coordinators.transactions(self.connection)
        reply = await found.call(
            self.settings.transactional_id,
            TxnCoordinatorMethods.OPEN_SHARED,
            self._request,
            timeout_s=self.settings.max_block_ms / 1000,
        )
        if reply.already_committed:
            raise AlreadyCommitted(f"batch {self.batch.sequence} of {self.batch.name!r}")
        identity = ProducerIdentity(
            ProducerId(reply.producer_id), ProducerEpoch(reply.producer_epoch)
        )
        self._joined = _SharedPart(self, found, identity)
        self.identify(identity)
        return self._joined

    @property
    def producer_id(self) -> int:
        """What the commit has to name for this writer to count.

        >>> batch = aio.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> async with aio.SharedWriter(batch, "task-3") as writer:
        ...     await writer.prepare() == writer.producer_id
        True
        """
        assert self._joined is not None, "the writer has not been opened"
        return self._joined.identity.producer_id

    async def prepare(self) -> int:
        """Everything is sent: wait until it is stored, and say so; the producer id for the commit.

        Raises TransactionAborted if something could not be stored, or if the transaction is over.

        >>> batch = aio.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> async with aio.SharedWriter(batch, "task-3") as writer:
        ...     handle = writer.send("orders", b"two apples")
        ...     producer_id = await writer.prepare()
        >>> handle.succeeded()
        True
        """
        assert self._joined is not None, "the writer has not been opened"
        await self.flush()
        await self._joined.prepare()
        return self.producer_id

    def run_in_background(self, part: _SharedPart) -> None:
        """Inside the SDK: keep its partitions registered."""
        self._scope.start(part.register_forever(), "register partitions")


class _SharedPart:
    """One writer's part: registers its partitions before the first batch for them leaves."""

    def __init__(
        self, writer: SharedWriter, found: Coordinators, identity: ProducerIdentity
    ) -> None:
        self.identity = identity
        self._writer = writer
        self._name = writer.settings.transactional_id
        self._found = found
        self._wanted: dict[TopicPartition, None] = {}  # in the order of asking
        self._registered: set[TopicPartition] = set()
        self._asked = asyncio.Event()
        self._error: SuiroError | None = None
        self._is_over = False

    def start(self) -> None:
        self._writer.run_in_background(self)

    @property
    def is_open(self) -> bool:
        return not self._is_over

    def check_open(self) -> None:
        if self._error is not None:
            raise TransactionAborted(f"{self._name}: {self._error}") from self._error
        if self._is_over:
            raise InvalidTransaction(f"{self._name}: this writer has said that it is done")

    def admits(self, partition: TopicPartition) -> bool:
        if self._error is not None or partition in self._registered:
            return self._error is None
        self._wanted[partition] = None
        self._asked.set()
        return False

    def on_refused(self, error: SuiroError) -> None:
        if self._error is None and not self._is_over:
            self._error = error
            self._writer.abandon(TransactionAborted(f"{self._name}: {error}"))

    async def abort(self) -> None:
        """Not said to the coordinator: who is not prepared does not count."""
        self._is_over = True
        self._writer.abandon(TransactionAborted(f"{self._name}: the writer was closed"))

    async def prepare(self) -> None:
        self.check_open()
        await self._found.call(
            self._name,
            TxnCoordinatorMethods.PREPARE_WRITER,
            pb.PrepareWriterRequest(
                transactional_id=self._name,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.producer_epoch,
            ),
            timeout_s=self._writer.settings.max_block_ms / 1000,
        )
        self._is_over = True

    async def register_forever(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                await self._register(list(self._wanted))
            except SuiroError as error:
                self.on_refused(error)
            self._writer.wake_lines()

    async def _register(self, partitions: list[TopicPartition]) -> None:
        await self._found.call(
            self._name,
            TxnCoordinatorMethods.ADD_PARTITIONS,
            pb.AddPartitionsRequest(
                transactional_id=self._name,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.producer_epoch,
                partitions=[
                    WirePartition(topic=p.topic, partition=p.partition) for p in partitions
                ],
            ),
            timeout_s=self._writer.settings.max_block_ms / 1000,
        )
        self._registered.update(partitions)
        for partition in partitions:
            del self._wanted[partition]


class SharedTransactions:
    """For whoever leads the writers: decides, and asks what was decided.

    >>> batch = aio.SharedBatch("query-1", sequence=7, attempt="first try")
    >>> async with aio.SharedWriter(batch, "task-3") as writer:
    ...     producer_id = await writer.prepare()
    >>> async with aio.SharedTransactions() as shared:
    ...     outcome = await shared.commit(batch, [producer_id])
    ...     await shared.last_committed("query-1")
    7
    """

    def __init__(self, bootstrap: str | None = None, *, env: ClientEnv | None = None) -> None:
        env = env or real_env()
        self._connection = Connection(
            parse_bootstrap(bootstrap), env.transport, client_id="suiro-shared", rng=env.rng
        )
        self._found = coordinators.transactions(self._connection)

    async def __aenter__(self) -> Self:
        try:
            await self._connection.refresh([], timeout_s=CALL_S)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of everything.

        >>> async with aio.SharedTransactions() as shared:
        ...     await shared.close()
        """
        await self._connection.transport.close()

    async def commit(self, batch: SharedBatch, producer_ids: Iterable[int]) -> Outcome:
        """These writers commit, all others of the attempt abort, and the sequence is remembered: in
        one decision. To be asked again after a failure, by anybody.

        Raises TransactionAborted if the attempt is over, StaleBatch if a later batch was committed,
        InvalidTransaction if a writer that should count has not said `prepare`.

        >>> batch = aio.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> async with aio.SharedWriter(batch, "task-3") as writer:
        ...     producer_id = await writer.prepare()
        >>> async with aio.SharedTransactions() as shared:
        ...     first = await shared.commit(batch, [producer_id])
        ...     again = await shared.commit(batch, [producer_id])
        >>> str(first), str(again)
        ('committed', 'already committed')
        """
        already = await self._end(batch, commit=True, producer_ids=tuple(producer_ids))
        return Outcome.ALREADY_COMMITTED if already else Outcome.COMMITTED

    async def abort(self, batch: SharedBatch) -> Outcome:
        """End the attempt; without one, whatever attempt of the sequence is open. Undoes nothing
        that was committed.

        >>> batch = aio.SharedBatch("query-1", sequence=7, attempt="first try")
        >>> async with aio.SharedTransactions() as shared:
        ...     await shared.abort(batch)
        <Outcome.ABORTED: 'aborted'>
        """
        already = await self._end(batch, commit=False, producer_ids=())
        return Outcome.ALREADY_COMMITTED if already else Outcome.ABORTED

    async def last_committed(self, name: str) -> int | None:
        """The newest committed sequence of the name; None if there is none, or all is forgotten.

        >>> async with aio.SharedTransactions() as shared:
        ...     print(await shared.last_committed("query-1"))
        None
        """
        try:
            reply = await self._describe(name)
        except InvalidTransaction:
            return None
        sequence = reply.last_committed_sequence
        return None if sequence < 0 else sequence

    async def wait_completed(self, name: str) -> None:
        """Until readers are shown what was decided: that is a moment after the decision.

        Raises InvalidTransaction for an unknown name, and TimedOut; what was decided stays so.

        >>> batch = aio.SharedBatch("query-2", sequence=0, attempt="first")
        >>> async with aio.SharedTransactions() as shared:
        ...     outcome = await shared.commit(batch, [])
        ...     await shared.wait_completed("query-2")
        """
        backoff = Backoff(self._connection.rng, first_s=0.005)
        try:
            async with asyncio.timeout(CALL_S):
                while True:
                    described = await self._describe(name)
                    if described.summary.state not in COMPLETING:
                        return
                    await asyncio.sleep(backoff.next_s())
        except TimeoutError:
            raise TimedOut(f"{name!r} is decided, but not all partitions know of it") from None

    async def _describe(self, name: str) -> pb.DescribeTransactionReply:
        return await self._found.call(
            shared_id(name),
            TxnCoordinatorMethods.DESCRIBE_TRANSACTION,
            pb.DescribeTransactionRequest(transactional_id=shared_id(name)),
            timeout_s=CALL_S,
        )

    async def _end(
        self, batch: SharedBatch, *, commit: bool, producer_ids: tuple[int, ...]
    ) -> bool:
        reply = await self._found.call(
            shared_id(batch.name),
            TxnCoordinatorMethods.END_SHARED,
            pb.EndSharedRequest(
                name=batch.name,
                sequence=batch.sequence,
                attempt=batch.attempt,
                commit=commit,
                producer_ids=producer_ids,
            ),
            timeout_s=CALL_S,
        )
        return reply.already_committed
