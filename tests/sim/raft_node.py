"""One member of a simulated quorum: the core, its disk, its machine, and a driver that carries out
every Ready in the order it names.

The driver is the model of the real one: send early, write (which may take time and may be cut short
by a crash), send late, apply, advance. The core goes on taking facts while a write is under way.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Protocol

from cluster.controller_quorum.messages import EntryKind, Snapshot, Stored
from cluster.controller_quorum.raft import Raft
from tests.sim.raft_disk import Disk

if TYPE_CHECKING:
    from random import Random

    from cluster.controller_quorum.conf import Member
    from cluster.controller_quorum.messages import Entry, Message, Ready
    from cluster.controller_quorum.raft_state import RaftConfig
    from tests.sim.raft_checker import RaftChecker, Watched

_STATE = struct.Struct(">QQ")


class Machine:
    """A state that is a hash of everything applied: equal hashes mean equal histories."""

    __slots__ = ("applied", "state_hash")

    def __init__(self, snapshot: Snapshot) -> None:
        self.applied = snapshot.index
        self.state_hash = 0
        if snapshot.data:
            self.load(snapshot)

    def apply(self, entry: Entry) -> None:
        assert entry.index == self.applied + 1, f"applied {self.applied}, then {entry.index}"
        self.applied = entry.index
        self.state_hash = zlib.crc32(entry.data, self.state_hash ^ entry.kind)

    def dump(self) -> bytes:
        return _STATE.pack(self.applied, self.state_hash) * 4  # some size, to travel in chunks

    def load(self, snapshot: Snapshot) -> None:
        self.applied, self.state_hash = _STATE.unpack_from(snapshot.data)
        assert self.applied == snapshot.index


class Shell(Protocol):
    """What surrounds a node: the network, and the time that a write takes."""

    def send(self, message: Message) -> None: ...

    def write_soon(self, node: Node, ready: Ready) -> bool:
        """Call `node.finish(ready)` later and return True, or return False: write at once."""


class Node:
    """A process that can crash and start again, on a directory that can be wiped."""

    __slots__ = (
        "checker",
        "config",
        "disk",
        "is_up",
        "life",
        "machine",
        "member",
        "raft",
        "random",
        "shell",
        "waiting",
        "watched",
        "writing",
    )

    raft: Raft
    machine: Machine
    watched: Watched

    def __init__(
        self,
        member: Member,
        stored: Stored,
        config: RaftConfig,
        random: Random,
        checker: RaftChecker,
        shell: Shell,
    ) -> None:
        self.member = member
        self.config = config
        self.random = random
        self.checker = checker
        self.shell = shell
        self.disk = Disk(stored)
        self.is_up = False
        self.life = 0
        """Counts the starts, so that a timer of an earlier life is known as such."""
        self.writing: Ready | None = None
        self.waiting: dict[int, int] = {}
        """Index and term of what a client has proposed here and waits for."""

    def start(self) -> None:
        assert not self.is_up
        stored = self.disk.stored()
        self.raft = Raft(self.member, self.config, stored, self.random)
        self.machine = Machine(stored.snapshot)
        self.watched = self.checker.on_start(self.raft)
        self.is_up = True
        self.life += 1
        self.run()

    def crash(self) -> None:
        """Memory is gone; a write under way happened or did not."""
        assert self.is_up
        if self.writing is not None and self.random.randrange(2):
            self.disk.write(self.writing)
        self.disk.crash(self.random)
        self.is_up = False
        self.writing = None
        self.waiting = {}

    def run(self) -> None:
        """Carry out Readys until there is none, or until a write takes its time."""
        raft = self.raft
        self.checker.on_event(self.watched)
        while self.writing is None and raft.has_ready():
            ready = raft.take_ready()
            if ready.entries:
                self.checker.on_entries(raft, ready.entries)
            if ready.messages_early:
                self.checker.on_leading(self.watched)
                self.send_all(ready.messages_early)
            if ready.must_sync and self.shell.write_soon(self, ready):
                self.writing = ready
            else:
                self._carry_out(ready)

    def finish(self, ready: Ready) -> None:
        """The write that took its time is done."""
        assert self.writing is ready
        self.writing = None
        self._carry_out(ready)
        self.run()

    def _carry_out(self, ready: Ready) -> None:
        if ready.entries or ready.hard_state is not None or ready.snapshot is not None:
            self.disk.write(ready)
            self.checker.on_stored(self.watched, ready)
        self.checker.on_leading(self.watched)
        if ready.messages_late:
            self.send_all(ready.messages_late)
        if ready.snapshot is not None:
            self.machine.load(ready.snapshot)
            self.checker.on_restored(self.member, ready.snapshot, self.machine.state_hash)
        for entry in ready.committed:
            self._apply(entry)
        for read in ready.reads:
            self.checker.on_read_allowed(read.context, read.index)
        self.raft.advance(ready)
        self.checker.on_event(self.watched)

    def _apply(self, entry: Entry) -> None:
        self.machine.apply(entry)
        self.checker.on_applied(self.member, entry, self.machine.state_hash)
        term = self.waiting.pop(entry.index, None)
        if term == entry.term and entry.kind is EntryKind.NORMAL:
            self.checker.on_acknowledged(entry.index)

    def send_all(self, messages: tuple[Message, ...]) -> None:
        for message in messages:
            self.checker.on_sent(message)
            self.shell.send(message)

    # -- facts ------------------------------------------------------------------------------------

    def tick(self) -> None:
        self.raft.tick()
        if self.raft.has_ready():
            self.run()

    def step(self, message: Message) -> None:
        self.raft.step(message)
        self.run()

    def propose(self, datas: list[bytes]) -> None:
        first = self.raft.propose(datas)
        for index in range(first, first + len(datas)):
            self.waiting[index] = self.raft.term
        self.run()

    def read(self, context: bytes) -> None:
        self.checker.on_read_asked(context)
        self.raft.read_index(context)
        self.run()

    def compact(self) -> None:
        """Snapshot the machine; the real driver does this between two Readys, and so does this."""
        if self.writing is None and self.machine.applied > self.raft.log.snapshot.index:
            self.disk.compact(self.raft.compact(self.machine.applied, self.machine.dump()))
