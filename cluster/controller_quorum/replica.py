"""The metadata machine at one controller, kept at what the quorum has agreed on.

A follower's machine applies every committed entry. While the log is open the host applies decisions
before they are committed, so the committed entries are not applied again; and when that ends, the
machine may know of decisions that were lost, so it is thrown away and built anew from the snapshot
and the log. Snapshots are taken here too, at the leader and at the followers alike.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from suiro.model.codec import decode, encode
from suiro.model.errors import NotController
from suiro.model.image import ClusterImage

from cluster.controller_quorum.entry_codec import pack, unpack
from cluster.controller_quorum.messages import EntryKind, Snapshot
from cluster.controller_quorum.metadata import MetadataMachine
from cluster.controller_quorum.quorum_events import tell_committed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.error_base import SuiroError
    from suiro.model.records import MetadataRecord

    from cluster.controller_quorum.messages import Entry
    from cluster.controller_quorum.quorum_metrics import QuorumMetrics
    from cluster.controller_quorum.raft_driver import RaftDriver
    from cluster.controller_quorum.raft_store import RaftStore
    from cluster.host.env import Env


class MetadataReplica:
    """Implements the driver's `Replica`."""

    def __init__(
        self,
        driver: RaftDriver,
        store: RaftStore,
        env: Env,
        metrics: QuorumMetrics,
        on_moved: Callable[[], None],
    ) -> None:
        self.machine = MetadataMachine()
        self.on_lost: Callable[[SuiroError], None] = _nobody_serves
        self._driver = driver
        self._store = store
        self._env = env
        self._metrics = metrics
        self._on_moved = on_moved
        self._applied = 0
        """The last entry that the machine has seen, while nobody serves it."""
        self._is_stale = True
        """The machine is to be built anew before it is looked at."""
        self._is_serving = False
        self._entries_since = 0
        self._bytes_since = 0
        self._grown = asyncio.Event()

    # -- called by the driver ---------------------------------------------------------------------

    async def on_snapshot(self, snapshot: Snapshot) -> None:
        assert not self._is_serving
        await self._build(snapshot, ())
        self._entries_since = self._bytes_since = 0

    async def on_committed(self, entries: Sequence[Entry]) -> None:
        if not self._is_serving:
            if self._is_stale:
                await self._build_up_to(entries[0].index - 1)
            if not self._is_stale:
                self._apply(entries)
        if self._env.events.on:
            tell_committed(self._env.events, entries)
        self._entries_since += len(entries)
        self._bytes_since += sum(len(entry.data) for entry in entries)
        self._grown.set()
        self._on_moved()

    async def catch_up(self) -> None:
        if self._is_stale:
            await self._build_up_to(self._driver.end - 1)

    def on_deposed(self, error: SuiroError) -> None:
        self.end_serving()
        self.on_lost(error)

    # -- serving ----------------------------------------------------------------------------------

    def begin_serving(self) -> MetadataMachine:
        """The host has the machine from here on."""
        assert not self._is_stale
        assert self._applied == self._driver.end - 1
        self._is_serving = True
        return self.machine

    def end_serving(self) -> None:
        """The machine may know of more than the log; fine if nobody serves it any more."""
        if self._is_serving:
            self._is_serving = False
            self._is_stale = True

    @property
    def is_current(self) -> bool:
        """Whether the machine is what the quorum agreed on up to `applied`, and nothing more."""
        return not self._is_stale and not self._is_serving

    @property
    def applied(self) -> int:
        return self._applied

    def _apply(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            assert entry.index == self._applied + 1, f"{entry.index} after {self._applied}"
            if entry.kind is EntryKind.NORMAL:
                for record in unpack(entry.data):
                    self.machine.apply(decode(record))
            self._applied = entry.index

    async def _build_up_to(self, index: int) -> None:
        """From the snapshot and the log. If a newer snapshot has just arrived, its turn comes."""
        log = self._driver.raft.log
        snapshot = log.snapshot
        if snapshot.index > index:
            return
        entries: tuple[Entry, ...] = ()
        if snapshot.index < index:
            wanted = log.slice(snapshot.index + 1, bytes_max=1 << 62)
            entries = wanted[: index - snapshot.index]
        await self._build(snapshot, entries)

    async def _build(self, snapshot: Snapshot, entries: Sequence[Entry]) -> None:
        """Off the loop: a large cluster has a hundred thousand records."""
        self.machine = await self._env.offload.run(lambda: _machine_of(snapshot.data))
        self._applied = snapshot.index
        self._is_stale = False
        self._apply(entries)

    # -- snapshots --------------------------------------------------------------------------------

    async def snapshot_forever(self, entries_max: int, bytes_max: int) -> None:
        """Shorten the log whenever it has grown by so many entries or bytes."""
        while True:
            await self._grown.wait()
            self._grown.clear()
            if self._entries_since < entries_max and self._bytes_since < bytes_max:
                continue
            try:
                await self._take_snapshot()
            except NotController:
                continue  # it may hold what was lost with the leadership: take another

    async def _take_snapshot(self) -> None:
        index, records = self._captured()
        if index <= self._driver.raft.log.snapshot.index:
            return
        if self._is_serving:
            await self._driver.committed(index + 1)
        self._entries_since = self._bytes_since = 0
        data = await self._env.offload.run(lambda: pack(map(encode, records)))
        staged = Snapshot(index, data=data)
        await self._env.offload.run(lambda: self._store.stage(staged))
        await self._driver.compact(staged)
        self._metrics.on_snapshot()

    def _captured(self) -> tuple[int, list[MetadataRecord]]:
        """The machine's records now, and the last entry that it has seen. Records are immutable, so
        they can be encoded while the machine goes on.
        """
        if self._is_stale:
            return 0, []
        index = self._driver.raft.log.last if self._is_serving else self._applied
        return index, list(self.machine.image.records())


def _machine_of(snapshot: bytes) -> MetadataMachine:
    return MetadataMachine(ClusterImage(decode(record) for record in unpack(snapshot)))


def _nobody_serves(_error: SuiroError) -> None:
    """Until the controller does."""
