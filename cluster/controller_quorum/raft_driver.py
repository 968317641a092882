"""Carries out what the Raft core decides: one task, one Ready at a time, in the order it names.

Facts (messages, ticks, proposals) go into the core whenever they come; all that came since the last
Ready becomes one append and one synced write. While that write is under way, the next one gathers.

To its users it is a `ReplicatedLog`: position p is the index p - 1 of the entry before it. Appends
are accepted only while the log is *open*: this node leads, and its machine had seen everything when
it was opened. When the leadership is lost the log closes at once, and all who wait are told.

Invariant: an entry that `committed` has spoken of is on the disks of a majority. A write that fails
raises, and the process must end: the core has acted on it already.
"""

from __future__ import annotations

import asyncio
from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol

from suiro.model.errors import NotController

from cluster.controller_quorum.entry_codec import pack
from cluster.controller_quorum.raft_state import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import NodeId

    from cluster.controller_quorum.conf import ConfChange, Member
    from cluster.controller_quorum.messages import Entry, HardState, Message, Ready, Snapshot
    from cluster.controller_quorum.quorum_metrics import QuorumMetrics
    from cluster.controller_quorum.raft import Raft
    from cluster.controller_quorum.raft_store import RaftStore
    from cluster.host.env import Env

FEED_BYTES_MAX: Final = 1 << 20
"""Entries that are read at once."""

TURNS_BEFORE_WRITE: Final = 4
"""Of the loop, from a commit to its answers on the wire: the host, the callers, the stream."""


class Replica(Protocol):
    """Who gets what the quorum agrees on. The driver's task alone calls it, one call at a time,
    but for `on_deposed`, which comes at once from wherever the leadership was lost.
    """

    async def on_snapshot(self, snapshot: Snapshot) -> None:
        """Begin anew: everything before is contained in it."""

    async def on_committed(self, entries: Sequence[Entry]) -> None:
        """The next entries, all of them agreed on for ever."""

    async def catch_up(self) -> None:
        """Be ready to serve: the log may be opened after this."""

    def on_deposed(self, error: SuiroError) -> None:
        """The log has been closed; what was appended and is not committed may be lost."""


