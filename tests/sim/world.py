"""Real nodes on virtual time: a simulated network between them, and disks that forget.

A `SimNode` is a machine: its disk outlives the process (`Node`) on it. `crash` is a power failure,
`kill` is kill -9 (what was written stays), `stop` an orderly end.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suiro.model.ids import Address, NodeId

from cluster.config import NodeConfig
from cluster.host.env import Env
from cluster.host.metrics import Metrics
from cluster.node import Node
from cluster.storage import Founder, Identity, format_directory, random_cluster_id
from tests.sim.disk import Chance, ForgetfulFs
from tests.sim.loop import InlineOffload, LoopClock, VirtualLoop, on_machine
from tests.sim.net import NetworkSettings, SimNetwork
from tests.sim.serving import SimServer
from tests.sim.store import StoreDisk
from tests.sim.trace import Trace
from tests.sim.wire import Conditions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from random import Random

    from cluster.host.store import Store

log = logging.getLogger("suiro.sim")

DIRECTORY = Path("/data")
PORT = 9750
CONTROLLER_FROM = 100
DISK_S_MAX = 0.001
CONNECT_S = 5.0
"""As with TCP, which asks again after 1, 2, 4 seconds, and finds that the cut has healed."""


class ProcessFs:
    """A disk as one process sees it: dead with it, while the disk lives on."""

    def __init__(self, fs: ForgetfulFs) -> None:
        self._fs = fs
        self.is_alive = True

    def __getattr__(self, name: str) -> Any:
        if not self.is_alive:
            raise OSError(errno.EIO, "the process is dead")
        return getattr(self._fs, name)


class SimNode:
    """One machine and, while it runs, the node on it."""

    def __init__(self, world: World, node_id: NodeId, roles: tuple[str, ...]) -> None:
        self.world = world
        self.node_id = node_id
        self.name = f"n{node_id}"
        self.roles = roles
        self.address = Address(self.name, PORT)
        self.directory_id = world.rng.randbytes(16)
        self.fs = ForgetfulFs()
        self.stores: dict[Path, StoreDisk] = {}
        self.node: Node | None = None
        self.metrics = Metrics()
        self.clock = LoopClock(world.loop)
        self.disk_delay = InlineOffload(world.rng, delay_s_max=DISK_S_MAX * world.pace)
        self._process = ProcessFs(self.fs)
        self._task: asyncio.Task[None] | None = None
        self._pauses = 0

    @property
    def founder(self) -> Founder:
        return Founder(self.node_id, self.directory_id, self.address)

    def format(self, founders: list[Founder]) -> None:
        identity = Identity(self.world.cluster_id, self.node_id, self.directory_id)
        is_controller = "controller" in self.roles
        format_directory(
            self.fs, self._open_store, DIRECTORY, identity, founders if is_controller else None
        )

    def start(self) -> None:
        assert self.node is None, "it runs already"
        world = self.world
        self._process = ProcessFs(self.fs)
        self.metrics = Metrics()
        config = NodeConfig(
            node_id=self.node_id,
            roles=self.roles,
            data_dir=DIRECTORY,
            listen=self.address,
            controllers=world.controllers,
            **world.settings,
        )
        env = Env(
            clock=self.clock,
            offload=self.disk_delay,
            store_offload=self.disk_delay,
            fs=self._process,
            open_store=self._open_store,
            transport=world.network.transport(self.name),
            rng=world.rng,
            metrics=self.metrics,
            make_server=lambda services: SimServer(world.network, self.name, services),
        )
        self.node = Node(config, env)
        self._task = world.loop.create_task(
            self.node.run(), name=self.name, context=on_machine(self.name)
        )
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A process that ends by itself has a reason, which a failing test should say."""
        if task is self._task and not task.cancelled() and task.exception() is not None:
            log.error("%s has ended", self.name, exc_info=task.exception())

    async def ready(self) -> None:
        assert self.node is not None
        assert self._task is not None
        ready = asyncio.create_task(self.node.ready.wait(), name=f"{self.name} ready")
        try:
            await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                self._task.result()
        finally:
            ready.cancel()

    @property
    def failure(self) -> BaseException | None:
        """What the process ended with, if it ended by itself."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    def pause(self) -> None:
        """As by SIGSTOP."""
        world = self.world
        world.trace.add("pause", self.name)
        world.loop.pause(self.name)
        self._pauses += 1
        after_s = world.network.settings.keepalive_s
        world.network.later(after_s, self._on_silence, self._pauses)

    def resume(self) -> None:
        self.world.trace.add("resume", self.name)
        self._pauses += 1
        self.world.loop.resume(self.name)

    def _on_silence(self, pause: int) -> None:
        if pause == self._pauses:
            self.world.network.on_silence(self.name)

    async def stop(self) -> None:
        """As by SIGTERM."""
        self.world.trace.add("stop", self.name)
        task = self._end()
        if task is not None:
            await asyncio.wait([task])

    def kill(self) -> None:
        """As by kill -9: what was written is there, what was in memory is not."""
        self.world.trace.add("kill", self.name)
        self._die()

    def crash(self) -> None:
        """The power fails: whatever was not synced may be gone, and nobody is told."""
        self.world.trace.add("crash", self.name)
        self._die(silent=True)
        for disk in self.stores.values():
            disk.crash()
        self.fs.crash(Chance(self.world.rng))

    def _die(self, *, silent: bool = False) -> None:
        """What is left of the process can reach nobody and write nothing, however it ends."""
        self.world.network.crash(self.name, silent=silent)
        self._process.is_alive = False
        self.fs.life += 1
        self.resume()
        for disk in self.stores.values():
            disk.kill()
        task = self._end()
        if task is not None:
            self.world.graveyard.append(task)

    def _end(self) -> asyncio.Task[None] | None:
        task, self._task, self.node = self._task, None, None
        if task is not None:
            task.cancel()
        return task

    def _open_store(self, path: Path) -> Store:
        if path not in self.stores:
            self.stores[path] = StoreDisk(self.world.rng)
        return self.stores[path].open()


class World:
    """Some nodes and the network between them; made inside the virtual loop."""

    def __init__(self, rng: Random, settings: dict[str, Any], pace: int = 1) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.loop = loop
        self.rng = rng
        self.settings = settings
        self.trace = Trace(loop.time)
        self.pace = pace
        usual = Conditions()
        self.good_net = Conditions(usual.delay_s_min * pace, usual.delay_s_max * pace)
        network = NetworkSettings(keepalive_s=2.0, connect_s=CONNECT_S)
        self.network = SimNetwork(rng, self.trace, conditions=self.good_net, settings=network)
        self.cluster_id = random_cluster_id(rng)
        self.nodes: dict[int, SimNode] = {}
        self.graveyard: list[asyncio.Task[None]] = []

    @property
    def controllers(self) -> tuple[Address, ...]:
        return tuple(n.address for n in self.nodes.values() if "controller" in n.roles)

    @property
    def brokers(self) -> list[SimNode]:
        return [node for node in self.nodes.values() if "broker" in node.roles]

    @property
    def bootstrap(self) -> list[Address]:
        return [node.address for node in self.brokers]

    def add(self, node_id: int, *roles: str) -> SimNode:
        node = self.nodes[node_id] = SimNode(self, NodeId(node_id), roles)
        return node

    async def start(self) -> None:
        """Format and start everything; return once all of them serve."""
        founders = [node.founder for node in self.nodes.values() if "controller" in node.roles]
        for node in self.nodes.values():
            node.format(founders)
            node.start()
        await self.ready(self.nodes.values())

    async def ready(self, nodes: Iterable[SimNode]) -> None:
        for node in nodes:
            await node.ready()


@contextlib.asynccontextmanager
async def world(
    rng: Random,
    *,
    controllers: int = 1,
    brokers: int = 3,
    coordinators: int = 0,
    pace: int = 1,
    **settings: Any,
) -> AsyncIterator[World]:
    """A cluster that leaves nothing behind; `coordinators` have both coordinator roles, and `pace`
    is how many times slower than usual networks and disks are.
    """
    made = World(rng, settings, pace)
    for number in range(1, controllers + 1):
        made.add(CONTROLLER_FROM + number, "controller")
    for number in range(1, brokers + 1):
        made.add(number, "broker")
    for number in range(1, coordinators + 1):
        made.add(10 + number, "group", "txn")
    await made.start()
    try:
        yield made
    finally:
        for node in reversed(made.nodes.values()):
            node.kill()
        if made.graveyard:
            await asyncio.wait(made.graveyard)
        await made.network.close()
    assert not made.network.defects, made.network.defects
