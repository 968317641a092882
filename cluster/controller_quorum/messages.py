"""What travels between the members of the quorum, and what the core hands to its driver.

All of it is immutable, so a message may be sent, duplicated and kept without a copy. Indexes start
at 1; index 0 with term 0 is the empty log. How a message is written to the wire is the shell's
business.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from cluster.controller_quorum.conf import NOBODY

if TYPE_CHECKING:
    from cluster.controller_quorum.conf import ConfState, Member


class EntryKind(IntEnum):
    """NORMAL entries belong to the machine; EMPTY opens a term; CONF holds a configuration."""

    NORMAL = 1
    EMPTY = 2
    CONF = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the log. Equal index and term mean equal content and equal past (M2)."""

    index: int
    term: int
    kind: EntryKind
    data: bytes = b""


class MessageKind(IntEnum):
    """The values are the wire's; they also index the core's table of handlers."""

    APPEND = 1
    APPEND_REPLY = 2
    HEARTBEAT = 3
    HEARTBEAT_REPLY = 4
    VOTE = 5
    VOTE_REPLY = 6
    PRE_VOTE = 7
    PRE_VOTE_REPLY = 8
    SNAPSHOT = 9
    SNAPSHOT_REPLY = 10
    TIMEOUT_NOW = 11
    READ_INDEX = 12
    READ_INDEX_REPLY = 13


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """A piece of a snapshot; the last one ends at `bytes_total`."""

    index: int
    term: int
    conf: ConfState
    offset: int
    data: bytes
    bytes_total: int

    @property
    def is_last(self) -> bool:
        return self.offset + len(self.data) == self.bytes_total


@dataclass(frozen=True, slots=True)
class Message:
    """One message of any kind; what a field means depends on the kind.

    | kind             | index               | log_term         | hint           | others          |
    | ---------------- | ------------------- | ---------------- | -------------- | --------------- |
    | APPEND           | before the entries  | its term         |                | entries, commit |
    | APPEND_REPLY     | held up to here, or | term at the hint | where to go on | reject          |
    |                  | the index refused   |                  | if refused     |                 |
    | HEARTBEAT        |                     |                  |                | commit,         |
    |                  |                     |                  |                | read_sequence   |
    | HEARTBEAT_REPLY  |                     |                  |                | read_sequence   |
    | VOTE, PRE_VOTE   | candidate's last    | its term         |                | transfer        |
    | their replies    |                     |                  |                | reject          |
    | SNAPSHOT         |                     |                  |                | snapshot        |
    | SNAPSHOT_REPLY   | of the snapshot     |                  | bytes held     |                 |
    | TIMEOUT_NOW      |                     |                  |                |                 |
    | READ_INDEX       |                     |                  |                | context         |
    | READ_INDEX_REPLY | to be applied       |                  |                | context         |
    """

    kind: MessageKind
    source: Member
    target: Member
    term: int
    index: int = 0
    log_term: int = 0
    entries: tuple[Entry, ...] = ()
    commit: int = 0
    reject: bool = False
    hint: int = 0
    read_sequence: int = 0
    context: bytes = b""
    transfer: bool = False
    snapshot: SnapshotChunk | None = None


@dataclass(frozen=True, slots=True)
class HardState:
    """What a member must not forget: term and vote before it answers anyone, commit at leisure."""

    term: int = 0
    vote: Member | None = None
    commit: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The machine's state after `index`, and the configuration that held there."""

    index: int = 0
    term: int = 0
    conf: ConfState = NOBODY
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Stored:
    """What a member finds on its disk. A fresh one has the first configuration in an otherwise
    empty snapshot if it is one of the founders, and nothing at all if it joins later.
    """

    hard_state: HardState = HardState()
    snapshot: Snapshot = Snapshot()
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadState:
    """A read may be served as soon as `index` is applied."""

    context: bytes
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """What to do now, in this order:

    1. send `messages_early`;
    2. store `snapshot` in place of the whole log, then `entries` in place of everything from their
       first index on, then `hard_state`: one atomic batch, synced if `must_sync`;
    3. send `messages_late`: votes and acknowledgements, which speak of what step 2 made durable;
    4. load `snapshot` into the machine, apply `committed`, serve each of `reads` once its index is
       applied;
    5. `Raft.advance(ready)`.

    If step 2 fails the process must end: the core has already acted on it.
    """

    messages_early: tuple[Message, ...]
    snapshot: Snapshot | None
    entries: tuple[Entry, ...]
    hard_state: HardState | None
    must_sync: bool
    messages_late: tuple[Message, ...]
    committed: tuple[Entry, ...]
    reads: tuple[ReadState, ...]
