"""Whole controllers on virtual time: a simulated network, disks that forget, nodes that crash."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suiro._proto import admin_pb2, controller_pb2
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.codec import decode
from suiro.model.error_base import SuiroError
from suiro.model.errors import NotController, TimedOut, Unavailable
from suiro.model.ids import Address, NodeId
from suiro.model.image import ClusterImage
from suiro.transport.methods import AdminMethods, ControllerMethods

from cluster.config import NodeConfig
from cluster.controller_quorum.controller import Controller
from cluster.host.env import Env
from cluster.host.hello import make_hello
from cluster.host.metrics import Metrics
from cluster.storage import Founder, Identity, format_directory, load_identity, random_cluster_id
from tests.sim.disk import ForgetfulFs
from tests.sim.loop import InlineOffload, LoopClock
from tests.sim.net import NetworkSettings, SimNetwork
from tests.sim.serving import SimServer
from tests.sim.store import StoreDisk
from tests.sim.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

DIRECTORY = Path("/data")
CALL_S = 1.0


class SimController:
    """A controller's machine: its disk outlives the process on it."""

    def __init__(self, world: QuorumWorld, node_id: NodeId) -> None:
        self.world = world
        self.name = f"c{node_id}"
        self.node_id = node_id
        self.address = Address(self.name, 9000)
        self.config = NodeConfig(
            node_id=node_id,
            roles=("controller",),
            data_dir=DIRECTORY,
            listen=self.address,
            controllers=(),
            quorum_snapshot_entries=world.snapshot_entries,
        )
        self.directory_id = world.rng.randbytes(16)
        self.wipe()
        self.controller: Controller | None = None
        self.failure: BaseExceptionGroup[BaseException] | None = None
        self._server: SimServer | None = None
        self._task: asyncio.Task[None] | None = None

    def wipe(self) -> None:
        """A new, empty disk."""
        self.fs = ForgetfulFs()
        self.disk = StoreDisk(self.world.rng)

    def format(self, founders: list[Founder], cluster_id: str | None = None) -> None:
        identity = Identity(cluster_id or self.world.cluster_id, self.node_id, self.directory_id)
        format_directory(self.fs, lambda _: self.disk.open(), DIRECTORY, identity, founders)

    @property
    def founder(self) -> Founder:
        return Founder(self.node_id, self.directory_id, self.address)

    def start(self) -> Controller:
        world = self.world
        env = Env(
            clock=LoopClock(asyncio.get_running_loop()),
            offload=InlineOffload(world.rng, delay_s_max=world.disk_s_max),
            store_offload=InlineOffload(world.rng, delay_s_max=world.disk_s_max),
            fs=self.fs,
            open_store=lambda _: self.disk.open(),
            transport=world.network.transport(self.name),
            rng=world.rng,
            metrics=Metrics(),
            make_server=lambda services: SimServer(world.network, self.name, services),
        )
        controller = self.controller = Controller(
            self.config, load_identity(self.fs, DIRECTORY), env
        )
        self._server = world.network.serve(self.address, controller.services(), self.name)
        self._task = world.tasks.create_task(self._run(controller), name=self.name)
        return controller

    async def _run(self, controller: Controller) -> None:
        """A controller that fails ends, as its process would; `ended` tells how."""
        try:
            await controller.run()
        except asyncio.CancelledError:
            return
        except BaseExceptionGroup as failure:
            self.failure = failure
            self.world.network.crash(self.name)
            self.controller = None

    async def ended(self) -> None:
        """Wait until it ends by itself, and raise what ended it."""
        assert self._task is not None
        await asyncio.wait([self._task])
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    async def crash(self) -> None:
        """The power fails: whatever was not synced may be gone."""
        assert self._task is not None
        self.world.network.crash(self.name)
        self._task.cancel()
        await asyncio.wait([self._task])
        self.disk.crash()
        self.controller = None


