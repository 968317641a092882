"""The states of the transaction model: values that can be compared, and the real cores in them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from suiro.model.batch import TRANSACTIONAL_BIT, BatchHeader
from suiro.model.control import ControlType
from suiro.model.errors import ProducerFenced
from suiro.model.ids import Offset, ProducerIdentity, TopicPartition
from suiro.transaction import EndTxn, Register, State, Transaction

from cluster.log.state import LogState

if TYPE_CHECKING:
    from cluster.txncoord.txn import Txn

ID = "id"
PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 1))
CONTROL_BIT = 0x20
CACHED = 500_000

Message = Register | EndTxn | tuple[Any, ...]


class Entry(NamedTuple):
    """One batch of a partition: of a producer's transaction, or a marker."""

    identity: ProducerIdentity
    marker: bool | None
    """True for commit, False for abort."""


class Client(NamedTuple):
    """A producer: the fields of its core, and what the application knows."""

    core: tuple[Any, ...]
    begun: int
    acked: frozenset[TopicPartition]
    told: tuple[tuple[ProducerIdentity, bool], ...]
    writes: tuple[TopicPartition, ...]


class World(NamedTuple):
    """One state of everything."""

    txn: Txn | None
    next_id: int
    inits: int
    decided: frozenset[tuple[ProducerIdentity, bool]]
    clients: tuple[Client, ...]
    logs: tuple[tuple[Entry, ...], ...]
    committed: tuple[int, ...]
    """The high watermarks."""
    messages: frozenset[Message]

    def key(self) -> int:
        """64 bits of it. Equal transactions are one object (`Model._decide`)."""
        return hash((id(self.txn), *self[1:]))


class Bounds(NamedTuple):
    """What keeps the space finite."""

    inits: int = 3
    begun: int = 2
    epoch_max: int = 3


class Broken(AssertionError):
    """An invariant does not hold."""


# -- the real cores, thawed and frozen ------------------------------------------------------------

_FIELDS = ("state", "identity", "_asked", "_renews")


def thaw(client: Client) -> Transaction:
    core = Transaction(ID)
    *plain, wanted, registered = client.core
    for name, value in zip(_FIELDS, plain, strict=True):
        setattr(core, name, value)
    core._wanted = dict.fromkeys(wanted)
    core._registered = set(registered)
    core.error = ProducerFenced("fenced") if core.state is State.FENCED else None
    return core


def freeze(core: Transaction) -> tuple[Any, ...]:
    plain = tuple(getattr(core, name) for name in _FIELDS)
    return (*plain, tuple(core._wanted), frozenset(core._registered))


class Outlook(NamedTuple):
    """What a producer would send now."""

    step: Any
    writable: tuple[TopicPartition, ...]
    sends: frozenset[Message]


@lru_cache(CACHED)
def outlook_of(client: Client) -> Outlook:
    core = thaw(client)
    step = core.next_step()
    writable = tuple(p for p in client.writes if core.may_write(p))
    sends: set[Message] = {("produce", core.identity, partition) for partition in writable}
    if isinstance(step, Register | EndTxn):
        sends.add(step)
    return Outlook(step, writable, frozenset(sends))


@lru_cache(CACHED)
def header(identity: ProducerIdentity, offset: int, *, control: bool) -> BatchHeader:
    return BatchHeader(
        base_offset=offset,
        length=0,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=TRANSACTIONAL_BIT | (CONTROL_BIT if control else 0),
        last_offset_delta=0,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=-1 if control else 0,
        record_count=1,
    )


@lru_cache(CACHED)
def replayed(log: tuple[Entry, ...]) -> LogState:
    state = LogState(Offset(0))
    for offset, (identity, marker) in enumerate(log):
        kind = None if marker is None else ControlType.COMMIT if marker else ControlType.ABORT
        state.apply(header(identity, offset, control=marker is not None), kind, 0)
    return state