class RaftDriver:
    """Owns the core and its store."""

    def __init__(
        self,
        raft: Raft,
        store: RaftStore,
        env: Env,
        send: Callable[[Sequence[Message]], None],
        metrics: QuorumMetrics,
    ) -> None:
        self.raft = raft
        self._store = store
        self._env = env
        self._send = send
        self._metrics = metrics
        self._replica: Replica | None = None
        self._wake = asyncio.Event()
        self._delivered = raft.log.applied
        """The last entry that the replica has been handed."""
        self._is_open = False
        self._led_term: int | None = None
        self._unsaved: HardState | None = None
        """A commit index that will be stored with the next thing that must be: losing it costs
        nothing, writing it alone would cost a write per commit.
        """
        self._positions: list[tuple[int, int, asyncio.Future[None]]] = []
        """A heap: who waits for which position; the number keeps futures from being compared."""
        self._waits = 0
        self._elected: list[asyncio.Future[None]] = []
        self._readers: list[asyncio.Future[None]] = []
        self._round: list[asyncio.Future[None]] = []
        self._rounds = 0
        self._compactions: deque[tuple[Snapshot, asyncio.Future[None]]] = deque()

    # -- facts ------------------------------------------------------------------------------------

    def step(self, message: Message) -> None:
        self.raft.step(message)
        self._on_fact()

    async def tick_forever(self, tick_s: float) -> None:
        """Time passes for the core as the loop sees it: a process that was stopped does not count
        the time that it missed, but asks the others first.
        """
        while True:
            await asyncio.sleep(tick_s)
            self.raft.tick()
            self._on_fact()

    def propose_conf(self, change: ConfChange) -> int:
        """The position after the change; raises as the core does."""
        index = self.raft.propose_conf(change)
        self._on_fact()
        return index + 1

    def transfer(self, to: Member) -> None:
        self.raft.transfer(to)
        self._on_fact()

    def _on_fact(self) -> None:
        self._observe()
        if not self._wake.is_set() and self.raft.has_ready():
            self._wake.set()

    # -- the log, as the machine's host sees it ---------------------------------------------------

    @property
    def leader(self) -> NodeId | None:
        return None if self.raft.leader is None else self.raft.leader.node

    @property
    def end(self) -> int:
        """The position after everything that has been handed to the replica."""
        return self._delivered + 1

    def append(self, records: Sequence[bytes]) -> int:
        if not self._is_open:
            raise NotController(self.leader)
        index = self.raft.propose((pack(records),))
        self._metrics.on_proposed(index)
        self._wake.set()
        return index + 1

    async def committed(self, position: int) -> int:
        if not self._is_open:
            raise NotController(self.leader)
        if self.end < position:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waits += 1
            heappush(self._positions, (position, self._waits, waiter))
            await waiter
        return self.end

    async def confirm(self) -> None:
        """Return when it is known that this node led the quorum after the call was made: a majority
        has answered a heartbeat that was sent after it. All calls between two rounds share one.
        """
        if self._led_term is None:
            raise NotController(self.leader)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._readers.append(waiter)
        self._wake.set()
        await waiter

    # -- opening and closing ----------------------------------------------------------------------

    async def elected(self) -> None:
        """Wait until the log can be opened; try `open` at once then, as it may not last."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._elected.append(waiter)
        self._wake.set()
        await waiter

    def open(self) -> int | None:
        """Accept appends from now on; the position of the first one, or None if not now."""
        assert not self._is_open
        if not self._is_settled():
            return None
        self._is_open = True
        return self.end

    def close(self) -> None:
        """Accept no more appends; fine if it is closed."""
        self._is_open = False

    def _is_settled(self) -> bool:
        """Leading, with everything in the log agreed on, applied, and at least one of it our own:
        then what the machine has seen is exactly the log.
        """
        raft = self.raft
        return (
            raft.role is Role.LEADER
            and raft.transfer_target is None
            and raft.has_committed_in_term()
            and raft.log.applied == raft.log.last
        )

    def _observe(self) -> None:
        """Look at the core after each fact: of a lost leadership nobody may hear too late."""
        raft = self.raft
        self._metrics.on_leader(raft.leader, raft.term)
        leads = raft.role is Role.LEADER
        if self._led_term is not None and not (leads and raft.term == self._led_term):
            self._led_term = None
            self._depose()
        if leads and self._led_term is None:
            self._led_term = raft.term

    def _depose(self) -> None:
        error = NotController(self.leader)
        was_open, self._is_open = self._is_open, False
        waiting = [waiter for _, _, waiter in self._positions] + self._readers + self._round
        self._positions.clear()
        self._readers, self._round = [], []
        self._metrics.on_deposed()
        for waiter in waiting:
            if not waiter.done():
                waiter.set_exception(NotController(self.leader))
        if was_open and self._replica is not None:
            self._replica.on_deposed(error)

    # -- reading ----------------------------------------------------------------------------------

    def entries(self, first: int) -> tuple[Entry, ...] | None:
        """Entries from `first` on that the replica has been handed, some of them, in order; None if
        they are no longer kept.
        """
        log = self.raft.log
        if first <= log.base:
            return None
        if first > self._delivered:
            return ()
        found = log.slice(first, FEED_BYTES_MAX)
        return found[: self._delivered - first + 1]

    # -- the task ---------------------------------------------------------------------------------

    async def run(self, replica: Replica) -> None:
        """Until cancelled, or until a write fails."""
        self._replica = replica
        if self.raft.conf.voters == (self.raft.me,):
            self.raft.campaign()  # nobody else could lead: no need to wait for their silence
        while True:
            self._start_round()
            if self.raft.has_ready() and not self._can_gather():
                await asyncio.sleep(0)  # whatever else has arrived by now joins this Ready
                await self._carry_out(self.raft.take_ready())
            elif self._compactions:
                await self._compact()
            elif self._elected and self._is_settled() and not self._is_open:
                await replica.catch_up()
                self._announce()
            else:
                self._wake.clear()
                await self._wake.wait()

    def _can_gather(self) -> bool:
        """Whether there is nothing to do but to store entries that nobody can be sent yet. Then it
        is better to wait for an acknowledgement: they leave with it, more of them together, and are
        stored here while they are stored there. If none comes, the next tick ends the waiting.
        """
        raft, log = self.raft, self.raft.log
        return (
            raft.role is Role.LEADER
            and bool(raft.progress)
            and not (raft.outbox or raft.reads_ready or raft.reads.needs_round())
            and log.handed == log.commit
            and raft.saved.term == raft.term
            and not any(follower.can_send() for follower in raft.progress.values())
        )

    async def _carry_out(self, ready: Ready) -> None:
        """What is committed is on the disks of a majority, so those who wait for it at the leader
        need not wait for its own write as well. At a follower nobody waits for what it applies, but
        the leader for its acknowledgement. Only a snapshot has to be stored before it is used.
        """
        delivers_first = self._led_term is not None and ready.snapshot is None
        self._send(ready.messages_early)
        if delivers_first:
            await self._deliver(ready)
        await self._store_ready(ready)
        self._send(ready.messages_late)
        if not delivers_first:
            await asyncio.sleep(0)  # the links send now
            await self._restore(ready.snapshot)
            await self._deliver(ready)
        self.raft.advance(ready)
        self._observe()

    async def _restore(self, snapshot: Snapshot | None) -> None:
        if snapshot is None:
            return
        assert self._replica is not None
        await self._replica.on_snapshot(snapshot)
        self._delivered = snapshot.index

    async def _deliver(self, ready: Ready) -> None:
        assert self._replica is not None
        if ready.committed:
            await self._replica.on_committed(ready.committed)
            self._delivered = ready.committed[-1].index
            self._release()
        for read in ready.reads:
            self._end_round(read.context)

    async def _store_ready(self, ready: Ready) -> None:
        if ready.hard_state is not None:
            self._unsaved = ready.hard_state
        if not ready.must_sync:
            return
        if self._led_term is not None:
            await self._let_leave()
        hard_state, self._unsaved = self._unsaved, None
        write = self._store.write
        started_ms = self._env.clock.monotonic_ms()
        await self._env.store_offload.run(
            lambda: write(ready.snapshot, ready.entries, hard_state, sync=True)
        )
        self._metrics.on_stored(self._env.clock.monotonic_ms() - started_ms)

    async def _let_leave(self) -> None:
        """The write stops the loop (see `Inline`), so what has just become due goes out before it:
        the followers store an append while it is stored here, and clients do not wait for a write
        that is none of theirs.
        """
        for _ in range(TURNS_BEFORE_WRITE):
            await asyncio.sleep(0)

    def _release(self) -> None:
        """Tell those whose position is committed and applied."""
        end = self.end
        self._metrics.on_committed(end - 1)
        while self._positions and self._positions[0][0] <= end:
            waiter = heappop(self._positions)[2]
            if not waiter.done():
                waiter.set_result(None)

    def _announce(self) -> None:
        if self._is_settled():
            waiting, self._elected = self._elected, []
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    def _start_round(self) -> None:
        """One round of reads at a time, so that heartbeats do not multiply with the readers."""
        if self._readers and not self._round and self._led_term is not None:
            self._round, self._readers = self._readers, []
            self._rounds += 1
            self.raft.read_index(self._rounds.to_bytes(8, "big"))

    def _end_round(self, context: bytes) -> None:
        """A round of an earlier leadership has nobody waiting for it any more."""
        if context != self._rounds.to_bytes(8, "big"):
            return
        confirmed, self._round = self._round, []
        for waiter in confirmed:
            if not waiter.done():
                waiter.set_result(None)

    # -- compaction -------------------------------------------------------------------------------

    async def compact(self, snapshot: Snapshot) -> None:
        """The machine's state at an applied index, staged in the store: forget the log before it.

        Of the snapshot only index and data count; term and configuration are the log's.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._compactions.append((snapshot, waiter))
        self._wake.set()
        await waiter

    async def _compact(self) -> None:
        wanted, waiter = self._compactions.popleft()
        if wanted.index > self.raft.log.snapshot.index:
            snapshot = self.raft.compact(wanted.index, wanted.data)
            await self._env.offload.run(lambda: self._store.compact(snapshot))
        if not waiter.done():
            waiter.set_result(None)