class QuorumWorld:
    """Some controllers and a client."""

    def __init__(self, rng: Random, tasks: asyncio.TaskGroup, *, snapshot_entries: int) -> None:
        self.rng = rng
        self.tasks = tasks
        self.snapshot_entries = snapshot_entries
        self.trace = Trace(asyncio.get_running_loop().time)
        self.network = SimNetwork(
            rng, self.trace, settings=NetworkSettings(keepalive_s=2.0, check_codecs=True)
        )
        self.cluster_id = random_cluster_id(rng)
        self.nodes: dict[NodeId, SimController] = {}
        self.brokers: list[SimBroker] = []
        self.disk_s_max = 0.001
        """How long a disk takes for a write, at most; for controllers that start from now on."""
        self.client = self.network.transport("client")

    def found(self, count: int) -> None:
        """The first controllers, formatted and started."""
        for number in range(1, count + 1):
            self.nodes[NodeId(number)] = SimController(self, NodeId(number))
        founders = [node.founder for node in self.nodes.values()]
        for node in self.nodes.values():
            node.format(founders)
            node.start()

    def join(self, node_id: int, cluster_id: str | None = None) -> SimController:
        """One more controller, that is no member yet."""
        node = self.nodes[NodeId(node_id)] = SimController(self, NodeId(node_id))
        node.format([], cluster_id)
        node.start()
        return node

    # -- looking ----------------------------------------------------------------------------------

    def leader(self) -> SimController | None:
        """The one that serves, and of several the one of the highest term."""
        serving = [
            node for node in self.nodes.values() if node.controller and node.controller.is_serving
        ]
        return max(
            serving,
            key=lambda node: node.controller.driver.raft.term if node.controller else 0,
            default=None,
        )

    async def wait_for_leader(self, but: SimController | None = None) -> SimController:
        async with asyncio.timeout(30):
            while (found := self.leader()) is None or found is but:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.01)
        return found

    async def settle(self) -> None:
        """Until every controller that is up has applied the same."""
        async with asyncio.timeout(60):
            while True:
                up = [node.controller for node in self.nodes.values() if node.controller]
                ends = {controller.driver.end for controller in up}
                lasts = {controller.driver.raft.log.last + 1 for controller in up}
                if len(ends | lasts) == 1 and self.leader() is not None:
                    return
                await asyncio.sleep(0.05)

    async def hashes(self) -> set[tuple[int, str]]:
        """Index and state hash of every controller that is up; one element if all is well."""
        found = set()
        for node in self.nodes.values():
            if node.controller is not None:
                reply = await self.client.call(
                    node.address,
                    AdminMethods.DESCRIBE_QUORUM,
                    admin_pb2.DescribeQuorumRequest(with_state_hash=True),
                    timeout_s=CALL_S,
                )
                found.add((reply.applied_index, reply.state_hash))
        return found

    # -- asking -----------------------------------------------------------------------------------

    async def ask(self, method: Any, request: Any, *, timeout_s: float = 20.0) -> Any:
        """Ask one controller after the other until the leader has answered."""
        return await self.until_answered(
            lambda node: self.client.call(node.address, method, request, timeout_s=CALL_S),
            timeout_s,
        )

    async def until_answered(
        self, ask: Callable[[SimController], Awaitable[Any]], timeout_s: float
    ) -> Any:
        async with asyncio.timeout(timeout_s):
            while True:
                for node in tuple(self.nodes.values()):
                    try:
                        return await ask(node)
                    except (NotController, Unavailable, TimedOut):
                        await asyncio.sleep(0.02)

    async def register(self, node_id: int) -> controller_pb2.RegisterNodeReply:
        request = controller_pb2.RegisterNodeRequest(
            hello=make_hello(self.cluster_id, NodeId(node_id)),
            incarnation=self.rng.randbytes(16),
            roles=["broker"],
            address=NodeAddress(node_id=node_id, host=f"b{node_id}", port=9000),
            former_broker_epoch=-1,
        )
        reply: controller_pb2.RegisterNodeReply = await self.ask(
            ControllerMethods.REGISTER_NODE, request
        )
        return reply

    async def unfenced_broker(self, node_id: int) -> SimBroker:
        """A broker that is registered, ready, and keeps its session with whoever leads."""
        broker = self.broker(node_id, (await self.register(node_id)).broker_epoch)
        async with asyncio.timeout(10):
            await broker.unfenced.wait()
        return broker

    def broker(self, node_id: int, broker_epoch: int) -> SimBroker:
        broker = SimBroker(self, node_id, broker_epoch)
        self.brokers.append(broker)
        self.tasks.create_task(broker.run(), name=f"b{node_id}")
        return broker

    async def until(self, is_so: Callable[[ClusterImage], bool]) -> None:
        """Until the leader's image is so."""
        async with asyncio.timeout(20):
            while True:
                leader = await self.wait_for_leader()
                assert leader.controller is not None
                if is_so(leader.controller.replica.machine.image):
                    return
                await asyncio.sleep(0.01)

    async def fenced_after(self, node_id: int) -> float:
        """How long it takes from now until a node is fenced."""
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        await self.until(lambda image: image.nodes[NodeId(node_id)].fenced)
        return loop.time() - started_s

    async def add(self, node: SimController) -> None:
        request = admin_pb2.AddControllerRequest(
            address=NodeAddress(
                node_id=node.node_id, host=node.address.host, port=node.address.port
            ),
            directory_id=node.directory_id,
        )
        await self.ask(AdminMethods.ADD_CONTROLLER, request, timeout_s=60)

    async def remove(self, node_id: int) -> None:
        request = admin_pb2.RemoveControllerRequest(node_id=node_id)
        await self.ask(AdminMethods.REMOVE_CONTROLLER, request, timeout_s=60)
        await self.nodes.pop(NodeId(node_id)).crash()

    async def create_topic(self, name: str) -> admin_pb2.TopicResult:
        """On broker 101, whether it is fenced or not."""
        assignment = [admin_pb2.ReplicaList(nodes=[101])]
        topic = admin_pb2.NewTopic(name=name, assignment=assignment)
        reply = await self.ask(
            AdminMethods.CREATE_TOPICS, admin_pb2.CreateTopicsRequest(topics=[topic])
        )
        result: admin_pb2.TopicResult = reply.results[0]
        return result

    async def set_default(self, partitions: int) -> None:
        """A change that needs no broker."""
        await self.set_cluster("num.partitions", str(partitions))

    async def set_cluster(self, key: str, value: str) -> None:
        await self.ask(
            AdminMethods.ALTER_CONFIGS,
            admin_pb2.AlterConfigsRequest(
                resource=admin_pb2.ConfigResource.CLUSTER, set={key: value}
            ),
        )

    async def follow(self, node: SimController, follower: FeedFollower) -> None:
        """Follow the feed of one controller until it breaks."""
        stream = await self.client.open(node.address, ControllerMethods.FOLLOW_METADATA)
        await stream.send(
            controller_pb2.FollowMetadataRequest(
                hello=make_hello(self.cluster_id, NodeId(77)), from_index=follower.index
            )
        )
        await stream.finish()
        with contextlib.suppress(SuiroError):
            while (message := await stream.receive()) is not None:
                follower.take(message)


