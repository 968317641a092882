"""What is done to the cluster: one coroutine per kind, which harms, waits and undoes.

A kind that takes a role away also measures: until clients are served again by somebody else.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suiro._proto import admin_pb2 as pb
from suiro.aio import Admin
from suiro.model.error_base import SuiroError
from suiro.transport.methods import AdminMethods
from suiro.verify.append import TOPIC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from random import Random

    from cluster.local_cluster import LocalNode
    from tests.chaos.probes import Probes
    from tests.chaos.site import Site
    from tests.workloads.grouping import Group

SESSION_S = 3.0
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
IN_SYNC_S_MAX = 20.0


@dataclass
class Injected:
    """One fault, as it goes into the report."""

    kind: str
    began_s: float
    victim: str = ""
    ended_s: float = 0.0
    role: str = ""
    recovery_s: float | None = None
    """For a kill: until the role that the victim had was served again."""
    error: str = ""


@dataclass
class Faults:
    """Does them, one at a time, and keeps a list."""

    site: Site
    probes: Probes
    group: Group
    rng: Random
    done: list[Injected] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._admin = Admin(self.site.cluster.bootstrap)
        self.kinds: dict[str, Callable[[Injected], Awaitable[None]]] = {
            "kill leader": self._kill_leader,
            "kill controller": self._kill_controller,
            "kill txn coordinator": self._kill_txn,
            "kill group coordinator": self._kill_group,
            "kill leader and controller": self._kill_both,
            "pause longer than a session": self._pause_long,
            "short pause": self._pause_short,
            "cut off": self._cut_off,
            "deaf": self._deaf,
            "mute": self._mute,
            "halves": self._halves,
            "ring": self._ring,
            "clients cut off": self._clients_cut,
            "throttled link": self._throttle,
            "disk full": self._disk_full,
            "EIO at sync": self._sync_error,
            "slow sync": self._slow_sync,
            "power loss": self._power_loss,
            "clock an hour ahead": self._clock_skew,
            "corrupt tail and index": self._corrupt,
            "rolling restart": self._roll,
            "reassignment": self._reassign,
            "controller hand-over": self._transfer,
            "rebalance storm": self._storm,
            "overload": self._overload,
        }

    async def do(self, kind: str) -> None:
        await self._in_sync()
        fault = Injected(kind, time.monotonic())
        self.done.append(fault)
        try:
            await self.kinds[kind](fault)
            await self.revive()
        except Exception as error:  # the run goes on, and the report says what could not be done
            fault.error = f"{type(error).__name__}: {error}"
        fault.ended_s = time.monotonic()

    async def revive(self) -> None:
        """Whoever ended by itself, because its disk failed, is started again."""
        for node in self.site.cluster.nodes.values():
            if not node.is_running:
                await self.site.bring_up(node)

    async def _in_sync(self) -> None:
        """One fault after the other: power may fail only where two more hold everything."""
        until_s = time.monotonic() + IN_SYNC_S_MAX
        while time.monotonic() < until_s:
            try:
                topics = (await self._admin.topics()).values()
            except SuiroError:
                await asyncio.sleep(0.05)
                continue
            if all(set(p.isr) == set(p.replicas) for t in topics for p in t.partitions):
                return
            await asyncio.sleep(0.05)

    # -- processes --------------------------------------------------------------------------------

    async def _kill_leader(self, fault: Injected) -> None:
        leader = await self._leader()
        await self._kill(fault, leader, "leader", self.probes.partition_served)

    async def _kill_controller(self, fault: Injected) -> None:
        await self._kill(fault, await self._controller(), "controller", self.probes.quorum_served)

    async def _kill_txn(self, fault: Injected) -> None:
        node = await self._owner("txn")
        await self._kill(fault, node, "txn coordinator", self.probes.transactions_served)

    async def _kill_group(self, fault: Injected) -> None:
        node = await self._owner("group")
        await self._kill(fault, node, "group coordinator", self.probes.group_served)

    async def _kill(
        self,
        fault: Injected,
        node: LocalNode,
        role: str,
        served: Callable[[float], Awaitable[float]],
    ) -> None:
        fault.victim, fault.role = node.name, role
        since_s = time.monotonic()
        node.kill()
        fault.recovery_s = await served(since_s) - since_s
        await self.site.bring_up(node)

    async def _kill_both(self, fault: Injected) -> None:
        nodes = [await self._leader(), await self._controller()]
        fault.victim = ", ".join(node.name for node in nodes)
        for node in nodes:
            node.kill()
        await asyncio.sleep(1)
        for node in nodes:
            node.start()
        for node in nodes:
            await asyncio.to_thread(node.wait_ready)

    async def _pause_long(self, fault: Injected) -> None:
        await self._pause(fault, SESSION_S + 1)

    async def _pause_short(self, fault: Injected) -> None:
        await self._pause(fault, 1)

    async def _pause(self, fault: Injected, seconds: float) -> None:
        node = self._any(fault)
        node.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        node.signal(signal.SIGCONT)

    async def _roll(self, fault: Injected) -> None:
        fault.victim = "all brokers"
        for node in self.site.cluster.brokers:
            node.signal(signal.SIGTERM)
            await asyncio.to_thread(node.wait)
            await self.site.bring_up(node)

    # -- the network ------------------------------------------------------------------------------

    async def _cut_off(self, fault: Injected) -> None:
        node = self._any(fault)
        await self._cut([(node.name, other) for other in self._others(node)], both=True)

    async def _deaf(self, fault: Injected) -> None:
        node = self._any(fault)
        await self._cut([(other, node.name) for other in self._others(node)], both=False)

    async def _mute(self, fault: Injected) -> None:
        node = self._any(fault)
        await self._cut([(node.name, other) for other in self._others(node)], both=False)

    async def _halves(self, fault: Injected) -> None:
        names = list(self.site.cluster.nodes)
        self.rng.shuffle(names)
        left, right = names[:3], names[3:]
        fault.victim = f"{', '.join(left)} from the rest"
        await self._cut([(a, b) for a in left for b in right], both=True)

    async def _ring(self, fault: Injected) -> None:
        names = list(self.site.cluster.nodes)
        self.rng.shuffle(names)
        count = len(names)
        fault.victim = "all"
        far = [
            (names[a], names[b])
            for a in range(count)
            for b in range(a + 2, count)
            if (a, b) != (0, count - 1)
        ]
        await self._cut(far, both=True)

    async def _clients_cut(self, fault: Injected) -> None:
        node = await self._leader()
        fault.victim = node.name
        self.site.namespaces.cut_clients(node.name)
        await asyncio.sleep(SESSION_S)
        self.site.network.heal()

    async def _throttle(self, fault: Injected) -> None:
        node = self._any(fault)
        self.site.namespaces.throttle(node.name, "2mbit")
        await asyncio.sleep(4)
        self.site.namespaces.unthrottle(node.name)

    async def _cut(self, pairs: list[tuple[str, str]], *, both: bool) -> None:
        network = self.site.network
        ways = [*pairs, *((b, a) for a, b in pairs)] if both else pairs
        await asyncio.to_thread(network.cut_all, ways)
        await asyncio.sleep(SESSION_S + 0.5)
        await asyncio.to_thread(network.heal)

    def _others(self, node: LocalNode) -> list[str]:
        return [name for name in self.site.cluster.nodes if name != node.name]

    # -- disks ------------------------------------------------------------------------------------

    async def _disk_full(self, fault: Injected) -> None:
        node = self._a_broker(fault)
        disk = self.site.disks[node.name]
        await asyncio.to_thread(disk.fill, 1 << 20)
        await asyncio.sleep(3)
        await asyncio.to_thread(disk.free)

    async def _sync_error(self, fault: Injected) -> None:
        node = self._a_broker(fault)
        await self._inject(node, "error=EIO", 1.5)
        node.kill()
        await self.site.bring_up(node)

    async def _slow_sync(self, fault: Injected) -> None:
        await self._inject(self._any(fault), "delay_enter=150000", 3)

    async def _inject(self, node: LocalNode, what: str, seconds: float) -> None:
        """By ptrace: every sync of the process fails or is slow."""
        assert node.process is not None
        calls = "fdatasync,fsync"
        tracer = await asyncio.create_subprocess_exec(
            *("strace", "-f", "-qq", "-o", "/dev/null", "-p", str(node.process.pid)),
            *("-e", f"trace={calls}", "-e", f"inject={calls}:{what}"),
            stderr=asyncio.subprocess.DEVNULL,
        )
        await asyncio.sleep(seconds)
        tracer.terminate()
        await tracer.wait()

    async def _power_loss(self, fault: Injected) -> None:
        node = self._a_broker(fault)
        disk = self.site.disks[node.name]
        disk.power_off()
        node.kill()
        await asyncio.to_thread(disk.unmount)
        await asyncio.to_thread(disk.mount)
        await self.site.bring_up(node)

    async def _corrupt(self, fault: Injected) -> None:
        """Garbage behind the last batch, as a torn write leaves it, and a damaged index."""
        node = self._a_broker(fault)
        node.kill()
        for partition in sorted((node.folder / "data" / "log").glob(f"{TOPIC}-*")):
            newest = max(partition.glob("*.log"))
            with newest.open("ab") as file:
                file.write(self.rng.randbytes(100))
            _flip_byte(newest.with_suffix(".index"), self.rng)
        await self.site.bring_up(node)

    # -- clocks, operators, load ------------------------------------------------------------------

    async def _clock_skew(self, fault: Injected) -> None:
        node = self._any(fault)
        node.kill()
        within = node.within
        fake = (f"LD_PRELOAD={FAKETIME}", "FAKETIME=+3600s", "FAKETIME_DONT_FAKE_MONOTONIC=1")
        node.within = (*within, "env", *fake)
        await self.site.bring_up(node)
        await asyncio.sleep(2)
        node.kill()
        node.within = within
        await self.site.bring_up(node)

    async def _reassign(self, fault: Injected) -> None:
        fault.victim = TOPIC
        leaders = [int(n.node_id) for n in self.site.cluster.brokers]
        self.rng.shuffle(leaders)
        await self._admin.reassign(await self._admin.plan_spread([TOPIC], leaders))
        await self._admin.elect_leaders()

    async def _transfer(self, fault: Injected) -> None:
        fault.victim = (await self._controller()).name
        await self._admin.ask(AdminMethods.TRANSFER_CONTROLLER, pb.TransferControllerRequest(to=-1))

    async def _storm(self, fault: Injected) -> None:
        fault.victim = "the group"
        for _ in range(12):
            self.group.flap()
            await asyncio.sleep(0.25)

    async def _overload(self, fault: Injected) -> None:
        """More than the brokers can write, from a client that does not wait."""
        fault.victim = "the brokers"
        async with self.group.clients.producer("flood", delivery_timeout_ms=8_000) as producer:
            until_s = time.monotonic() + 3
            while time.monotonic() < until_s:
                producer.send_many("flood", [b"." * 1_000] * 1_000)
                await producer.room()
                await asyncio.sleep(0)

    # -- whom -------------------------------------------------------------------------------------

    def _any(self, fault: Injected) -> LocalNode:
        node = self.rng.choice(list(self.site.cluster.nodes.values()))
        fault.victim = node.name
        return node

    def _a_broker(self, fault: Injected) -> LocalNode:
        node = self.rng.choice(self.site.cluster.brokers)
        fault.victim = node.name
        return node

    async def _leader(self) -> LocalNode:
        async with asyncio.timeout(IN_SYNC_S_MAX):
            while True:
                leader = (await self._admin.describe_topic(TOPIC)).partitions[0].leader
                if leader is not None:
                    return self.site.node(leader)
                await asyncio.sleep(0.05)

    async def _controller(self) -> LocalNode:
        reply: Any = await self._admin.ask(AdminMethods.DESCRIBE_QUORUM, pb.DescribeQuorumRequest())
        return self.site.node(reply.leader)

    async def _owner(self, kind: str) -> LocalNode:
        node_id = await self.probes.owner(kind)
        return self.site.node(node_id)


def _flip_byte(path: Path, rng: Random) -> None:
    size = path.stat().st_size if path.exists() else 0
    if size:
        descriptor = os.open(path, os.O_RDWR)
        at = rng.randrange(size)
        byte = os.pread(descriptor, 1, at)[0] ^ (1 << rng.randrange(8))
        os.pwrite(descriptor, bytes([byte]), at)
        os.close(descriptor)
