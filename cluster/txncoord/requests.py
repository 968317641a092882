"""What the transaction machine is asked, what it answers, and what it wants done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.txncoord.txn import NOBODY, after

if TYPE_CHECKING:
    from suiro.model.ids import ProducerIdentity, TopicPartition

# -- requests -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Init:
    """A producer takes a transactional id, or goes on with the identity that it has."""

    transactional_id: str
    timeout_ms: int
    client: str
    """Who asks, for people: client id and address."""
    go_on: ProducerIdentity = NOBODY


@dataclass(frozen=True, slots=True)
class Places:
    """Partitions and groups."""

    partitions: tuple[TopicPartition, ...] = ()
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Open:
    """One writer of a shared transaction opens or joins it."""

    name: str
    sequence: int
    attempt: str
    writer: str
    timeout_ms: int
    client: str = ""
    """Who asks, for people."""


@dataclass(frozen=True, slots=True)
class EndShared:
    """The decision on a shared transaction: the writers with these producer ids count."""

    name: str
    sequence: int
    attempt: str
    """Empty, to abort whatever attempt is open."""
    commit: bool
    producer_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    """These places have the marker."""

    marker: ProducerIdentity
    places: Places


# -- replies --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Completing:
    """Not now: an earlier transaction of the id is being completed. To be asked again.

    A reply and not an error, because what completes it may have been decided by the question.
    """


@dataclass(frozen=True, slots=True)
class Joined:
    """A writer's place in a shared transaction."""

    transactional_id: str
    identity: ProducerIdentity


@dataclass(frozen=True, slots=True)
class SharedEnd:
    """What became of a shared transaction."""

    already_committed: bool


ALREADY_COMMITTED = SharedEnd(already_committed=True)
DONE = SharedEnd(already_committed=False)

# -- effects --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriterMarkers:
    """The markers owed for one writer."""

    identity: ProducerIdentity
    """Of the transaction: what `SettleOffsets` names to a group."""
    commit: bool
    places: Places

    @property
    def marker(self) -> ProducerIdentity:
        """What the markers in the partitions carry."""
        return after(self.identity)


@dataclass(frozen=True, slots=True)
class SendMarkers:
    """Tell every place, until it has answered; tell the machine of the answers."""

    transactional_id: str
    writers: tuple[WriterMarkers, ...]
