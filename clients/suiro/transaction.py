"""The client's side of a transaction: what may be sent when, and what an error means. Pure.

`Transaction` follows one transactional id through its life. The shell asks it what to send next and
tells it what came back. What always holds:
- no batch leaves for a partition before the coordinator has registered it (row 23), so a partition
  is chosen once and kept until its batch has left;
- an end whose answer was lost is asked for again, and never turned into its opposite;
- after an error that leaves open what was written, only an abort is possible;
- once fenced, nothing is sent any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from suiro.model.errors import (
    InvalidRequest,
    InvalidTransaction,
    OutOfOrderSequence,
    ProducerFenced,
    TransactionAborted,
    TransactionTimedOut,
    Unauthenticated,
    Unauthorized,
    UnknownProducer,
    UnsupportedVersion,
)
from suiro.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import TopicPartition

NOBODY: Final = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class State(StrEnum):
    """Where the producer is with its transaction."""

    NEW = "new"
    """It has no identity yet."""
    READY = "ready"
    OPEN = "open"
    COMMITTING = "committing"
    ABORTING = "aborting"
    MUST_ABORT = "must abort"
    """Something went wrong: what was written cannot be committed any more."""
    FENCED = "fenced"
    """For good."""


LEGAL: Final[dict[State, frozenset[State]]] = {
    State.NEW: frozenset({State.READY, State.FENCED}),
    State.READY: frozenset({State.OPEN, State.FENCED}),
    State.OPEN: frozenset({State.COMMITTING, State.ABORTING, State.MUST_ABORT, State.FENCED}),
    State.MUST_ABORT: frozenset({State.ABORTING, State.FENCED}),
    State.COMMITTING: frozenset({State.READY, State.MUST_ABORT, State.FENCED}),
    State.ABORTING: frozenset({State.READY, State.FENCED}),
    State.FENCED: frozenset(),
}
assert LEGAL.keys() == set(State)


class Verdict(StrEnum):
    """What an error means for the transaction."""

    RETRY = "retry"
    """The same again, after a pause; if it is about a coordinator or leader, at whoever that is."""
    ABORT = "abort"
    """The transaction is lost, the producer is not."""
    FATAL = "fatal"
    """The producer is of no use any more."""


_FATAL: Final = (
    ProducerFenced,
    Unauthenticated,
    Unauthorized,
    UnsupportedVersion,
    InvalidRequest,
)
_LOST: Final = (TransactionTimedOut, TransactionAborted, OutOfOrderSequence, UnknownProducer)
"""The coordinator ended it, or a partition does not follow any more: the identity must be renewed.
"""


def verdict_on(error: SuiroError) -> Verdict:
    if isinstance(error, _FATAL):
        return Verdict.FATAL
    if error.retriable:
        return Verdict.RETRY
    return Verdict.ABORT


# -- what to send ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InitProducer:
    """`go_on` is NOBODY to take the id from whoever has it."""

    go_on: ProducerIdentity


@dataclass(frozen=True, slots=True)
class Register:
    """AddPartitions and AddOffsets; what is named may be written once both are answered."""

    identity: ProducerIdentity
    partitions: tuple[TopicPartition, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndTxn:
    identity: ProducerIdentity
    commit: bool


Step = InitProducer | Register | EndTxn


class Transaction:
    """One transactional id in one producer."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.state = State.NEW
        self.identity = NOBODY
        self.error: SuiroError | None = None
        """Why it must be aborted, or is of no use any more."""
        self._wanted: dict[TopicPartition | str, None] = {}  # in the order of asking
        self._registered: set[TopicPartition | str] = set()
        self._asked = False  # the coordinator may know of places that it has not confirmed
        self._renews = False  # the identity is of no use any more

    # -- what the application does ----------------------------------------------------------------

    def begin(self) -> None:
        self._check(State.READY)
        self._move(State.OPEN)

    def commit(self) -> None:
        """Everything written has been acknowledged; raises if it can only be aborted. Asked again
        while the answer is out, it stays what it is.
        """
        if self.state is State.COMMITTING:
            return
        if self.state is State.MUST_ABORT:
            raise TransactionAborted(f"{self.transactional_id}: {self.error}")
        self._check(State.OPEN)
        assert not self._wanted, "what is still to be registered has not been written"
        self._end(State.COMMITTING)

    def abort(self) -> None:
        """Nothing that waits to be registered is written any more."""
        if self.state is State.ABORTING:
            return
        self._check(State.OPEN, State.MUST_ABORT)
        self._end(State.ABORTING)

    def write_to(self, places: Iterable[TopicPartition | str]) -> None:
        """Records for these partitions, or offsets of these groups, are to be sent."""
        self._check(State.OPEN)
        for place in places:
            if place not in self._registered:
                self._wanted[place] = None
                self._asked = True

    def may_write(self, place: TopicPartition | str) -> bool:
        """Whether a batch for this place may leave now."""
        return self.state is State.OPEN and place in self._registered

    # -- what the shell asks and tells ------------------------------------------------------------

    def next_step(self) -> Step | None:
        """What to send to the coordinator; the same again until it has been answered."""
        match self.state:
            case State.NEW:
                return InitProducer(NOBODY)
            case State.ABORTING if self._renews:
                return InitProducer(self.identity)
            case State.COMMITTING | State.ABORTING:
                return EndTxn(self.identity, commit=self.state is State.COMMITTING)
            case State.OPEN if self._wanted:
                partitions = tuple(p for p in self._wanted if not isinstance(p, str))
                groups = tuple(g for g in self._wanted if isinstance(g, str))
                return Register(self.identity, partitions, groups)
            case _:
                return None

    def on_initialised(self, identity: ProducerIdentity) -> None:
        """A new identity: sequences begin anew in every partition."""
        self.identity = identity
        self._renews = False
        self._settle()

    def on_registered(self, step: Register) -> None:
        places: tuple[TopicPartition | str, ...] = (*step.partitions, *step.groups)
        for place in places:
            if step.identity == self.identity and place in self._wanted:
                del self._wanted[place]
                self._registered.add(place)

    def on_ended(self, identity: ProducerIdentity) -> None:
        """The answer to an end: the identity of the next transaction."""
        assert self.state in {State.COMMITTING, State.ABORTING}
        self.identity = identity
        self._settle()

    def on_refused(self, error: SuiroError) -> Verdict:
        """A batch or an offset was refused, by a broker or a group coordinator.

        One that says *fenced* only knows that the transaction is over; whether somebody has taken
        the id is known to its coordinator, who is asked by the abort.
        """
        if isinstance(error, ProducerFenced | InvalidTransaction):
            self._lose(error)
            return Verdict.ABORT
        return self.on_error(error)

    def on_error(self, error: SuiroError) -> Verdict:
        """The coordinator has refused a step; RETRY changes nothing."""
        verdict = verdict_on(error)
        if self.state is State.NEW and verdict is Verdict.ABORT:
            verdict = Verdict.FATAL  # there is nothing to abort
        if verdict is Verdict.FATAL and self.state is not State.FENCED:
            self.error = error
            self._move(State.FENCED)
        elif verdict is Verdict.ABORT:
            self._lose(error)
        return verdict

    def _lose(self, error: SuiroError) -> None:
        if self.state in {State.READY, State.FENCED}:
            return  # late word of a transaction that has ended
        self.error = error
        self._wanted.clear()
        self._renews = self._renews or isinstance(error, _LOST)
        if self.state is State.ABORTING:
            self._renews = True  # its end is unknown or refused: a new epoch ends it for certain
        elif self.state in {State.OPEN, State.COMMITTING}:
            self._move(State.MUST_ABORT)

    # -- inside -----------------------------------------------------------------------------------

    def _end(self, state: State) -> None:
        """What wrote nowhere needs no coordinator to end, unless it tried to."""
        self._move(state)
        self._wanted.clear()
        if not (self._asked or self._renews):
            self._settle()

    def _settle(self) -> None:
        self._registered.clear()
        self._asked = False
        self.error = None
        self._move(State.READY)

    def _check(self, *states: State) -> None:
        if self.state is State.FENCED:
            assert self.error is not None
            raise self.error.with_traceback(None)
        if self.state not in states:
            raise InvalidTransaction(f"{self.transactional_id}: the transaction is {self.state}")

    def _move(self, state: State) -> None:
        assert state in LEGAL[self.state], (self.state, state)
        self.state = state