class SimBroker:
    """Nothing of a broker but its session."""

    def __init__(self, world: QuorumWorld, node_id: int, broker_epoch: int) -> None:
        self._world = world
        self.node_id = node_id
        self.broker_epoch = broker_epoch
        self.image_index = 1 << 40
        self.want_shutdown = False
        self.is_silent = False
        """It keeps its stream and says nothing, as a process that hangs does."""
        self.unfenced = asyncio.Event()
        self.notice = controller_pb2.NodeNotice(fenced=True)
        self._is_gone = False
        self._stream: Any = None

    async def run(self) -> None:
        while not self._is_gone:
            for node in tuple(self._world.nodes.values()):
                with contextlib.suppress(SuiroError):
                    await self._hold(node)
            await asyncio.sleep(0.02)

    async def _hold(self, node: SimController) -> None:
        stream = self._stream = await self._world.client.open(
            node.address, ControllerMethods.NODE_SESSION
        )
        while not self._is_gone:
            if not self.is_silent:
                await stream.send(
                    controller_pb2.NodeHeartbeat(
                        node_id=self.node_id,
                        broker_epoch=self.broker_epoch,
                        image_index=self.image_index,
                        ready=True,
                        want_shutdown=self.want_shutdown,
                    )
                )
                notice = await stream.receive()
                assert notice is not None
                self.notice = notice
                if not notice.fenced:
                    self.unfenced.set()
            await asyncio.sleep(0.3)

    def die(self) -> None:
        """As by kill -9: the stream breaks."""
        self._is_gone = True
        self._stream.cancel()


class FeedFollower:
    """An image built from a feed, as a broker builds it."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.index = 0
        self.snapshots = 0

    def take(self, message: controller_pb2.MetadataFeed) -> None:
        if message.snapshot:
            self.image = ClusterImage()
            self.snapshots += 1
        for record in message.records:
            self.image.apply(decode(record))
        if message.index:
            assert message.index >= self.index
            self.index = message.index

    async def reach(self, index: int) -> None:
        async with asyncio.timeout(20):
            while self.index < index:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def quorum_world(rng: Random, *, snapshot_entries: int = 10_000) -> Any:
    """A world that leaves nothing behind."""
    async with asyncio.TaskGroup() as tasks:
        world = QuorumWorld(rng, tasks, snapshot_entries=snapshot_entries)
        yield world
        for broker in world.brokers:
            broker.die()
        for node in world.nodes.values():
            if node.controller is not None:
                await node.crash()
            assert node.failure is None, node.failure
        await world.client.close()
        await world.network.close()
        assert not world.network.defects, world.network.defects
