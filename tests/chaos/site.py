"""A cluster to be harmed: a process, a network namespace and, for brokers, a disk per node."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cluster.local_cluster import Layout, LocalCluster
from tests.chaos.disks import LoopDisk
from tests.cluster.netns import Namespaces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from cluster.local_cluster import LocalNode

DISK_MB = 2_048
COUNTS = {"controller": 3, "broker": 3, "group": 2, "txn": 2}
NAMES = [f"{kind}-{n + 1}" for kind, count in COUNTS.items() for n in range(count)]


class Network(Protocol):
    """What every backend can cut."""

    def cut_all(self, ways: Iterable[tuple[str, str]]) -> None: ...
    def heal(self) -> None: ...


@dataclass(frozen=True)
class Site:
    """What the faults have in their hands."""

    cluster: LocalCluster
    network: Network
    disks: dict[str, LoopDisk]

    @property
    def namespaces(self) -> Namespaces:
        """For what only namespaces can do: cut clients off, slow a link down."""
        assert isinstance(self.network, Namespaces)
        return self.network

    def node(self, node_id: int) -> LocalNode:
        return next(node for node in self.cluster.nodes.values() if node.node_id == node_id)

    async def bring_up(self, node: LocalNode) -> None:
        """Start it, and wait until it serves and is in sync."""
        node.start()
        await asyncio.to_thread(node.wait_ready)


@contextmanager
def site(root: Path) -> Iterator[Site]:
    """Everything up; leaves no process, mount or namespace behind."""
    with ExitStack() as stack:
        network = stack.enter_context(Namespaces(NAMES))
        disks = {}
        for name in NAMES:
            if name.startswith("broker"):
                disks[name] = LoopDisk(root / f"{name}.img", root / name / "data", DISK_MB)
                stack.callback(disks[name].unmount)
        cluster = LocalCluster(root, layout_at(map(network.host, NAMES)))
        for node in cluster.nodes.values():
            node.within = network.within(node.name)
        stack.enter_context(cluster)
        yield Site(cluster, network, disks)


def layout_at(hosts: Iterable[str]) -> Layout:
    """A node of each of the names, at these addresses."""
    return Layout(
        controllers=COUNTS["controller"],
        brokers=COUNTS["broker"],
        groups=COUNTS["group"],
        txns=COUNTS["txn"],
        hosts=tuple(hosts),
    )
