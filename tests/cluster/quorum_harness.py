"""Controllers as real processes, and clients that change metadata and remember what they were told.

A change is either a topic of a name that nobody else uses, or the next number in a setting of the
client's own topic. So at the end it can be said of each acknowledged change whether it is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suiro._proto import admin_pb2, controller_pb2
from suiro._proto.common_pb2 import NodeAddress
from suiro.model.codec import decode
from suiro.model.error_base import SuiroError
from suiro.model.errors import NotController, TopicExists
from suiro.model.ids import Address, NodeId
from suiro.model.image import ClusterImage
from suiro.model.records import ConfigResource
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.methods import AdminMethods, ControllerMethods
from suiro.transport.wire_errors import raise_if_error

from cluster.host.fs import OsFs
from cluster.host.hello import make_hello
from cluster.host.node_session import NodeSession
from cluster.host.offload import Threads
from cluster.host.quorum_client import QuorumClient
from cluster.host.store import RocksStore
from cluster.launch import real_env
from cluster.storage import (
    Founder,
    Identity,
    format_directory,
    random_cluster_id,
    random_directory_id,
)
from tests.cluster.harness import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

CALL_S = 2.0
HASH_S = 20.0
BROKER = NodeId(101)
"""A broker that exists on paper only."""

SETTING = "retention.ms"
TOPIC_EVERY = 10


class ControllerProcess:
    """`python -m cluster` with the role controller; its directory outlives it."""

    def __init__(self, root: Path, node_id: int, seeds: Sequence[Address] = ()) -> None:
        self.node_id = NodeId(node_id)
        self.root = root / f"controller-{node_id}"
        self.root.mkdir()
        self.address = Address("127.0.0.1", free_port())
        self.directory_id = random_directory_id(random.SystemRandom())
        self.log_path = self.root / "node.log"
        self.config_path = self.root / "node.toml"
        self.seeds = tuple(seeds)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def founder(self) -> Founder:
        return Founder(self.node_id, self.directory_id, self.address)

    def format(self, cluster_id: str, founders: Sequence[Founder]) -> None:
        identity = Identity(cluster_id, self.node_id, self.directory_id)
        format_directory(OsFs(), RocksStore, self.root / "data", identity, founders)

    def write_config(self, **more: int) -> None:
        lines = [
            f"node_id = {self.node_id}",
            'roles = ["controller"]',
            f'data_dir = "{self.root / "data"}"',
            f'listen = "{self.address}"',
            f"controllers = {[str(address) for address in self.seeds]}",
            *(f"{key} = {value}" for key, value in more.items()),
        ]
        self.config_path.write_text("\n".join(lines))

    def start(self) -> None:
        command = [sys.executable, "-m", "cluster", "--config", str(self.config_path)]
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def wait(self) -> int:
        """Its exit code."""
        assert self._process is not None
        return self._process.wait(20)

    def kill(self) -> None:
        if self.is_up:
            self.send(signal.SIGKILL)
            self.wait()


class RealQuorum:
    """Some controllers; `close` leaves no process behind."""

    def __init__(self, root: Path, count: int, **settings: int) -> None:
        self.root = root
        self.settings = settings
        self.cluster_id = random_cluster_id(random.SystemRandom())
        self.nodes = {n: ControllerProcess(root, n) for n in range(1, count + 1)}
        self._made = list(self.nodes.values())
        founders = [node.founder for node in self.nodes.values()]
        for node in self.nodes.values():
            node.format(self.cluster_id, founders)
            node.write_config(**settings)
            node.start()
        self.transport = GrpcTransport()

    def joiner(self, node_id: int, cluster_id: str | None = None) -> ControllerProcess:
        """A controller that is no member yet, not started."""
        seeds = [node.address for node in self.nodes.values()]
        node = ControllerProcess(self.root, node_id, seeds)
        self._made.append(node)
        node.format(cluster_id or self.cluster_id, [])
        node.write_config(**self.settings)
        return node

    async def close(self) -> None:
        for node in self._made:
            if node.is_up:
                node.send(signal.SIGCONT)
            node.kill()
        await self.transport.close()

    async def describe(
        self, node: ControllerProcess, *, with_hash: bool = False
    ) -> admin_pb2.DescribeQuorumReply | None:
        """How one controller sees the quorum; None if it does not answer."""
        try:
            return await self.transport.call(
                node.address,
                AdminMethods.DESCRIBE_QUORUM,
                admin_pb2.DescribeQuorumRequest(with_state_hash=with_hash),
                timeout_s=HASH_S if with_hash else CALL_S,
            )
        except SuiroError:
            return None

    async def leader(self, timeout_s: float = 20.0) -> ControllerProcess:
        """Who leads by its own word."""
        async with asyncio.timeout(timeout_s):
            while True:
                for node in self.nodes.values():
                    seen = await self.describe(node) if node.is_up else None
                    if seen is not None and seen.leader == node.node_id:
                        return node
                await asyncio.sleep(0.01)

    async def caught_up(self, timeout_s: float = 30.0) -> None:
        """Until every controller that is up is at the leader's commit of a moment ago."""
        leader = await self.leader()
        seen = await self.describe(leader)
        goal = 0 if seen is None else seen.commit_index
        async with asyncio.timeout(timeout_s):
            for node in self.nodes.values():
                while node.is_up:
                    seen = await self.describe(node)
                    if seen is not None and seen.applied_index >= goal:
                        break
                    await asyncio.sleep(0.02)

    async def hashes(self, timeout_s: float = 20.0) -> set[tuple[int, str]]:
        """Index and hash of all, once nothing moves any more: one element if all is well."""
        found: set[tuple[int, str]] = set()
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    seen = [await self.describe(n, with_hash=True) for n in self.nodes.values()]
                    found = {(s.applied_index, s.state_hash) for s in seen if s is not None}
                    if len(found) == 1 and None not in seen:
                        return found
                    await asyncio.sleep(0.05)
        except TimeoutError:
            return found

    async def image(self, node: ControllerProcess) -> ClusterImage:
        """The metadata as one controller feeds it, up to its commit of now."""
        seen = await self.describe(node)
        assert seen is not None
        stream = await self.transport.open(node.address, ControllerMethods.FOLLOW_METADATA)
        request = controller_pb2.FollowMetadataRequest(hello=make_hello(self.cluster_id, BROKER))
        await stream.send(request)
        image = ClusterImage()
        index = 0
        while index < seen.commit_index:
            message = await stream.receive()
            assert message is not None
            if message.snapshot:
                image = ClusterImage()
            for record in message.records:
                image.apply(decode(record))
            index = message.index or index
        stream.cancel()
        return image


