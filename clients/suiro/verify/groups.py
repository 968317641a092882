"""Whether what the members of a consumer group went through can be true: G1, G2, G5 and P8.

A history is what each member was told and given, by one clock. The checker is told nothing else and
shares no code with the product. It errs on the side of the product: an ownership begins when the
application hears of it and ends when the application is asked to let go, or with the last records
that it was given if the partition was lost; so whatever it calls an overlap is one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Kind(StrEnum):
    """What happened to a member."""

    ASSIGNED = "assigned"
    """`offset` is where it begins."""
    REVOKED = "revoked"
    LOST = "lost"
    GONE = "gone"
    """The process was killed or stopped, or has left: of all its partitions."""
    POLLED = "polled"
    """Records from `offset` to before `end`."""
    ACKED = "acked"
    """The commit of `offset` was answered."""
    LOOKED = "looked"
    """The committed offset was read: a question of `began_s` was answered with `offset`."""
    FAILED = "failed"
    """The application got an error, which `note` tells."""


class Event(NamedTuple):
    """One line of a history."""

    at_s: float
    member: str
    kind: Kind
    partition: str = ""
    offset: int = -1
    end: int = -1
    began_s: float = 0.0
    note: str = ""


@dataclass(slots=True)
class Ownership:
    """One member's time with a partition."""

    member: str
    partition: str
    began_s: float
    first: int
    ended_s: float | None = None
    polled: list[tuple[float, int, int]] = field(default_factory=list)
    """When, from and to which offset it was given records."""

    def end(self, event: Event) -> None:
        lost = event.kind in {Kind.LOST, Kind.FAILED}
        polled_s = self.polled[-1][0] if self.polled else self.began_s
        self.ended_s = polled_s if lost else event.at_s


def ownerships(events: Iterable[Event]) -> dict[str, list[Ownership]]:
    """Who had which partition when, by partition and in order of the beginning."""
    found: dict[str, list[Ownership]] = defaultdict(list)
    open_now: dict[tuple[str, str], Ownership] = {}
    for event in sorted(events, key=lambda event: event.at_s):
        key = event.member, event.partition
        match event.kind:
            case Kind.ASSIGNED:
                owned = Ownership(event.member, event.partition, event.at_s, event.offset)
                open_now[key] = owned
                found[event.partition].append(owned)
            case Kind.REVOKED | Kind.LOST if key in open_now:
                open_now.pop(key).end(event)
            case Kind.GONE | Kind.FAILED:
                for mine in [k for k in open_now if k[0] == event.member]:
                    open_now.pop(mine).end(event)
            case Kind.POLLED if key in open_now:
                open_now[key].polled.append((event.at_s, event.offset, event.end))
    return found


def check(events: list[Event], ends: Mapping[str, int] | None = None) -> list[str]:
    """What is wrong; with `ends`, where each log ends, also what nobody was given."""
    owned = ownerships(events)
    wrong = [
        *_two_owners(owned),
        *_not_owned(events, owned),
        *_jumps(owned),
        *_went_back(events, owned),
        *(f"error of {e.member}: {e.note}" for e in events if e.kind is Kind.FAILED),
    ]
    return wrong if ends is None else [*wrong, *_unseen(owned, ends)]


def _two_owners(owned: Mapping[str, list[Ownership]]) -> list[str]:
    """G1."""
    wrong = []
    for partition, spans in owned.items():
        for earlier, later in pairwise(spans):
            if earlier.ended_s is None or earlier.ended_s > later.began_s:
                wrong.append(
                    f"G1 two owners: {partition} of {earlier.member} until {earlier.ended_s}, "
                    f"of {later.member} from {later.began_s:.3f}"
                )
    return wrong


def _not_owned(events: list[Event], owned: Mapping[str, list[Ownership]]) -> list[str]:
    """G1: records are given to owners only."""
    given = {
        (o.member, o.partition, at_s)
        for spans in owned.values()
        for o in spans
        for at_s, _, _ in o.polled
    }
    return [
        f"G1 not the owner: {e.member} was given {e.partition} at {e.at_s:.3f}"
        for e in events
        if e.kind is Kind.POLLED and (e.member, e.partition, e.at_s) not in given
    ]


def _jumps(owned: Mapping[str, list[Ownership]]) -> list[str]:
    """P8: one owner is given a partition without holes and without going back."""
    wrong = []
    for ownership in (o for spans in owned.values() for o in spans):
        position = ownership.first
        for at_s, first, end in ownership.polled:
            if first != position:
                wrong.append(
                    f"P8 jump: {ownership.member} was at {position} of {ownership.partition}, "
                    f"given {first} at {at_s:.3f}"
                )
            position = end
    return wrong


def _went_back(events: list[Event], owned: Mapping[str, list[Ownership]]) -> list[str]:
    """G2: whoever asks finds at least what was acknowledged before it asked."""
    acked: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.kind is Kind.ACKED:
            acked[event.partition].append(event)

    def floor(partition: str, before_s: float) -> int:
        return max((e.offset for e in acked[partition] if e.at_s < before_s), default=-1)

    wrong = [
        f"G2 went back: {e.partition} is at {e.offset}, {at_least} was acknowledged"
        for e in events
        if e.kind is Kind.LOOKED and e.offset < (at_least := floor(e.partition, e.began_s))
    ]
    for partition, spans in owned.items():
        for earlier, later in pairwise(spans):
            at_least = floor(partition, earlier.ended_s or 0.0)
            if later.first < at_least:
                wrong.append(
                    f"G2 went back: {later.member} begins {partition} at {later.first}, "
                    f"{at_least} was acknowledged"
                )
    return wrong


def _unseen(owned: Mapping[str, list[Ownership]], ends: Mapping[str, int]) -> list[str]:
    """G5: together they were given everything."""
    wrong = []
    for partition, end in ends.items():
        spans = sorted((a, b) for o in owned.get(partition, []) for _, a, b in o.polled)
        position = 0
        for first, last in spans:
            if first > position:
                break
            position = max(position, last)
        if position < end:
            wrong.append(f"G5 unseen: {partition} from {position}, it ends at {end}")
    return wrong
