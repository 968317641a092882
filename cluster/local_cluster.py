"""A whole cluster on this machine, one process per node: for `suiro up`, tests and benchmarks.

Everything is under one directory: a folder per node with its settings, data and log. The layout is
made once; starting again finds it and keeps ports, identities and data.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from suiro.model.errors import InvalidConfig, Unavailable
from suiro.model.ids import Address, NodeId

from cluster.host.fs import OsFs
from cluster.host.store import RocksStore
from cluster.storage import (
    Founder,
    Identity,
    format_directory,
    random_cluster_id,
    random_directory_id,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOST: Final = "127.0.0.1"
PLAN: Final = "cluster.json"
EVENTS: Final = "events.jsonl"
FIRST_CONTROLLER: Final = 101
FIRST_GROUP: Final = 201
FIRST_TXN: Final = 301
INTERNAL_REPLICAS: Final = 3
READY_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
READY_MARK: Final = b" is ready"
POLL_S: Final = 0.01
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Layout:
    """How many nodes of which kind; `port` is the first broker's, 0 for a free one. `hosts` are the
    addresses of the nodes, controllers first, where they are not all this machine's loopback.
    """

    controllers: int = 1
    brokers: int = 1
    groups: int = 0
    txns: int = 0
    port: int = 0
    racks: tuple[str, ...] = ()
    event_log: bool = False
    """Whether every node writes `events.jsonl` into its folder."""
    hosts: tuple[str, ...] = ()


class LocalNode:
    """One node's folder, and its process while it runs."""

    def __init__(self, name: str, folder: Path, node_id: NodeId, address: Address) -> None:
        self.name = name
        self.folder = folder
        self.node_id = node_id
        self.address = address
        self.log_path = folder / "node.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.within: tuple[str, ...] = ()
        """What its command is put behind, to run it in a network namespace for instance."""
        self._log_seen = 0

    @property
    def config_path(self) -> Path:
        return self.folder / "node.toml"

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start the process; it serves once `wait_ready` has returned."""
        assert not self.is_running
        node = [sys.executable, "-m", "cluster", "--config", str(self.config_path)]
        with self.log_path.open("ab") as log:
            self._log_seen = log.tell()
            self.process = subprocess.Popen(
                [*self.within, *node],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=_compiling(os.environ),
                start_new_session=True,
            )

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        deadline = time.monotonic() + timeout_s  # noqa: TID251 - outside any node
        while READY_MARK not in self.new_log():
            if not self.is_running or time.monotonic() > deadline:  # noqa: TID251
                log = self.new_log().decode(errors="replace")
                raise Unavailable(f"{self.name} did not become ready; its log says:\n{log}")
            time.sleep(POLL_S)

    def new_log(self) -> bytes:
        """What it has logged since its last start."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_seen)
            return log.read()

    def signal(self, number: signal.Signals) -> None:
        if self.is_running:
            assert self.process is not None
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        """kill -9: nothing is flushed, nobody is told."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        assert self.process is not None
        return self.process.wait(timeout_s)


def _compiling(environment: Mapping[str, str]) -> dict[str, str]:
    """Where Python was told to keep no compiled code, every start compiles two hundred files anew,
    which is most of its CPU time.
    """
    return {name: value for name, value in environment.items() if name != NO_BYTECODE}


class LocalCluster:
    """The nodes, by name: `controller-1`, `broker-1`, …"""

    def __init__(self, directory: Path, layout: Layout | None = None) -> None:
        self.directory = directory
        plan = directory / PLAN
        if not plan.exists():
            _lay_out(directory, layout or Layout())
        content = json.loads(plan.read_text())
        self.cluster_id: str = content["cluster_id"]
        self.has_events: bool = content.get("event_log", False)
        self.nodes = {
            name: LocalNode(
                name,
                directory / name,
                NodeId(node["id"]),
                Address(node.get("host", HOST), node["port"]),
            )
            for name, node in content["nodes"].items()
        }

    @property
    def brokers(self) -> list[LocalNode]:
        return [node for name, node in self.nodes.items() if name.startswith("broker")]

    @property
    def controllers(self) -> list[LocalNode]:
        return [node for name, node in self.nodes.items() if name.startswith("controller")]

    @property
    def coordinators(self) -> list[LocalNode]:
        """Of both kinds: `group-1`, `txn-1`, …"""
        return [n for name, n in self.nodes.items() if name.startswith(("group", "txn"))]

    @property
    def bootstrap(self) -> str:
        return "suiro://" + ",".join(str(node.address) for node in self.brokers)

    def add_broker(self, rack: str = "") -> LocalNode:
        """Lay one more broker out, beside those that may be running; the caller starts it."""
        number = 1 + max(node.node_id for node in self.brokers)
        name = f"broker-{number}"
        address = Address(HOST, free_port())
        directory_id = random_directory_id(random.SystemRandom())
        identity = Identity(self.cluster_id, NodeId(number), directory_id)
        controllers = [node.address for node in self.controllers]
        folder = self.directory / name
        _make_node(folder, identity, address, controllers, f'rack = "{rack}"\n')
        node = LocalNode(name, self.directory / name, NodeId(number), address)
        self.nodes[name] = node
        _save_plan(self.directory, self.cluster_id, list(self.nodes.values()), self.has_events)
        return node

    def start(self) -> None:
        """Start every node that is not running, and return once all of them serve."""
        starting = [node for node in self.nodes.values() if not node.is_running]
        for node in starting:
            node.start()
        for node in starting:
            node.wait_ready()

    def stop(self) -> None:
        """Stop in order: each kind while there is somebody left for it to tell."""
        for group in (self.coordinators, self.brokers, self.controllers):
            running = [node for node in group if node.is_running]
            for node in running:
                node.signal(signal.SIGTERM)
            for node in running:
                node.wait()

    def kill(self) -> None:
        """kill -9 of everything that runs."""
        for node in self.nodes.values():
            if node.is_running:
                node.signal(signal.SIGCONT)
                node.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self.kill()


def _lay_out(directory: Path, layout: Layout) -> None:
    """Choose ports and identities, write every node's settings, format its directory."""
    if layout.controllers < 1 or layout.brokers < 1:
        raise InvalidConfig("a cluster needs at least one controller and one broker")
    dice = random.SystemRandom()
    cluster_id = random_cluster_id(dice)
    count = layout.controllers + layout.brokers + layout.groups + layout.txns
    hosts = iter(layout.hosts or (HOST,) * count)
    controllers = [
        Founder(
            NodeId(FIRST_CONTROLLER + i),
            random_directory_id(dice),
            Address(next(hosts), free_port()),
        )
        for i in range(layout.controllers)
    ]
    addresses = [founder.address for founder in controllers]
    nodes = []
    for number, founder in enumerate(controllers, 1):
        folder = directory / f"controller-{number}"
        identity = Identity(cluster_id, founder.node_id, founder.directory_id)
        _make_node(folder, identity, founder.address, addresses, founders=controllers)
        nodes.append(LocalNode(folder.name, folder, founder.node_id, founder.address))
    members = [("broker", NodeId(number)) for number in range(1, layout.brokers + 1)]
    members += [("group", NodeId(FIRST_GROUP + i)) for i in range(layout.groups)]
    members += [("txn", NodeId(FIRST_TXN + i)) for i in range(layout.txns)]
    numbers = Counter[str]()
    for role, node_id in members:
        numbers[role] += 1
        folder = directory / f"{role}-{numbers[role]}"
        port = layout.port if node_id == 1 and layout.port else free_port()
        identity = Identity(cluster_id, node_id, random_directory_id(dice))
        rack = layout.racks[(numbers[role] - 1) % len(layout.racks)] if layout.racks else ""
        address = Address(next(hosts), port)
        more = (
            f'rack = "{rack}"\n'
            f"internal_replication_factor = {min(INTERNAL_REPLICAS, layout.brokers)}\n"
        )
        _make_node(folder, identity, address, addresses, more, role=role)
        nodes.append(LocalNode(folder.name, folder, node_id, address))
    _save_plan(directory, cluster_id, nodes, layout.event_log)


