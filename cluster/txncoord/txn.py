"""One transactional id as its coordinator knows it: `Txn`, its states, and which may follow which.

A `Txn` is a value: the newest one under its id is all there is to know, which is what lets
`__transaction_state` be compacted. A transaction has writers: one, or many if it is shared. Each
has a producer id of its own, and all are decided together, in one record.

The records of a writer carry its identity (id, epoch); the markers that end its transaction carry
the next epoch, and the next transaction of a plain id begins there. So one number orders everything
that is ever said about a producer id, and whatever is late is lower (T5).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from suiro.model.ids import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    SHARED_PREFIX,
    ProducerEpoch,
    ProducerIdentity,
    TopicPartition,
)

NOBODY: Final = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
NO_TIME_MS: Final = -1
NO_SEQUENCE: Final = -1


class TxnState(StrEnum):
    """Where the newest transaction of an id is."""

    EMPTY = "empty"
    """A producer has taken the id, and has written nothing since."""
    ONGOING = "ongoing"
    PREPARE_COMMIT = "prepare_commit"
    """Decided; markers are on their way. Nothing but their answers can change it any more (T4)."""
    PREPARE_ABORT = "prepare_abort"
    COMPLETE_COMMIT = "complete_commit"
    """Every partition and group has answered."""
    COMPLETE_ABORT = "complete_abort"
    DEAD = "dead"
    """Forgotten: a tombstone. Nobody has used the id for long."""


_S = TxnState
_FROM_REST = frozenset({_S.EMPTY, _S.ONGOING, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT, _S.DEAD})
"""From rest: taken anew, opened, ended with nothing in it, or forgotten."""

LEGAL: Final[dict[TxnState, frozenset[TxnState]]] = {
    _S.EMPTY: _FROM_REST,
    # A shared transaction whose writers have written nowhere owes no marker: complete at once.
    _S.ONGOING: frozenset(set(_S) - {_S.EMPTY, _S.DEAD}),
    _S.PREPARE_COMMIT: frozenset({_S.PREPARE_COMMIT, _S.COMPLETE_COMMIT}),
    _S.PREPARE_ABORT: frozenset({_S.PREPARE_ABORT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: _FROM_REST,
    _S.COMPLETE_ABORT: _FROM_REST,
    _S.DEAD: frozenset({_S.EMPTY, _S.ONGOING, _S.COMPLETE_COMMIT}),
}
assert LEGAL.keys() == set(TxnState)

DECIDED: Final = frozenset({TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT})
"""Markers are owed."""


class EndedBy(IntEnum):
    """Whose wish it was; the numbers are stored."""

    CLIENT = 0
    TIMEOUT = 1
    FENCED = 2
    """A newer instance, or a newer attempt of a shared transaction, has taken over."""
    OPERATOR = 3
    RESTARTED = 4
    """Its own producer, which lost track of it, and takes the id again."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes in a transaction, and where: a marker is owed to every place."""

    identity: ProducerIdentity
    """What its records carry."""
    partitions: tuple[TopicPartition, ...] = ()
    groups: tuple[str, ...] = ()
    name: str = ""
    """Shared transactions only."""
    prepared: bool = False
    """It will write nothing more; shared transactions only."""
    commits: bool = False
    """What its markers say, once that is decided."""

    @property
    def marker(self) -> ProducerIdentity:
        return after(self.identity)

    @property
    def is_settled(self) -> bool:
        return not self.partitions and not self.groups


@dataclass(frozen=True, slots=True)
class Ended:
    """How the last transaction ended: the answer to whoever asks again."""

    identity: ProducerIdentity
    """Of the transaction that ended; NOBODY if it was shared."""
    successor: ProducerIdentity
    """What its producer was given to go on with; NOBODY if it was given nothing."""
    commit: bool
    by: EndedBy
    who: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Token:
    """Which shared transaction: the sequence under its name, and which attempt at it."""

    sequence: int
    attempt: str


@dataclass(frozen=True, slots=True)
class Txn:
    """Everything about one transactional id.

    Always: writers only while ongoing or decided; at rest `identity` is above every epoch that was
    ever used in a partition under its id; `holder` is `identity`, or nobody may write.
    """

    transactional_id: str
    state: TxnState
    changed_ms: int
    timeout_ms: int = 0
    identity: ProducerIdentity = NOBODY
    """Of the transaction under way, or of the next one."""
    holder: ProducerIdentity = NOBODY
    """The newest identity that a producer was given and still has."""
    came_from: ProducerIdentity = NOBODY
    """What the holder showed to get it: the same question has the same answer."""
    client: str = ""
    """Who holds it, for people."""
    fenced_by: str = ""
    """Who took the id from its former holder, and when; for people."""
    fenced_ms: int = NO_TIME_MS
    opened_ms: int = NO_TIME_MS
    renewed_ms: int = NO_TIME_MS
    """The timeout counts from here."""
    writers: tuple[Writer, ...] = ()
    ended: Ended | None = None
    token: Token | None = None
    """Shared only: of the transaction under way, or of the last one."""
    committed_sequence: int = NO_SEQUENCE
    """Shared only: the last token that was committed, in the record that decided it."""
    over: tuple[str, ...] = ()
    """Shared only: attempts that were aborted and may not come back, oldest first."""

    @property
    def is_shared(self) -> bool:
        return self.transactional_id.startswith(SHARED_PREFIX)

    @property
    def expires_ms(self) -> int:
        return self.renewed_ms + self.timeout_ms

    def writer(self, identity: ProducerIdentity) -> Writer | None:
        return next((w for w in self.writers if w.identity == identity), None)


def after(identity: ProducerIdentity) -> ProducerIdentity:
    """The next epoch; whoever was handed an identity was handed one that has it."""
    return ProducerIdentity(identity.producer_id, ProducerEpoch(identity.producer_epoch + 1))
