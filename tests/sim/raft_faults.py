"""The nemesis: what goes wrong in a simulated quorum, one function per fault.

A fault that would take more than the quorum can bear (a second lost disk) is not done; everything
else may happen at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from suiro.model.errors import InvalidRequest, MembershipChangePending, NotController
from suiro.model.ids import NodeId

from cluster.controller_quorum.conf import ConfChange, ConfChangeKind, Member
from cluster.controller_quorum.raft_state import Role
from tests.sim.raft_plan import FAULTS, TICK

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.raft_node import Node
    from tests.sim.raft_world import World

NODES_MAX: Final = 6
"""Members that join take the ids up to here."""


class Nemesis:
    """Draws a fault of the plan now and then, until the world is calm."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.deeds: dict[str, Callable[[], None]] = {
            "crash one": self.crash_one,
            "crash leader": self.crash_leader,
            "crash all": self.crash_all,
            "isolate leader": self.isolate_leader,
            "isolate one": self.isolate_one,
            "split": self.split,
            "one way": self.one_way,
            "bridge": self.bridge,
            "pause": self.pause,
            "transfer": self.transfer,
            "wipe": self.wipe,
            "compact": self.compact,
            "burst": self.burst,
        }
        assert tuple(self.deeds) == FAULTS
        if world.plan.faults:
            self._later()
        if world.plan.operator_gap:
            self._operate_later()

    def _later(self) -> None:
        self.world.at(1 + self.random.randrange(2 * self.world.plan.fault_gap), self._strike, None)

    def _strike(self, _: None) -> None:
        if not self.world.is_calm:
            self.deeds[self.random.choice(self.world.plan.faults)]()
            self._later()

    def _operate_later(self) -> None:
        gap = self.world.plan.operator_gap
        self.world.at(1 + self.random.randrange(2 * gap), self._operate, None)

    def _operate(self, _: None) -> None:
        if not self.world.is_calm:
            self.change_membership()
            self._operate_later()

    def _span(self) -> int:
        """How long a fault lasts: often about an election, sometimes several."""
        return self.random.choice((1, 5, 10, 20, 40)) * TICK // 2

    def _leader_or_any(self) -> Node | None:
        running = self.world.running()
        return self.world.leader() or (self.random.choice(running) if running else None)

    # -- processes --------------------------------------------------------------------------------

    def crash_one(self) -> None:
        running = self.world.running()
        if running:
            self._crash(self.random.choice(running))

    def crash_leader(self) -> None:
        node = self._leader_or_any()
        if node is not None:
            self._crash(node)

    def crash_all(self) -> None:
        """The power of the whole site fails."""
        for node in self.world.running():
            self._crash(node)

    def _crash(self, node: Node) -> None:
        self.world.crash(node)
        self.world.at(1 + self.random.randrange(self._span()), self.world.start, node)

    def pause(self) -> None:
        """A process stops for a while and wakes up believing that nothing has happened."""
        node = self._leader_or_any()
        if node is not None:
            self.world.note("pause", node.member.node)
            self.world.paused[node.member.node] = self.world.now + self._span()

    # -- links ------------------------------------------------------------------------------------

    def _cut(self, what: str, links: set[tuple[NodeId, NodeId]]) -> None:
        self.world.note(what)
        self.world.cut = links
        self.world.at(self._span(), self._heal, links)

    def _heal(self, links: set[tuple[NodeId, NodeId]]) -> None:
        if self.world.cut is links:
            self.world.note("heal")
            self.world.cut = set()

    def _isolate(self, what: str, node: Node) -> None:
        me = node.member.node
        others = [other for other in self.world.nodes if other != me]
        self._cut(what, {(me, o) for o in others} | {(o, me) for o in others})

    def isolate_leader(self) -> None:
        node = self._leader_or_any()
        if node is not None:
            self._isolate("isolate leader", node)

    def isolate_one(self) -> None:
        self._isolate("isolate one", self.random.choice(list(self.world.nodes.values())))

    def split(self) -> None:
        side = {node for node in self.world.nodes if self.random.randrange(2)}
        self._cut("split", self._across(side, set(self.world.nodes) - side))

    def bridge(self) -> None:
        """Two halves that only one member can see both of."""
        nodes = list(self.world.nodes)
        self.random.shuffle(nodes)
        half = len(nodes) // 2
        self._cut("bridge", self._across(set(nodes[:half]), set(nodes[half + 1 :])))

    def one_way(self) -> None:
        """One member can speak and not hear, or hear and not speak."""
        node = self._leader_or_any()
        if node is None:
            return
        me = node.member.node
        others = [other for other in self.world.nodes if other != me]
        if self.random.randrange(2):
            self._cut("one way out", {(other, me) for other in others})
        else:
            self._cut("one way in", {(me, other) for other in others})

    @staticmethod
    def _across(left: set[NodeId], right: set[NodeId]) -> set[tuple[NodeId, NodeId]]:
        return {(a, b) for a in left for b in right} | {(b, a) for a in left for b in right}

    # -- operators --------------------------------------------------------------------------------

    def transfer(self) -> None:
        node = self.world.leader()
        if node is None:
            return
        others = [voter for voter in node.raft.conf.voters if voter != node.member]
        if others:
            target = self.random.choice(others)
            try:
                node.raft.transfer(target)
            except NotController:
                return
            self.world.note("transfer", target.node)
            node.run()

    def compact(self) -> None:
        running = self.world.running()
        if running:
            node = self.random.choice(running)
            self.world.note("compact", node.member.node)
            node.compact()

    def burst(self) -> None:
        node = self.world.leader()
        if node is not None:
            self.world.note("burst", node.member.node)
            for _ in range(self.random.randrange(2, 12)):
                if not self.world.propose(node, 1):
                    return

    def change_membership(self) -> None:
        """One step of an operator who replaces dead members and shuffles the living."""
        node = self.world.leader()
        if node is None:
            return
        change = self._next_change(node)
        if change is None:
            return
        try:
            node.raft.propose_conf(change)
        except (NotController, MembershipChangePending, InvalidRequest):
            self.world.counts["membership refused"] += 1
            return
        self.world.note(change.kind.name.lower(), change.member.node)
        if change.member.node not in self.world.nodes:
            self.world.add_node(change.member)
        node.run()

    def _next_change(self, leader: Node) -> ConfChange | None:
        conf = leader.raft.conf
        dead = [member for member in conf.members if member in self.world.lost]
        if dead:
            return ConfChange(ConfChangeKind.REMOVE, dead[0])
        if conf.learners and self.random.random() < 0.7:
            return ConfChange(ConfChangeKind.PROMOTE, self.random.choice(conf.learners))
        if len(conf.voters) > 2 and self.random.randrange(2):
            return ConfChange(ConfChangeKind.REMOVE, self.random.choice(conf.voters))
        member = self._candidate({known.node for known in conf.members})
        return None if member is None else ConfChange(ConfChangeKind.ADD_LEARNER, member)

    def _candidate(self, inside: set[NodeId]) -> Member | None:
        """Someone to add: a removed member that still runs, or a new one."""
        outside = [NodeId(n) for n in range(1, NODES_MAX + 1) if n not in inside]
        if not outside:
            return None
        chosen = self.random.choice(outside)
        known = self.world.nodes.get(chosen)
        return self.world.new_member(chosen) if known is None else known.member

    def wipe(self) -> None:
        """A member loses its disk and comes back empty, as the same node with a new directory."""
        world = self.world
        if any(not can_lose_one(node, world.lost) for node in world.nodes.values()):
            return
        node = self.random.choice(list(world.nodes.values()))
        world.note("wipe", node.member.node)
        if node.is_up:
            node.crash()
        world.lost.add(node.member)
        world.add_node(world.new_member(node.member.node))


def can_lose_one(node: Node, lost: set[Member]) -> bool:
    """As far as this member's newest configuration goes."""
    if not node.is_up:
        return False
    conf = node.raft.log.conf
    return not conf.members or (len(conf.voters) > 2 and not lost.intersection(conf.members))


def can_agree(world: World) -> bool:
    """Whether every configuration that some member holds has a living majority."""
    for node in world.nodes.values():
        voters = node.raft.log.conf.voters
        alive = [voter for voter in voters if voter not in world.lost]
        if voters and 2 * len(alive) <= len(voters):
            return False
    return True


def is_settled(world: World, least: int) -> bool:
    """A leader has committed beyond `least`, and every living member of its quorum follows."""
    leader = world.leader()
    if leader is None or leader.raft.log.commit <= least:
        return False
    members = [m for m in leader.raft.conf.members if m not in world.lost]
    present = [world.nodes[m.node] for m in members if world.nodes[m.node].is_up]
    applied = {node.machine.applied for node in present}
    roles = [node.raft.role for node in present if node is not leader]
    return applied == {leader.raft.log.last} and all(role is Role.FOLLOWER for role in roles)
