"""Replies that wait: for an offset to be reached, or for one of some keys to change.

Each has a deadline as well. An item is handed out exactly once, by whichever comes first:
`release`, `wake`, `expire`, `drop` or `drain`. The items are the caller's (futures, callbacks,
requests): what being released or expired means to them is the caller's business, as is the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NewType, TypeVar

from suiro.model.errors import Overloaded

from cluster.host.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

Item = TypeVar("Item")
Ticket = NewType("Ticket", int)


@dataclass(frozen=True, slots=True)
class _Parked(Generic[Item]):
    item: Item
    keys: tuple[Hashable, ...]


class Waitlist(Generic[Item]):
    """At most `items_max` parked items; everything is handed out in a fixed order.

    An offset is reached like a deadline is, so offsets are kept in `Timers` too.
    """

    __slots__ = ("_by_key", "_deadlines", "_items_max", "_next_ticket", "_offsets", "_parked")

    def __init__(self, items_max: int) -> None:
        self._items_max = items_max
        self._next_ticket = 0
        self._parked: dict[Ticket, _Parked[Item]] = {}
        self._by_key: dict[Hashable, dict[Ticket, None]] = {}
        self._offsets: Timers[Ticket] = Timers()
        self._deadlines: Timers[Ticket] = Timers()

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, item: Item, *, offset: int, deadline_ms: float) -> Ticket:
        """Keep `item` until `offset` is released or its deadline passes."""
        ticket = self._admit(item, (), deadline_ms)
        self._offsets.set(ticket, offset)
        return ticket

    def park_on(self, item: Item, keys: Iterable[Hashable], *, deadline_ms: float) -> Ticket:
        """Keep `item` until any one of `keys` is woken or its deadline passes."""
        watched = tuple(dict.fromkeys(keys))  # one named twice is watched once
        ticket = self._admit(item, watched, deadline_ms)
        for key in watched:
            self._by_key.setdefault(key, {})[ticket] = None
        return ticket

    def release(self, up_to_offset: int) -> list[Item]:
        """What waited for offsets up to and including this one, by offset, then by arrival."""
        return [self._take(ticket) for ticket in self._offsets.expired(up_to_offset)]

    def wake(self, key: Hashable) -> list[Item]:
        """What waited for `key`, by arrival."""
        return [self._take(ticket) for ticket in tuple(self._by_key.get(key, ()))]

    def expire(self, now_ms: float) -> list[Item]:
        """What has waited for too long, by deadline, then by arrival."""
        return [self._take(ticket) for ticket in self._deadlines.expired(now_ms)]

    def drop(self, ticket: Ticket) -> Item | None:
        """Take one item back, or None if it was handed out before: its caller is gone."""
        return self._take(ticket) if ticket in self._parked else None

    def drain(self) -> list[Item]:
        """Everything, by arrival: nobody will come for it any more."""
        return [self._take(ticket) for ticket in tuple(self._parked)]

    def next_deadline(self) -> float | None:
        """When to call `expire` next, or None when nothing is parked."""
        return self._deadlines.next_deadline()

    def _admit(self, item: Item, keys: tuple[Hashable, ...], deadline_ms: float) -> Ticket:
        if len(self._parked) >= self._items_max:
            raise Overloaded(f"{len(self._parked)} requests are waiting already")
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        self._parked[ticket] = _Parked(item, keys)
        self._deadlines.set(ticket, deadline_ms)
        return ticket

    def _take(self, ticket: Ticket) -> Item:
        parked = self._parked.pop(ticket)
        self._offsets.cancel(ticket)
        self._deadlines.cancel(ticket)
        for key in parked.keys:
            watching = self._by_key[key]
            del watching[ticket]
            if not watching:
                del self._by_key[key]
        return parked.item
