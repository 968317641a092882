"""What a replicated state machine is: it decides without changing, and changes only in `apply`.

A machine's `decide_*` methods read its state and return a `Decision`: the records to append, the
reply to give, the effects to carry out. `apply` is the only mutator; it runs the same when a
request is served and when the log is replayed, so it may depend on nothing but the record and
the state: no clock, no randomness. `MachineHost` carries the decisions out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

R = TypeVar("R")
Record = TypeVar("Record", contravariant=True)  # noqa: PLC0105 - Record reads better


class Machine(Protocol[Record]):
    """State that a log of records rebuilds."""

    def apply(self, record: Record) -> None:
        """Change the state by one record that was decided on; it cannot be refused any more."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[R]):
    """What a machine wants done.

    The records are applied and appended together, all or none; the effects are carried out and
    the reply is given once they are committed. A decision without records is a read, and its reply
    waits as well: it may have seen a write that is not committed yet.
    """

    records: tuple[Any, ...]
    reply: R
    effects: tuple[Any, ...] = ()
