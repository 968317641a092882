"""Which batch of a partition may leave next, and with what sequence number. Pure.

What always holds, for every partition:

- Batches get their numbers in the order in which they were handed in, and at most five of them are
  unresolved: as many as a broker remembers of a producer, so it can tell every retry from news.
- A batch that is sent again has the number and the bytes of the first time. After a failure nothing
  leaves until everything under way has been answered; then all go out again, the first one first.
- A batch is numbered anew only if no attempt can have stored it: each was refused by the broker's
  sequence check. One that may be stored and is refused later is given up, never sent as new (P3).
- Where a number stays unused (a batch was given up), the numbering begins anew, under a higher
  epoch, once nothing numbered the old way is left. The epoch makes brokers refuse whatever of the
  old numbering still wanders about in the network, so it cannot come out of order (P4).

Who the producer is comes from outside: an identity from any broker, or from the coordinator of a
transaction, whose epochs are the coordinator's alone (`own_epochs=False`).
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, assert_never

from suiro.model.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    ProducerEpoch,
    ProducerIdentity,
)
from suiro.model.limits import PRODUCE_IN_FLIGHT_MAX

if TYPE_CHECKING:
    from suiro.model.ids import TopicPartition

EPOCH_MAX: Final = (1 << 15) - 1
SEQUENCE_MASK: Final = (1 << 31) - 1

T = TypeVar("T")


class Verdict(Enum):
    """What is known of one attempt."""

    STORED = auto()
    UNKNOWN = auto()
    """No answer, or one that leaves open whether the batch was stored."""
    GAP = auto()
    """The broker's sequence check refused it: this attempt stored nothing."""
    REFUSED = auto()
    """Refused for what it is; trying again cannot help."""


class Fate(Enum):
    """What becomes of the batch."""

    STORED = auto()
    AGAIN = auto()
    """It leaves again, as it is, when `due` hands it out."""
    RENUMBERED = auto()
    """It leaves again under a new number: its bytes have to be made anew."""
    FAILED = auto()
    DROPPED = auto()
    """It had expired before; nobody waits for it."""


class Stamp(NamedTuple):
    """What a batch's header says of its producer."""

    producer_id: int
    producer_epoch: int
    base_sequence: int


