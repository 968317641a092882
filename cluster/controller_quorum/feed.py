"""The metadata for everyone else: a snapshot if need be, then every committed entry.

It is read from the log that the quorum keeps in memory anyway, and never beyond what is committed;
so any controller can serve it. Nothing is queued for a follower: each has a position, and one that
is so slow that the log has been shortened beyond it is cut off, and starts from a snapshot when it
comes back. Followers at one position share the message that they are sent.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from suiro._proto.controller_pb2 import MetadataFeed
from suiro.model.errors import Overloaded, Unavailable

from cluster.controller_quorum.entry_codec import unpack
from cluster.controller_quorum.messages import EntryKind

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError
    from suiro.transport.api import Stream

    from cluster.controller_quorum.messages import Snapshot
    from cluster.controller_quorum.raft_driver import RaftDriver

SNAPSHOT_MESSAGE_BYTES: Final = 1 << 20
SHARED_MESSAGES_MAX: Final = 64
FOLLOWERS_MAX: Final = 1_000


class Feed:
    """All followers of one controller."""

    def __init__(self, driver: RaftDriver) -> None:
        self._driver = driver
        self._moved = asyncio.Event()
        self._followers = 0
        self._interruptions = 0
        self._reason: SuiroError = Unavailable("interrupted")
        self._shared: OrderedDict[int, MetadataFeed] = OrderedDict()
        """The last messages, by the index that they begin after."""
        self._snapshot: tuple[int, list[MetadataFeed]] = (-1, [])

    def on_moved(self) -> None:
        """Something more is committed. Everyone who waits holds the event they wait for."""
        self._moved.set()
        self._moved = asyncio.Event()

    def interrupt(self, error: SuiroError) -> None:
        """End everyone's feed: they are to ask another controller."""
        self._interruptions += 1
        self._reason = error
        self.on_moved()

    async def follow(self, stream: Stream[MetadataFeed, object], from_index: int) -> None:
        """Serve one follower that has everything up to `from_index`, until it goes away."""
        if self._followers >= FOLLOWERS_MAX:
            raise Overloaded(f"{FOLLOWERS_MAX} nodes follow this controller already")
        self._followers += 1
        try:
            await self._follow(stream, from_index)
        finally:
            self._followers -= 1

    async def _follow(self, stream: Stream[MetadataFeed, object], index: int) -> None:
        has_begun = False
        interruptions = self._interruptions
        while True:
            moved = self._moved
            if self._interruptions != interruptions:
                raise self._reason
            message = self._after(index)
            if message is not None:
                await stream.send(message)
                index = message.index
            elif self._driver.entries(index + 1) is not None:
                await moved.wait()
            elif has_begun:
                raise Unavailable("too slow: the log no longer has what comes next; start again")
            else:
                index = await self._send_snapshot(stream)
            has_begun = True

    def _after(self, index: int) -> MetadataFeed | None:
        """The next message after `index`; None if there is nothing yet or no longer."""
        shared = self._shared.get(index)
        if shared is not None:
            return shared
        entries = self._driver.entries(index + 1)
        if not entries:
            return None
        records = [
            record
            for entry in entries
            if entry.kind is EntryKind.NORMAL
            for record in unpack(entry.data)
        ]
        message = MetadataFeed(records=records, index=entries[-1].index, term=entries[-1].term)
        self._shared[index] = message
        if len(self._shared) > SHARED_MESSAGES_MAX:
            self._shared.popitem(last=False)
        return message

    async def _send_snapshot(self, stream: Stream[MetadataFeed, object]) -> int:
        snapshot = self._driver.raft.log.snapshot
        if self._snapshot[0] != snapshot.index:
            self._snapshot = (snapshot.index, _snapshot_messages(snapshot))
        index, messages = self._snapshot
        for message in messages:
            await stream.send(message)
        return index


def _snapshot_messages(snapshot: Snapshot) -> list[MetadataFeed]:
    """Only the last one has the index: until it is there, the snapshot does not count."""
    messages = [MetadataFeed(snapshot=True)]
    size = 0
    for record in unpack(snapshot.data):
        if size > SNAPSHOT_MESSAGE_BYTES:
            messages.append(MetadataFeed())
            size = 0
        messages[-1].records.append(record)
        size += len(record)
    messages[-1].index, messages[-1].term = snapshot.index, snapshot.term
    return messages
