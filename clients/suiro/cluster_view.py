"""What is wrong with a cluster, and what would be if a node went: verdicts on one look at it.

Pure: `aio.cluster_view` takes the look. `suiro health`, `can-restart`, `why`, and the hook that a
container runs before it stops, all judge by this page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from suiro.model.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from suiro.connection import PartitionInfo, TopicInfo
    from suiro.model.ids import Address, NodeId


@dataclass(frozen=True, slots=True)
class NodeView:
    """One registered node."""

    node_id: NodeId
    address: Address
    roles: tuple[str, ...]
    fenced: bool = False
    shutting_down: bool = False
    rack: str = ""
    software: str = ""


@dataclass(frozen=True, slots=True)
class VoterView:
    """One member of the metadata quorum."""

    node_id: NodeId
    address: Address
    voter: bool
    active: bool


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One look."""

    cluster_id: str
    nodes: tuple[NodeView, ...]
    topics: Mapping[str, TopicInfo]
    min_insync: Mapping[str, int]
    """Of each topic."""
    controller: NodeId | None = None
    quorum: tuple[VoterView, ...] = ()
    reassigning: int = 0
    alive: frozenset[NodeId] = field(init=False)

    def __post_init__(self) -> None:
        alive = frozenset(node.node_id for node in self.nodes if not node.fenced)
        object.__setattr__(self, "alive", alive)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionInfo]]:
        for name in sorted(self.topics):
            for number, info in enumerate(self.topics[name].partitions):
                yield TopicPartition(name, number), info


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or would be."""

    kind: str
    """offline, unwritable, under-replicated, node-down, no-controller, quorum, unknown-node"""
    subject: str
    text: str


def problems(view: ClusterView) -> list[Problem]:
    """What is wrong now; nothing means healthy."""
    found = [
        Problem("node-down", f"node {node.node_id}", f"{_roles(node)} at {node.address} is fenced")
        for node in view.nodes
        if node.fenced
    ]
    if view.controller is None:
        found.append(Problem("no-controller", "quorum", "no controller decides"))
    found += [
        Problem("quorum", f"controller {voter.node_id}", f"{voter.address} is not heard of")
        for voter in view.quorum
        if voter.voter and not voter.active
    ]
    for name, info in view.partitions():
        problem = _of_partition(view, name, info)
        if problem is not None:
            found.append(problem)
    return found


def against_restart(view: ClusterView, node_id: NodeId) -> list[Problem]:
    """What would break if the node stopped now; nothing means that it may."""
    voters = [voter for voter in view.quorum if voter.voter]
    if any(voter.node_id == node_id for voter in voters):
        return _against_controller(voters, node_id)
    if all(node.node_id != node_id for node in view.nodes):
        return [Problem("unknown-node", f"node {node_id}", "no such node is registered")]
    found = []
    for name, info in view.partitions():
        if node_id not in info.replicas:
            continue
        left = [replica for replica in info.isr if replica != node_id and replica in view.alive]
        least = view.min_insync.get(name.topic, 1)
        if not left:
            found.append(Problem("offline", str(name), _only(info, node_id)))
        elif len(left) < least:
            found.append(
                Problem(
                    "unwritable",
                    str(name),
                    f"{_some(left)} would be left in sync, min.insync.replicas is {least}",
                )
            )
    return found


def _against_controller(voters: list[VoterView], node_id: NodeId) -> list[Problem]:
    left = [v.node_id for v in voters if v.active and v.node_id != node_id]
    majority = len(voters) // 2 + 1
    if len(left) >= majority:
        return []
    text = f"{_some(left)} of {len(voters)} controllers would be left, {majority} must agree"
    return [Problem("quorum", f"controller {node_id}", text)]


def _of_partition(view: ClusterView, name: TopicPartition, info: PartitionInfo) -> Problem | None:
    least = view.min_insync.get(name.topic, 1)
    if info.leader is None:
        return Problem("offline", str(name), f"nobody leads; in sync were {_ids(info.isr)}")
    if len(info.isr) < least:
        text = f"in sync {_ids(info.isr)}, min.insync.replicas is {least}: acks=all is refused"
        return Problem("unwritable", str(name), text)
    missing = [replica for replica in info.replicas if replica not in info.isr]
    if missing:
        return Problem("under-replicated", str(name), f"not in sync: {_ids(missing)}")
    return None


def _only(info: PartitionInfo, node_id: NodeId) -> str:
    if len(info.replicas) == 1:
        return f"node {node_id} has the only replica"
    return f"no other replica is in sync; replicas {_ids(info.replicas)}, in sync {_ids(info.isr)}"


def _roles(node: NodeView) -> str:
    return "+".join(node.roles) or "node"


def _some(nodes: list[NodeId]) -> str:
    return f"{len(nodes)} ({_ids(nodes)})" if nodes else "none"


def _ids(nodes: tuple[NodeId, ...] | list[NodeId]) -> str:
    return ", ".join(map(str, nodes)) or "none"