@dataclass
class Told:
    """What one client was told had been done; and of each time when it asked and heard."""

    number: int = 0
    topics: list[str] = field(default_factory=list)
    acks_s: list[tuple[float, float]] = field(default_factory=list)


class MetadataClient:
    """Makes one change after the other, each until it is acknowledged."""

    def __init__(self, quorum: RealQuorum, name: str, *, topic_every: int = TOPIC_EVERY) -> None:
        self.quorum = quorum
        self.name = name
        self.told = Told()
        self._topic_every = topic_every
        self._at = 0
        self._asked_s = 0.0

    async def call(self, method: Any, request: Any, *, timeout_s: float = CALL_S) -> Any:
        """Until the leader has answered, wherever it is by then."""
        while True:
            nodes = list(self.quorum.nodes.values())
            node = nodes[self._at % len(nodes)]
            self._asked_s = time.monotonic()
            try:
                return await self.quorum.transport.call(
                    node.address, method, request, timeout_s=timeout_s
                )
            except NotController as error:
                self._go_to(nodes, error.leader)
            except SuiroError as error:
                if not error.retriable:
                    raise
                self._at += 1
            await asyncio.sleep(0.01)

    def _go_to(self, nodes: list[ControllerProcess], leader: int | None) -> None:
        for place, node in enumerate(nodes):
            if node.node_id == leader:
                self._at = place
                return
        self._at += 1

    async def begin(self) -> None:
        await self.create_topic(self.name)

    async def run(self, *, pause_s: float = 0.0) -> None:
        """Until cancelled."""
        await self.begin()
        while True:
            await self.change()
            if pause_s:
                await asyncio.sleep(pause_s)

    async def change(self) -> None:
        number = self.told.number + 1
        if self._topic_every and number % self._topic_every == 0:
            await self.create_topic(f"{self.name}-{number}")
        await self.call(
            AdminMethods.ALTER_CONFIGS,
            admin_pb2.AlterConfigsRequest(
                resource=admin_pb2.ConfigResource.TOPIC, name=self.name, set={SETTING: str(number)}
            ),
        )
        self.told.number = number
        self.told.acks_s.append((self._asked_s, time.monotonic()))

    async def create_topic(self, name: str) -> None:
        topic = admin_pb2.NewTopic(name=name, partitions=1, replication_factor=1)
        reply = await self.call(
            AdminMethods.CREATE_TOPICS, admin_pb2.CreateTopicsRequest(topics=[topic])
        )
        raise_unless_done(reply.results[0])
        self.told.topics.append(name)
        self.told.acks_s.append((self._asked_s, time.monotonic()))


@contextlib.asynccontextmanager
async def paper_broker(quorum: RealQuorum, node_id: NodeId = BROKER) -> AsyncIterator[NodeSession]:
    """A broker that holds a session and nothing else, so that topics have somewhere to be."""
    threads = Threads("paper broker", 1)
    env = real_env(threads)
    addresses = [node.address for node in quorum.nodes.values()]
    registration = controller_pb2.RegisterNodeRequest(
        hello=make_hello(quorum.cluster_id, node_id),
        incarnation=os.urandom(16),
        roles=["broker"],
        address=NodeAddress(node_id=node_id, host="127.0.0.1", port=1),
        former_broker_epoch=-1,
    )
    session = NodeSession(
        env,
        QuorumClient(env, addresses),
        registration,
        session_timeout_ms=3_000,
        image_index=lambda: 1 << 40,
        on_notice=lambda _notice, _sent_ms: None,
    )
    await session.register()
    session.announce(ready=True)
    async with asyncio.TaskGroup() as tasks:
        holding = tasks.create_task(session.run())
        async with asyncio.timeout(10):
            while session.fenced:  # noqa: ASYNC110 - the session has no event for it
                await asyncio.sleep(0.01)
        try:
            yield session
        finally:
            holding.cancel()
    await env.transport.close()
    threads.close()


def raise_unless_done(result: admin_pb2.TopicResult) -> None:
    """A topic that exists was made by an earlier try whose answer was lost."""
    with contextlib.suppress(TopicExists):
        raise_if_error(result.error)


def lost_changes(clients: Sequence[MetadataClient], image: ClusterImage) -> list[str]:
    """Acknowledged changes that an image lacks."""
    lost = [name for client in clients for name in client.told.topics if image.topic(name) is None]
    for client in clients:
        settings = image.configs(ConfigResource.TOPIC, client.name)
        if int(settings.get(SETTING, "0")) < client.told.number:
            lost.append(f"{client.name}: {client.told.number} of {settings}")
    return lost
