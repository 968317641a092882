"""The nemesis of the whole-system simulation: one coroutine per fault, which undoes what it did."""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any

from suiro._proto import admin_pb2 as pb
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.error_base import SuiroError
from suiro.model.limits import DISK_RESERVE_BYTES
from suiro.transport.methods import AdminMethods

from tests.sim.swarm_world import next_controller
from tests.sim.wire import Conditions
from tests.workloads.grouping import Group

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.sim.disk import Operation
    from tests.sim.swarm_world import SwarmWorld
    from tests.sim.world import SimNode

SLOW_S_MAX = 0.3
CLOCK_JUMP_MS_MAX = 3_600_000
CONTROLLERS_MAX = 5


class Nemesis:
    """Does one of the plan's faults after the other; `peace` waits until all of them are undone."""

    def __init__(self, world: SwarmWorld) -> None:
        self.world = world
        self.rng = world.rng
        self.counts: dict[str, int] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._busy: set[str] = set()
        """Nodes that a fault has in hand: a second one has to choose another."""
        self._faults: dict[str, Callable[[], Awaitable[None]]] = {
            name: getattr(self, f"_{name}") for name in world.plan.faults
        }

    async def rage(self, seconds: float) -> None:
        """For so long."""
        plan = self.world.plan
        until_s = self.world.clients.now_s() + seconds
        while self.world.clients.now_s() < until_s:
            await asyncio.sleep(self.rng.uniform(0.2, 1.8) * plan.fault_every_s)
            if self._faults and len(self._running) < plan.together_max:
                name = self.rng.choice(plan.faults)
                self.counts[name] = self.counts.get(name, 0) + 1
                self.world.note(name)
                task = asyncio.create_task(self._one(name), name=name)
                self._running.add(task)
                task.add_done_callback(self._running.discard)

    async def peace(self) -> None:
        """Everything is undone, and every node is up."""
        if self._running:
            await asyncio.wait(self._running)
        self.world.note("peace")

    async def _one(self, name: str) -> None:
        try:
            await self._faults[name]()
        except SuiroError as error:  # an operator is told no, or not in time
            self.world.note(f"{name} refused", error.message)

    async def _last(self) -> None:
        await asyncio.sleep(self.rng.uniform(0.2, 1.8) * self.world.plan.fault_lasts_s)

    # -- nodes ------------------------------------------------------------------------------------

    async def _kill(self) -> None:
        await self._away(self._some_node(), lambda node: node.kill())

    async def _power(self) -> None:
        await self._away(self._some_node(), lambda node: node.crash())

    async def _away(self, node: SimNode | None, end: Callable[[SimNode], None]) -> None:
        if node is None:
            return
        self.world.note("away", node.name)
        self._busy.add(node.name)
        try:
            end(node)
            await self._last()
            self._back(node)
        finally:
            self._busy.discard(node.name)

    def _back(self, node: SimNode) -> None:
        """It starts; who waits for it to be in sync is the phase after the faults."""
        if node.node is None:
            node.start()
        self.world.note("back", node.name)

    async def _restart(self) -> None:
        node = self._some_node()
        if node is not None:
            self._busy.add(node.name)
            await node.stop()
            self._back(node)
            self._busy.discard(node.name)

    async def _pause(self) -> None:
        node = self._some_node()
        if node is not None:
            self._busy.add(node.name)
            node.pause()
            await self._last()
            node.resume()
            self._busy.discard(node.name)

    async def _slow_disk(self) -> None:
        node = self._some_node()
        if node is not None:
            before_s, node.disk_delay.delay_s_max = node.disk_delay.delay_s_max, SLOW_S_MAX
            await self._last()
            node.disk_delay.delay_s_max = before_s

    async def _disk_full(self) -> None:
        """Somebody else's files take what there was, down to the reserve or beyond it."""
        node = self.rng.choice(self.world.cluster.brokers)
        capacity = node.fs.capacity_bytes
        spare = self.rng.choice((0, 500, 5_000, DISK_RESERVE_BYTES))
        node.fs.capacity_bytes = node.fs.used_bytes + spare
        await self._last()
        node.fs.capacity_bytes = max(capacity, 1 << 40)

    async def _disk_error(self) -> None:
        """Some operations fail with EIO; then the disk is changed for a good one."""
        node = self._some_node()
        if node is None or node.node is None:
            return
        self.world.note("disk error", node.name)
        self.world.excused.add(node.name)
        self._busy.add(node.name)
        kinds = self.rng.choice((("sync",), ("append",), ("sync", "append", "read")))
        chance = self.rng.choice((0.05, 1.0))

        def fault(operation: Operation) -> OSError | None:
            if operation.kind in kinds and self.rng.random() < chance:
                return OSError(errno.EIO, "the simulated disk has failed")
            return None

        node.fs.fault = fault
        if "controller" in node.roles:
            for disk in node.stores.values():
                disk.fail_writes = True
        await self._last()
        node.fs.fault = None
        for disk in node.stores.values():
            disk.fail_writes = False
        node.kill()
        self._back(node)
        self._busy.discard(node.name)

    async def _clock_jump(self) -> None:
        node = self.rng.choice(list(self.world.cluster.nodes.values()))
        node.clock.wall_skew_ms = self.rng.randint(-CLOCK_JUMP_MS_MAX, CLOCK_JUMP_MS_MAX)
        self.world.note("clock", node.name, node.clock.wall_skew_ms)

    def _some_node(self) -> SimNode | None:
        """One that is up; of controllers a majority is left alone, or nothing would happen at all
        for most of a run with few of them.
        """
        down = [n for n in self.world.controllers if n.node is None or n.name in self._busy]
        quorum_is_thin = 2 * (len(down) + 1) >= len(self.world.controllers)
        nodes = [
            node
            for node in self.world.cluster.nodes.values()
            if node.node is not None
            and node.name not in self._busy
            and not ("controller" in node.roles and quorum_is_thin and self.rng.random() < 0.7)
        ]
        return self.rng.choice(nodes) if nodes else None

    # -- the network ------------------------------------------------------------------------------

    async def _cut_pair(self) -> None:
        one, other = self.rng.sample(self._names(), 2)
        await self._cut([(one, other), (other, one)])

    async def _cut_one_way(self) -> None:
        one, other = self.rng.sample(self._names(), 2)
        await self._cut([(one, other)])

    async def _isolate(self) -> None:
        """One node is deaf, mute, or both, to all the others; clients still reach it or not."""
        names = self._names()
        one = self.rng.choice(names)
        others = [name for name in names if name != one]
        if self.rng.random() < 0.5:
            others += self.world.clients.names
        shape = self.rng.choice(("deaf", "mute", "both"))
        cuts = [(other, one) for other in others if shape != "mute"]
        cuts += [(one, other) for other in others if shape != "deaf"]
        await self._cut(cuts)

    async def _halves(self) -> None:
        names = self._names()
        self.rng.shuffle(names)
        middle = self.rng.randrange(1, len(names))
        left, right = names[:middle], names[middle:]
        await self._cut([pair for a in left for b in right for pair in ((a, b), (b, a))])

    async def _ring(self) -> None:
        """Everyone reaches only two neighbours."""
        names = self._names()
        self.rng.shuffle(names)
        count = len(names)
        near = {(i, (i + 1) % count) for i in range(count)}
        cuts = [
            (names[a], names[b])
            for a in range(count)
            for b in range(count)
            if a != b and (a, b) not in near and (b, a) not in near
        ]
        await self._cut(cuts)

    async def _client_cut(self) -> None:
        clients = list(self.world.clients.names)
        if clients:
            client, node = self.rng.choice(clients), self.rng.choice(self._names())
            await self._cut([(client, node), (node, client)])

    async def _cut(self, cuts: list[tuple[str, str]]) -> None:
        network = self.world.cluster.network
        refuse = self.rng.random() < 0.3
        for source, target in cuts:
            network.cut(source, target, refuse=refuse)
        await self._last()
        for source, target in cuts:
            network.heal(source, target)

    async def _bad_net(self) -> None:
        """Loss, delay, and requests that come again much later; for all links."""
        loss, delay_s_max = self.rng.choice((0, 0.000_5, 0.01)), self.rng.choice((0.002, 0.02, 0.2))
        bad = Conditions(loss=loss, delay_s_max=delay_s_max, duplicate=0.05, duplicate_s_max=20.0)
        self.world.cluster.network.set_conditions(bad)
        await self._last()
        self.world.cluster.network.set_conditions(self.world.cluster.good_net)

    def _names(self) -> list[str]:
        return [node.name for node in self.world.cluster.nodes.values()]

    # -- operators --------------------------------------------------------------------------------

    async def _reassign(self) -> None:
        async with self.world.clients.admin() as admin:
            brokers = [node.node_id for node in self.world.cluster.brokers]
            topics = [name for name in await admin.topics() if not name.startswith("__")]
            chosen = self.rng.sample(brokers, 3)
            await admin.reassign(await admin.plan_spread(topics, chosen))

    async def _elect(self) -> None:
        async with self.world.clients.admin() as admin:
            await admin.elect_leaders()

    async def _transfer_controller(self) -> None:
        await self._ask(AdminMethods.TRANSFER_CONTROLLER, pb.TransferControllerRequest(to=-1))

    async def _add_controller(self) -> None:
        if len(self.world.controllers) >= CONTROLLERS_MAX:
            return
        cluster = self.world.cluster
        node = cluster.add(next_controller(cluster), "controller")
        node.format([])
        node.start()
        address = NodeAddress(node_id=node.node_id, host=node.address.host, port=node.address.port)
        request = pb.AddControllerRequest(address=address, directory_id=node.directory_id)
        await self._ask(AdminMethods.ADD_CONTROLLER, request)

    async def _ask(self, method: Any, request: Any) -> None:
        async with self.world.clients.admin() as admin:
            await admin.ask(method, request)

    # -- clients ----------------------------------------------------------------------------------

    async def _pause_client(self) -> None:
        """A zombie: it goes on as if nothing had happened (F26)."""
        names = list(self.world.clients.names)
        if names:
            name = self.rng.choice(names)
            self.world.note("pause", name)
            self.world.cluster.loop.pause(name)
            await self._last()
            self.world.cluster.loop.resume(name)

    async def _group_flap(self) -> None:
        for work in self.world.works:
            if isinstance(work, Group):
                work.flap()
