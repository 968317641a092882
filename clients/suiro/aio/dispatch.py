"""From the accumulator to the brokers and back: who gets what next, and what became of it.

One `BrokerLine` per broker asks here for what is due to the partitions that its broker leads, and
reports how each attempt ended. Order, numbers and retries are decided by `sequences`; here are the
clock, the metadata and the identity that it needs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from suiro._proto import broker_pb2 as pb
from suiro.aio.broker_line import BrokerLine
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    ClientClosed,
    DeliveryTimedOut,
    OutOfOrderSequence,
    TimedOut,
    UnknownProducer,
)
from suiro.model.ids import NodeId, ProducerEpoch, ProducerId, ProducerIdentity
from suiro.retry import Backoff
from suiro.sequences import Fate, Sequences, Verdict
from suiro.transport.methods import BrokerMethods

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.accumulator import Accumulator, Batch
    from suiro.aio.tasks import TaskScope
    from suiro.connection import Connection
    from suiro.model.ids import Address, TopicPartition
    from suiro.sequences import Ticket
    from suiro.settings import ProducerSettings

EXPIRY_TICK_S: Final = 0.1


class Gate(Protocol):
    """What a transaction lets through."""

    def admits(self, partition: TopicPartition) -> bool:
        """Whether a batch may leave for this partition now."""

    def on_refused(self, error: SuiroError) -> None:
        """A batch was given up."""


@dataclass(slots=True)
class _Rest:
    """A partition that failed is left alone for a while, longer each time."""

    backoff: Backoff
    until_ms: float = 0.0


class Dispatcher:
    """Belongs to one producer and its loop. Every batch ends in one call of `settle`, with the
    offset of its first record or with why there is none.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        connection: Connection,
        accumulator: Accumulator,
        scope: TaskScope,
        settle: Callable[[Batch, int | SuiroError], None],
    ) -> None:
        self.settings = settings
        self.connection = connection
        self.gate: Gate | None = None
        """Of a producer with transactions; it says who the producer is, too."""
        self._accumulator = accumulator
        self._scope = scope
        self._settle = settle
        self._sequences: Sequences[Batch] = Sequences(
            numbered=settings.is_idempotent,
            own_epochs=not settings.transactional_id,
            in_flight_max=settings.max_in_flight,
        )
        self._lines: dict[NodeId, BrokerLine] = {}
        self._resting: dict[TopicPartition, _Rest] = {}
        self._searching: set[str] = set()
        self._troubles: dict[str, SuiroError] = {}
        """By topic, what went wrong since something of it was last stored."""
        self._identifying = False

    def start(self) -> None:
        self._scope.start(self._expire_forever(), "expire")
        self._identify_if_needed()

    def close(self) -> None:
        """Give up whatever is left."""
        error = ClientClosed("the producer has been closed")
        for sequence in self._sequences.all():
            for ticket in sequence.tickets():
                self._end(ticket, error)
        for batch in self._accumulator.take_all():
            self._settle(batch, error)

    def identify(self, identity: ProducerIdentity) -> None:
        """Who writes from now on, as the coordinator of a transaction says."""
        self._sequences.identify(identity)
        self.wake_lines()

    def abandon(self, error: SuiroError) -> None:
        """Fail whatever has no answer yet. What is under way may still be stored: a transaction
        that is aborted makes that invisible.
        """
        for batch in self._accumulator.take_all():
            self._settle(batch, error)
        for sequence in self._sequences.all():
            for ticket in sequence.tickets():
                if not ticket.expired:
                    self._settle(ticket.batch, error)
                    sequence.expire(ticket)

    def wake_lines(self) -> None:
        """There may be something to send."""
        for partition in self._waiting():
            leader = self.connection.leader(partition)
            if leader is not None:
                self._line(*leader).wake()
            else:
                self._find_leader(partition.topic)

    # -- for the lines ----------------------------------------------------------------------------

    def take_for(self, node: NodeId, *, idle: bool) -> tuple[list[Ticket[Batch]], float | None]:
        """Batches that should leave for this broker now; else how long until one should."""
        now_ms = self._now_ms()
        tickets: list[Ticket[Batch]] = []
        wait_ms: float | None = None
        total = 0
        for partition in self._waiting():
            leader = self.connection.leader(partition)
            if leader is None or leader[0] != node or total >= self.settings.batch_size:
                continue
            ticket, due_ms = self._next(partition, now_ms, idle=idle)
            if ticket is not None:
                tickets.append(ticket)
                total += ticket.batch.size
            elif due_ms is not None:
                wait_ms = due_ms if wait_ms is None else min(wait_ms, due_ms)
        return tickets, wait_ms

    def sent(self, ticket: Ticket[Batch]) -> None:
        """It is on its way."""
        self._sequences.of(ticket.batch.partition).sent(ticket)

    def cannot_send(self, ticket: Ticket[Batch], error: SuiroError) -> None:
        """It could not even be encoded."""
        self._sequences.of(ticket.batch.partition).withdraw(ticket)
        self._end(ticket, error)
        self._tell_gate(error)

    def stored(self, ticket: Ticket[Batch], base_offset: int) -> None:
        """The broker has it, for the first time or again."""
        fate = self._sequences.of(ticket.batch.partition).on_verdict(ticket, Verdict.STORED)
        self._resting.pop(ticket.batch.partition, None)
        self._troubles.pop(ticket.batch.partition.topic, None)
        if fate is Fate.STORED:
            self._end(ticket, base_offset)

    def failed(self, ticket: Ticket[Batch], error: SuiroError) -> None:
        """An attempt has failed: it is tried again, numbered anew or given up."""
        batch = ticket.batch
        batch.error = self._troubles[batch.partition.topic] = error
        fate = self._sequences.of(batch.partition).on_verdict(ticket, _verdict(error))
        if fate is Fate.FAILED:
            self._end(ticket, error)
        elif fate is Fate.RENUMBERED:
            batch.encoded = None
        if not error.retriable and fate is not Fate.DROPPED:
            # Of a dropped one the gate has heard; by now it may be at the next transaction.
            self._tell_gate(error)
        self._identify_if_needed()
        if error.retriable:
            self._rest(batch.partition)
            self._find_leader(batch.partition.topic)

    # -- inside -----------------------------------------------------------------------------------

    def _waiting(self) -> list[TopicPartition]:
        """Partitions with something to send, now or later."""
        again = self._sequences.due()
        return [*again, *(p for p in self._accumulator.partitions() if p not in again)]

    def _next(
        self, partition: TopicPartition, now_ms: float, *, idle: bool
    ) -> tuple[Ticket[Batch] | None, float | None]:
        """What leaves next for a partition, or when something should."""
        rest = self._resting.get(partition)
        if rest is not None and rest.until_ms > now_ms:
            return None, rest.until_ms - now_ms
        sequence = self._sequences.of(partition)
        ticket = sequence.due()
        if ticket is not None:
            return ticket, None
        if not sequence.may_take() or (self.gate and not self.gate.admits(partition)):
            return None, None
        due_ms = self._accumulator.due_in_ms(partition, now_ms, idle=idle)
        if due_ms > 0:
            return None, due_ms
        batch = self._accumulator.take(partition)
        assert batch is not None
        return sequence.take(batch, len(batch)), None

    def _rest(self, partition: TopicPartition) -> None:
        rest = self._resting.setdefault(partition, _Rest(Backoff(self.connection.rng)))
        if rest.until_ms <= self._now_ms():
            rest.until_ms = self._now_ms() + 1000 * rest.backoff.next_s()

    def _end(self, ticket: Ticket[Batch], outcome: int | SuiroError) -> None:
        if not ticket.expired:
            self._settle(ticket.batch, outcome)

    def _tell_gate(self, error: SuiroError) -> None:
        if self.gate is not None:
            self.gate.on_refused(error)

    def _line(self, node: NodeId, address: Address) -> BrokerLine:
        line = self._lines.get(node)
        if line is None or line.address != address:
            line = self._lines[node] = BrokerLine(self, node, address)
            self._scope.start(line.run(), f"line to broker {node}")
        return line

    def _find_leader(self, topic: str) -> None:
        if topic not in self._searching:
            self._searching.add(topic)
            self._scope.start(self._search(topic), f"find leaders of {topic}")

    async def _search(self, topic: str) -> None:
        """Ask who leads now, until every waiting partition of the topic has a leader again."""
        backoff = Backoff(self.connection.rng)
        try:
            while True:
                try:
                    await self.connection.refresh([topic], timeout_s=self._request_timeout_s)
                except SuiroError as error:
                    self._troubles[topic] = error
                    if not error.retriable:
                        raise
                waiting = [where for where in self._waiting() if where.topic == topic]
                if all(self.connection.leader(where) for where in waiting):
                    return
                await asyncio.sleep(backoff.next_s())
        finally:
            self._searching.discard(topic)
            self.wake_lines()

    def _identify_if_needed(self) -> None:
        if self._sequences.wants_identity and not self._identifying and self.gate is None:
            self._identifying = True
            self._scope.start(self._identify(), "identify")

    async def _identify(self) -> None:
        backoff = Backoff(self.connection.rng)
        request = pb.NewProducerRequest(hello=self.connection.hello())
        while self._sequences.wants_identity:
            try:
                reply = await self.connection.any_broker(
                    BrokerMethods.NEW_PRODUCER, request, timeout_s=self._request_timeout_s
                )
            except SuiroError:
                await asyncio.sleep(backoff.next_s())
                continue
            who = ProducerIdentity(
                ProducerId(reply.producer_id), ProducerEpoch(reply.producer_epoch)
            )
            self._sequences.identify(who)
        self._identifying = False
        self.wake_lines()

    # -- deadlines --------------------------------------------------------------------------------

    async def _expire_forever(self) -> None:
        while True:
            await asyncio.sleep(EXPIRY_TICK_S)
            now_ms = self._now_ms()
            for line in self._lines.values():
                for topic in line.check_answers(now_ms):
                    self._find_leader(topic)
            for batch in self._accumulator.take_expired(now_ms):
                late = self._timed_out(batch, 0)
                self._settle(batch, late)
                self._tell_gate(late)
            for sequence in self._sequences.all():
                for ticket in sequence.tickets():
                    if ticket.batch.deadline_ms <= now_ms and not ticket.expired:
                        late = self._timed_out(ticket.batch, ticket.attempts)
                        self._settle(ticket.batch, late)
                        sequence.expire(ticket)
                        self._tell_gate(late)
            self._identify_if_needed()
            self.wake_lines()

    def _timed_out(self, batch: Batch, attempts: int) -> DeliveryTimedOut:
        trouble = batch.error or self._troubles.get(batch.partition.topic)
        why = trouble or TimedOut("no broker took it")
        error = DeliveryTimedOut(
            f"{batch.partition}: {len(batch)} records were not delivered within "
            f"{self.settings.delivery_timeout_ms:g} ms, in {attempts} attempts; last: {why}"
        )
        error.__cause__ = trouble
        return error

    def _now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000

    @property
    def _request_timeout_s(self) -> float:
        return self.settings.request_timeout_ms / 1000


def _verdict(error: SuiroError) -> Verdict:
    if isinstance(error, OutOfOrderSequence | UnknownProducer):
        return Verdict.GAP
    return Verdict.UNKNOWN if error.retriable else Verdict.REFUSED
