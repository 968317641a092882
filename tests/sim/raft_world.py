"""The world of the quorum's micro-simulation: a heap of callbacks, a network, members, clients.

Nothing here depends on wall time, on the address of an object or on the order of a set: a seed is a
story that can be told again. The nemesis is in `raft_faults`; the command line in `raft_sim`.
"""

from __future__ import annotations

import struct
from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from suiro.model.errors import NotController, Overloaded
from suiro.model.ids import NodeId

from cluster.controller_quorum.conf import NOBODY, ConfState, DirectoryId, Member
from cluster.controller_quorum.messages import Message, MessageKind, Ready, Snapshot, Stored
from cluster.controller_quorum.raft_state import Role
from tests.sim.raft_checker import RaftChecker
from tests.sim.raft_node import Node
from tests.sim.raft_plan import TICK, Plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.sim.raft_disk import Disk

_NUMBER: Final = struct.Struct(">I")
SLOW_MAX: Final = 25 * TICK
"""A message that takes the long way arrives after several elections."""


class World:
    """One run of one plan."""

    def __init__(self, seed: int, plan: Plan, random: Random, *, verbose: bool = False) -> None:
        self.seed = seed
        self.plan = plan
        self.random = random
        self.now = 0
        self.events = 0
        self.trace = seed
        """A hash over every delivered message and fault: equal traces mean equal runs."""
        self.story: list[str] | None = [] if verbose else None
        self.counts: Counter[str] = Counter()
        self.is_calm = False
        self.cut: set[tuple[NodeId, NodeId]] = set()
        self.paused: dict[NodeId, int] = {}
        self.disks: dict[Member, Disk] = {}
        self.lost: set[Member] = set()
        """Members whose directory was wiped."""
        self.checker = RaftChecker(self.disks)
        self.nodes: dict[NodeId, Node] = {}
        self._heap: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._scheduled = 0
        self._proposed = 0
        self._directories = 0
        founders = ConfState(tuple(self.new_member(n + 1) for n in range(plan.voters)))
        for member in founders.voters:
            self.add_node(member, founders)
        self.at(plan.propose_gap, self._propose_often, None)
        self.at(plan.read_gap, self._read_often, None)

    # -- time -------------------------------------------------------------------------------------

    def at(self, delay: int, callback: Callable[[Any], None], argument: Any) -> None:
        self._scheduled += 1
        heappush(self._heap, (self.now + delay, self._scheduled, callback, argument))

    def run_until(self, end: int, is_done: Callable[[], bool] | None = None) -> bool:
        """Run to `end`, or until `is_done`, which is asked once per tick; says whether it was."""
        heap = self._heap
        ask_at = self.now
        while heap and heap[0][0] <= end:
            self.now, _, callback, argument = heappop(heap)
            self.events += 1
            callback(argument)
            if is_done is not None and self.now >= ask_at:
                if is_done():
                    return True
                ask_at = self.now + TICK
        self.now = end
        return is_done is not None and is_done()

    def tell(self, text: str) -> None:
        if self.story is not None:
            self.story.append(f"{self.now:6} {text}")

    def note(self, what: str, node: int = 0) -> None:
        """A fault or another turn of the story: counted, hashed, told."""
        self.counts[what] += 1
        self.trace = (self.trace * 1_000_003 + self.now * 31 + node + len(what)) & 0xFFFFFFFFFFFF
        if self.story is not None:
            self.tell(f"-- {what}" + (f" {node}" if node else ""))

    # -- members ----------------------------------------------------------------------------------

    def new_member(self, node: int) -> Member:
        self._directories += 1
        return Member(NodeId(node), DirectoryId(f"d{self._directories}"))

    def add_node(self, member: Member, conf: ConfState = NOBODY) -> Node:
        """Start a process on a freshly formatted directory: a founder's, or an empty one."""
        stored = Stored(snapshot=Snapshot(conf=conf))
        node = Node(member, stored, self.plan.config, self.random, self.checker, self)
        self.nodes[member.node] = node
        self.disks[member] = node.disk
        node.start()
        self._tick_later(node)
        return node

    def start(self, node: Node) -> None:
        if not node.is_up:
            self.note("start", node.member.node)
            node.start()
            self._tick_later(node)

    def crash(self, node: Node) -> None:
        if node.is_up:
            self.note("crash", node.member.node)
            node.crash()

    def running(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.is_up]

    def leader(self) -> Node | None:
        """The one that leads the highest term, as far as it knows."""
        leading = [node for node in self.running() if node.raft.role is Role.LEADER]
        return max(leading, key=lambda node: node.raft.term, default=None)

    def _tick_later(self, node: Node) -> None:
        self.at(self.random.randrange(1, TICK + 1), self._tick, (node, node.life))

    def _tick(self, who: tuple[Node, int]) -> None:
        node, life = who
        if not node.is_up or node.life != life or self.nodes[node.member.node] is not node:
            return
        if self.paused.get(node.member.node, 0) <= self.now:
            node.tick()
        period = TICK
        if self.plan.is_skewed and not self.is_calm:
            period = TICK // 2 + TICK * (node.member.node % 3) // 2
        self.at(period, self._tick, who)

    # -- the shell of a node ----------------------------------------------------------------------

    def send(self, message: Message) -> None:
        plan, chance = self.plan, self.random.random
        if self.cut and (message.source.node, message.target.node) in self.cut:
            self.counts["cut off"] += 1
            return
        if self.is_calm:
            self.at(1, self._deliver, message)
            return
        if plan.drop_rate and chance() < plan.drop_rate:
            self.counts["dropped"] += 1
            return
        if plan.duplicate_rate and chance() < plan.duplicate_rate:
            self.counts["duplicated"] += 1
            self.at(1 + int(chance() * 5 * TICK), self._deliver, message)
        if plan.slow_rate and chance() < plan.slow_rate:
            self.counts["slow"] += 1
            self.at(1 + int(chance() * SLOW_MAX), self._deliver, message)
        else:
            self.at(1 + int(chance() * plan.delay_max), self._deliver, message)

    def write_soon(self, node: Node, ready: Ready) -> bool:
        longest = self.plan.write_max
        if not longest:
            return False
        self.at(1 + int(self.random.random() * longest), self._written, (node, node.life, ready))
        return True

    def _written(self, write: tuple[Node, int, Ready]) -> None:
        node, life, ready = write
        if node.is_up and node.life == life:
            node.finish(ready)

    def _deliver(self, message: Message) -> None:
        node = self.nodes.get(message.target.node)
        if node is None or not node.is_up:
            return
        if self.paused:
            wakes = self.paused.get(message.target.node, 0)
            if wakes > self.now:
                self.at(wakes - self.now, self._deliver, message)
                return
        self.trace = (
            self.trace * 1_000_003
            + (message.kind << 24)
            + (message.source.node << 20)
            + (message.target.node << 16)
            + (message.term << 8)
            + message.index
            + self.now
        ) & 0xFFFFFFFFFFFF
        if self.story is not None:
            self.tell(describe(message))
        node.step(message)

    # -- clients ----------------------------------------------------------------------------------

    def propose(self, node: Node, count: int) -> bool:
        """A client's changes, as one proposal; False if the member does not take them."""
        datas = [_NUMBER.pack(self._proposed + n) for n in range(1, count + 1)]
        try:
            node.propose(datas)
        except (NotController, Overloaded):
            return False
        self._proposed += count
        self.counts["proposed"] += count
        return True

    def read(self, node: Node) -> None:
        self.counts["reads asked"] += 1
        try:
            node.read(b"read %d" % self.counts["reads asked"])
        except (NotController, Overloaded):
            self.counts["reads refused"] += 1

    def _propose_often(self, _: None) -> None:
        """Clients try whoever they believe to lead; sometimes that is a leader of the past."""
        leading = [node for node in self.running() if node.raft.role is Role.LEADER]
        if leading:
            self.propose(self.random.choice(leading), self.random.choice((1, 1, 1, 4)))
        if not self.is_calm:
            self.at(
                1 + int(self.random.random() * 2 * self.plan.propose_gap), self._propose_often, None
            )

    def _read_often(self, _: None) -> None:
        running = self.running()
        if running:
            self.read(self.random.choice(running))
        if not self.is_calm:
            self.at(1 + int(self.random.random() * 2 * self.plan.read_gap), self._read_often, None)


def describe(message: Message) -> str:
    """One line for people; fields at rest are left out."""
    kind = message.kind
    parts = [f"{message.source} -> {message.target} {kind.name.lower()} term={message.term}"]
    if kind in (MessageKind.APPEND, MessageKind.VOTE, MessageKind.PRE_VOTE):
        parts.append(f"at={message.index}.{message.log_term}")
    elif message.index:
        parts.append(f"index={message.index}")
    if message.reject:
        parts.append(
            "refused" + (f" hint={message.hint}.{message.log_term}" if message.index else "")
        )
    if kind is MessageKind.SNAPSHOT_REPLY:
        parts.append(f"held={message.hint}")
    if message.entries:
        entries = ",".join(f"{e.index}.{e.term}" for e in message.entries)
        parts.append(f"entries={entries}")
    if message.commit:
        parts.append(f"commit={message.commit}")
    if message.read_sequence:
        parts.append(f"round={message.read_sequence}")
    if message.transfer:
        parts.append("transfer")
    if message.snapshot is not None:
        chunk = message.snapshot
        parts.append(f"snapshot={chunk.index}.{chunk.term} bytes={chunk.offset}+{len(chunk.data)}")
        parts.append(f"of {chunk.bytes_total}")
    return " ".join(parts)