UNNUMBERED: Final = Stamp(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


@dataclass(slots=True, eq=False)
class Ticket(Generic[T]):
    """One batch that has a number and no final answer."""

    batch: T
    count: int
    order: int
    """Its place among all batches of the partition, whatever their numbers."""
    stamp: Stamp = UNNUMBERED
    in_flight: bool = False
    maybe_stored: bool = False
    """Some attempt ended without saying."""
    expired: bool = False
    attempts: int = 0
    left_first: bool = False
    """Nothing before it was unresolved when it last left."""


@dataclass(slots=True, eq=False)
class PartitionSequence(Generic[T]):
    """The numbering of one partition."""

    owner: Sequences[T]
    identity: ProducerIdentity | None = None
    next_sequence: int = 0
    unresolved: list[Ticket[T]] = field(default_factory=list)
    """In the order of their numbers."""
    _renumbered: list[Ticket[T]] = field(default_factory=list)
    _has_gap: bool = False
    _handed_in: int = 0

    # -- what may leave ---------------------------------------------------------------------------

    def due(self) -> Ticket[T] | None:
        """The batch that has to leave again before any other may, once nothing behind it is under
        way.
        """
        for place, ticket in enumerate(self.unresolved):
            if not ticket.in_flight:
                behind = self.unresolved[place + 1 :]
                return None if any(other.in_flight for other in behind) else ticket
        return None

    def may_take(self) -> bool:
        """Whether a new batch may be handed in now."""
        if self._has_gap or len(self.unresolved) >= self.owner.in_flight_max:
            return False
        return self._is_identified() and all(ticket.in_flight for ticket in self.unresolved)

    def take(self, batch: T, count: int) -> Ticket[T]:
        """Number a new batch. It is not under way before `sent`."""
        assert self.may_take(), "nothing may be numbered now"
        self._handed_in += 1
        ticket = Ticket(batch, count, self._handed_in)
        self._number(ticket)
        return ticket

    def sent(self, ticket: Ticket[T]) -> None:
        ticket.in_flight = True
        ticket.attempts += 1
        ticket.left_first = self.unresolved[0] is ticket

    def withdraw(self, ticket: Ticket[T]) -> None:
        """The newest batch, never sent, will not be: its number is free again."""
        assert self.unresolved[-1] is ticket
        assert not ticket.attempts
        self.unresolved.pop()
        if ticket.stamp is not UNNUMBERED:
            self.next_sequence = ticket.stamp.base_sequence

    # -- what became of it ------------------------------------------------------------------------

    def on_verdict(self, ticket: Ticket[T], verdict: Verdict) -> Fate:
        """An attempt has ended; what that means for the batch."""
        assert ticket.in_flight, "only what is under way is answered"
        ticket.in_flight = False
        match verdict:
            case Verdict.STORED:
                fate = Fate.DROPPED if ticket.expired else Fate.STORED
            case Verdict.UNKNOWN:
                ticket.maybe_stored = True
                fate = Fate.DROPPED if ticket.expired else Fate.AGAIN
            case Verdict.GAP:
                fate = self._fate_after_gap(ticket)
            case Verdict.REFUSED:
                fate = Fate.DROPPED if ticket.expired else Fate.FAILED
            case _:
                assert_never(verdict)
        if fate is not Fate.AGAIN:
            self.unresolved.remove(ticket)
            self._has_gap |= verdict is not Verdict.STORED
        if fate is Fate.RENUMBERED:
            insort(self._renumbered, ticket, key=lambda other: other.order)
        self._begin_anew_if_settled()
        return fate

    def expire(self, ticket: Ticket[T]) -> None:
        """Its deadline has passed and whoever waited has been told. An attempt that is under way
        still counts until it is answered: the numbers after it depend on it.
        """
        ticket.expired = True
        if ticket in self._renumbered:
            self._renumbered.remove(ticket)
        elif not ticket.in_flight:
            self.unresolved.remove(ticket)
            self._has_gap = True
        self._begin_anew_if_settled()

    def tickets(self) -> list[Ticket[T]]:
        """Everything without a final answer."""
        return [*self.unresolved, *self._renumbered]

    def _fate_after_gap(self, ticket: Ticket[T]) -> Fate:
        if ticket.expired:
            return Fate.DROPPED
        if self.unresolved[0] is not ticket:
            return Fate.AGAIN  # it came before one that has to be sent again itself
        if not ticket.maybe_stored:
            return Fate.RENUMBERED
        return Fate.FAILED if ticket.left_first else Fate.AGAIN

    # -- numbers ----------------------------------------------------------------------------------

    def _is_identified(self) -> bool:
        if self.identity is None and self.owner.numbered:
            self.identity, self.next_sequence = self.owner.identity, 0
        return self.identity is not None or not self.owner.numbered

    def on_identity(self) -> None:
        """There is a new identity: take it up where nothing is numbered under the old one. What is
        under way of a transaction that has ended is waited for: the next one must not be numbered
        as part of it.
        """
        if self.unresolved:
            self._has_gap |= self.owner.identities_end
        elif not self._has_gap:
            self.identity = None
        self._begin_anew_if_settled()

    def _number(self, ticket: Ticket[T]) -> None:
        if self.owner.numbered:
            assert self.identity is not None
            who = self.identity
            ticket.stamp = Stamp(who.producer_id, who.producer_epoch, self.next_sequence)
            self.next_sequence = (self.next_sequence + ticket.count) & SEQUENCE_MASK
        self.unresolved.append(ticket)

    def _begin_anew_if_settled(self) -> None:
        if not self._has_gap or self.unresolved:
            return
        if self.owner.numbered:
            self.identity = self.owner.successor(self.identity)
            self.next_sequence = 0
        if not self._is_identified():
            return  # what waits to be numbered waits for an identity
        self._has_gap = False
        waiting, self._renumbered = self._renumbered, []
        for ticket in waiting:
            self._number(ticket)


class Sequences(Generic[T]):
    """The numbering of every partition that a producer writes to."""

    def __init__(
        self,
        *,
        numbered: bool = True,
        own_epochs: bool = True,
        in_flight_max: int = PRODUCE_IN_FLIGHT_MAX,
    ) -> None:
        assert 1 <= in_flight_max <= PRODUCE_IN_FLIGHT_MAX
        self.numbered = numbered
        self.identity: ProducerIdentity | None = None
        self.in_flight_max = in_flight_max
        self._own_epochs = own_epochs
        self._partitions: dict[TopicPartition, PartitionSequence[T]] = {}

    @property
    def wants_identity(self) -> bool:
        """Whether somebody has to ask for one before more can leave."""
        return self.numbered and self.identity is None

    @property
    def identities_end(self) -> bool:
        """Whether nothing more is taken under an identity once there is another: that of a
        transaction is over with it.
        """
        return not self._own_epochs

    def identify(self, identity: ProducerIdentity) -> None:
        """Who the producer is from now on; what has a number keeps it."""
        self.identity = identity
        for sequence in self._partitions.values():
            sequence.on_identity()

    def of(self, partition: TopicPartition) -> PartitionSequence[T]:
        sequence = self._partitions.get(partition)
        if sequence is None:
            sequence = self._partitions[partition] = PartitionSequence(self)
        return sequence

    def due(self) -> list[TopicPartition]:
        """Partitions with a batch that has to leave again."""
        return [where for where, sequence in self._partitions.items() if sequence.due()]

    def all(self) -> list[PartitionSequence[T]]:
        return list(self._partitions.values())

    def successor(self, identity: ProducerIdentity | None) -> ProducerIdentity | None:
        """Under what identity a partition begins anew; None: another has to be found first."""
        if identity is None:
            return self.identity
        if self.identity is not None and _is_newer(self.identity, identity):
            return self.identity
        if self._own_epochs and identity.producer_epoch < EPOCH_MAX:
            bumped = ProducerEpoch(identity.producer_epoch + 1)
            return ProducerIdentity(identity.producer_id, bumped)
        self.identity = None
        return None


def _is_newer(one: ProducerIdentity, other: ProducerIdentity) -> bool:
    return one.producer_id != other.producer_id or one.producer_epoch > other.producer_epoch
