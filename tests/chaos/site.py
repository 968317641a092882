"""A cluster to be harmed: a process, a network namespace and, for brokers, a disk per node."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.local_cluster import Layout, LocalCluster
from tests.chaos.disks import LoopDisk
from tests.cluster.netns import Namespaces

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.local_cluster import LocalNode

DISK_MB = 2_048
LAYOUT = {"controller": 3, "broker": 3, "group": 2, "txn": 2}


@dataclass(frozen=True)
class Site:
    """What the faults have in their hands."""

    cluster: LocalCluster
    network: Namespaces
    disks: dict[str, LoopDisk]

    def node(self, node_id: int) -> LocalNode:
        return next(node for node in self.cluster.nodes.values() if node.node_id == node_id)

    async def bring_up(self, node: LocalNode) -> None:
        """Start it, and wait until it serves and is in sync."""
        node.start()
        await asyncio.to_thread(node.wait_ready)


@contextmanager
def site(root: Path) -> Iterator[Site]:
    """Everything up; leaves no process, mount or namespace behind."""
    names = [f"{kind}-{n + 1}" for kind, count in LAYOUT.items() for n in range(count)]
    with ExitStack() as stack:
        network = stack.enter_context(Namespaces(names))
        disks = {}
        for name in names:
            if name.startswith("broker"):
                disks[name] = LoopDisk(root / f"{name}.img", root / name / "data", DISK_MB)
                stack.callback(disks[name].unmount)
        hosts = tuple(map(network.host, names))
        layout = Layout(
            controllers=LAYOUT["controller"],
            brokers=LAYOUT["broker"],
            groups=LAYOUT["group"],
            txns=LAYOUT["txn"],
            hosts=hosts,
        )
        cluster = LocalCluster(root, layout)
        for node in cluster.nodes.values():
            node.within = network.within(node.name)
        stack.enter_context(cluster)
        yield Site(cluster, network, disks)