def _save_plan(directory: Path, cluster_id: str, nodes: list[LocalNode], has_events: bool) -> None:
    for node in nodes if has_events else ():
        line = f'event_log = "{(node.folder / EVENTS).absolute()}"\n'
        text = node.config_path.read_text()
        node.config_path.write_text(text if line in text else text + line)
    content = {
        "cluster_id": cluster_id,
        "event_log": has_events,
        "nodes": {
            node.name: {"id": node.node_id, "host": node.address.host, "port": node.address.port}
            for node in nodes
        },
    }
    (directory / PLAN).write_text(json.dumps(content, indent=1) + "\n")


def _make_node(  # noqa: PLR0913 - a node's settings
    folder: Path,
    identity: Identity,
    address: Address,
    controllers: list[Address],
    more: str = "",
    *,
    founders: list[Founder] | None = None,
    role: str = "broker",
) -> None:
    """A controller if it has founders, else what `role` says; `more` are lines of its settings."""
    data = folder / "data"
    role = role if founders is None else "controller"
    format_directory(OsFs(), RocksStore, data, identity, founders)
    addresses = ", ".join(f'"{controller}"' for controller in controllers)
    (folder / "node.toml").write_text(
        f"node_id = {identity.node_id}\n"
        f'roles = ["{role}"]\n'
        f'data_dir = "{data.absolute()}"\n'
        f'listen = "{address}"\n'
        f"controllers = [{addresses}]\n"
        f"{more}"
    )
