"""What the group has to say to the application, in between polls.

An `Assign` of the session becomes a `Begin` once it is known where to begin; finding that out goes
on in the background, so partitions that stay are read meanwhile. What is taken away before it has
begun, the application never hears of. Filled in the loop, emptied by whoever polls.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from suiro.membership import Assign, Fail, Lost, Revoke
from suiro.model.error_base import SuiroError
from suiro.model.error_registry import error_from_wire
from suiro.retry import Backoff

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from random import Random

    from suiro.aio.group_offsets import OffsetAndMetadata
    from suiro.aio.tasks import TaskScope
    from suiro.membership import Partitions
    from suiro.model.ids import TopicPartition

    Offsets = Mapping[TopicPartition, OffsetAndMetadata]
    SessionEvent = Assign | Revoke | Lost | Fail

log = logging.getLogger("suiro.client")


class Begin(NamedTuple):
    """These are the member's from now on, and this is where to begin, as far as it is known."""

    partitions: Partitions
    offsets: Offsets


class GroupInbox:
    """`find` says where to begin; `give_up` is told what goes before it has begun."""

    def __init__(
        self,
        find: Callable[[Partitions], Awaitable[Offsets]],
        give_up: Callable[[Partitions], None],
        wake: Callable[[], None],
        scope: TaskScope,
        rng: Random,
    ) -> None:
        self._find = find
        self._give_up = give_up
        self._wake = wake
        self._scope = scope
        self._rng = rng
        self._events: deque[Begin | Revoke | Lost | SuiroError] = deque()
        self._starting: dict[TopicPartition, int] = {}
        """What is being found out, and by which of the searches."""
        self._searches = itertools.count(1)

    def __bool__(self) -> bool:
        return bool(self._events)

    def next(self) -> Begin | Revoke | Lost | None:
        """What to deal with first; raises what the application has to know."""
        if not self._events:
            return None
        event = self._events.popleft()
        if isinstance(event, SuiroError):
            raise event
        return event

    def add(self, event: SessionEvent) -> None:
        match event:
            case Assign(partitions):
                search = next(self._searches)
                self._starting |= dict.fromkeys(partitions, search)
                self._scope.start(self._begin(search), "begin")
            case Revoke(partitions):
                unborn = self._drop(partitions)
                told = tuple(p for p in partitions if p not in unborn)
                if told:
                    self._put(Revoke(told))
                if unborn:
                    self._give_up(unborn)
            case Lost(partitions):
                unborn = self._drop(partitions)
                told = tuple(p for p in partitions if p not in unborn)
                if told:
                    self._put(Lost(told))
            case Fail(code, message):
                self._put(error_from_wire(code, message, {}))

    def _drop(self, partitions: Partitions) -> Partitions:
        """Those that have not begun; they never will."""
        unborn = tuple(p for p in partitions if p in self._starting)
        for partition in unborn:
            del self._starting[partition]
        return unborn

    def _put(self, event: Begin | Revoke | Lost | SuiroError) -> None:
        self._events.append(event)
        self._wake()

    async def _begin(self, search: int) -> None:
        """Until it is known where to begin, or nothing is left to begin with."""
        backoff = Backoff(self._rng)
        while partitions := self._sought_by(search):
            try:
                found = await self._find(partitions)
            except SuiroError as error:
                log.warning("where to begin in %s: %s", ", ".join(map(str, partitions)), error)
                if not error.retriable:
                    self._put(error)
                    return
                await asyncio.sleep(backoff.next_s())
                continue
            left = self._drop(self._sought_by(search))
            if left:
                self._put(Begin(left, {p: at for p, at in found.items() if p in left}))

    def _sought_by(self, search: int) -> Partitions:
        return tuple(p for p, number in self._starting.items() if number == search)
