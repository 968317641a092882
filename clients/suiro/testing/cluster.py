"""A cluster of real processes that a test may harm."""

from __future__ import annotations

import itertools
import json
import random
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from cluster.host.fs import OsFs
from cluster.host.store import RocksStore
from cluster.local_cluster import LocalNode, free_port
from cluster.storage import (
    Founder,
    Identity,
    format_directory,
    random_cluster_id,
    random_directory_id,
)
from suiro.admin import Admin
from suiro.consumer import Consumer
from suiro.model.errors import InvalidRequest
from suiro.model.ids import Address, NodeId
from suiro.producer import Producer
from suiro.testing.keeper import Keeper
from suiro.testing.links import CLIENT, HOST, Links

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Names = int | str | Iterable[int | str]

HEAD: Final = "head"
HEAD_ID: Final = NodeId(100)
HEAD_ROLES: Final = ("controller", "group", "txn")
SHARDS: Final = 2
"""Partitions of each internal topic: a test has few groups, and few start faster."""
START_TIMEOUT_S: Final = 60.0


class Cluster:
    """One broker with everything else in the same process, or several brokers and one more process,
    `head`, for the rest. Its data is in a directory that goes away with it. Nothing of it outlives
    the process that made it, however that ends.

    Brokers are named by their number, from 1 on. What is cut, paused or killed stays so until it is
    healed, resumed or restarted.

    >>> with Cluster() as small:
    ...     with small.producer() as producer:
    ...         producer.send(small.topic("news"), b"hello").result(10).offset
    0
    """

    def __init__(self, brokers: int = 1, *, directory: Path | None = None) -> None:
        if brokers < 1:
            raise InvalidRequest(f"a cluster of {brokers} brokers; it needs at least one")
        self._made = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="suiro-"))
        self._topics = itertools.count(1)
        self._nodes: dict[str, LocalNode] = {}
        self._links = Links(self._pids)
        self._keeper = Keeper(str(self.directory) if self._made else "")
        self._replicas = min(3, brokers)
        try:
            self._lay_out(brokers)
        except BaseException:
            self._close()
            raise

    # -- its life ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start whatever does not run; returns once everything serves.

        >>> cluster.start()
        """
        down = [node for node in self._nodes.values() if not node.is_running]
        for node in down:
            self._start(node)
        for node in down:
            node.wait_ready(START_TIMEOUT_S)

    def stop(self) -> None:
        """End every process, at once, and remove the data.

        >>> other = Cluster()
        >>> other.start()
        >>> other.stop()
        """
        for node in self._nodes.values():
            if node.is_running:
                self._kill(node)
        self._close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- its clients ------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """Where clients connect.

        >>> cluster.bootstrap.startswith("suiro://127.0.0.1:")
        True
        """
        brokers = (node.address for name, node in self._nodes.items() if name != HEAD)
        return "suiro://" + ",".join(map(str, brokers))

    @property
    def brokers(self) -> list[int]:
        """Their numbers.

        >>> cluster.brokers
        [1]
        """
        return [int(name.removeprefix("broker-")) for name in self._nodes if name != HEAD]

    def producer(self, **settings: Any) -> Producer:
        """A producer of this cluster, to be closed by a `with`.

        >>> with cluster.producer(linger_ms=0) as producer:
        ...     producer.send("greetings", b"hello").result(10).topic
        'greetings'
        """
        return Producer(self.bootstrap, **settings)

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer of this cluster, to be closed by a `with`.

        >>> with cluster.consumer(auto_offset_reset="earliest") as consumer:
        ...     consumer.assign(consumer.partitions_of("fruit"))
        ...     consumer.poll(10)[0].value
        b'apple'
        """
        return Consumer(self.bootstrap, **settings)

    def admin(self) -> Admin:
        """An Admin of this cluster, to be closed by a `with`.

        >>> with cluster.admin() as admin:
        ...     "fruit" in admin.topics()
        True
        """
        return Admin(self.bootstrap)

    def topic(
        self,
        name: str = "",
        *,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Make a topic, on three brokers or all there are; its name, which is new unless given.

        >>> cluster.topic("letters", partitions=2)
        'letters'
        """
        name = name or f"topic-{next(self._topics)}"
        with self.admin() as admin:
            admin.create_topic(
                name,
                partitions=partitions,
                replication_factor=replication_factor or self._replicas,
                configs=dict(configs or {}),
            )
        return name

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition: the one to kill.

        >>> cluster.leader("fruit")
        1
        """
        with self.admin() as admin:
            leader = admin.describe_topic(topic).partitions[partition].leader
        if leader is None:
            raise InvalidRequest(f"{topic}-{partition} has no leader now")
        return int(leader)

    # -- faults -----------------------------------------------------------------------------------

    def kill(self, node: int | str) -> None:
        """kill -9: nothing is flushed, nobody is told.

        >>> cluster.kill(1)
        >>> cluster.restart(1)
        """
        self._kill(self._running(node))

    def restart(self, node: int | str) -> None:
        """Start it again with what its disk has; it is killed first if it runs. Returns once it
        serves.

        >>> cluster.restart(1)
        """
        found = self._node(node)
        if found.is_running:
            self._kill(found)
        self._start(found)
        found.wait_ready(START_TIMEOUT_S)

    def pause(self, node: int | str) -> None:
        """SIGSTOP: it hangs, with all its connections open.

        >>> cluster.pause(1)
        >>> cluster.resume(1)
        """
        self._running(node).signal(signal.SIGSTOP)

    def resume(self, node: int | str) -> None:
        """SIGCONT: it goes on, and does not know that time has passed.

        >>> cluster.pause(1)
        >>> cluster.resume(1)
        """
        self._running(node).signal(signal.SIGCONT)

    def partition(self, one: Names, other: Names = (), *, one_way: bool = False) -> None:
        """Cut the network between these; without a second side, between the first and everybody
        else. `one_way`: only what goes from the first to the second is lost. "client" is whoever
        is no node. Earlier cuts go away.

        >>> cluster.partition(1, "client")
        >>> cluster.heal()
        """
        these = self._names(one)
        those = self._names(other) or {*self._nodes, CLIENT} - these
        cut = {(a, b) for a in these for b in those if a != b}
        if not one_way:
            cut |= {(b, a) for a, b in cut}
        self._links.set_cut(frozenset(cut))

    def heal(self) -> None:
        """The whole network works again.

        >>> cluster.partition(1, "client")
        >>> cluster.heal()
        """
        self._links.set_cut(frozenset())

    def log_of(self, node: int | str) -> str:
        """What a node has logged since its last start.

        >>> "ready" in cluster.log_of(1)
        True
        """
        return self._node(node).new_log().decode(errors="replace")

    # -- inside -----------------------------------------------------------------------------------

    def _start(self, node: LocalNode) -> None:
        self._links.open(node.name)
        node.start()
        assert node.process is not None
        self._keeper.watch(node.process.pid)

    def _kill(self, node: LocalNode) -> None:
        node.signal(signal.SIGCONT)
        node.kill()
        self._links.shut(node.name)

    def _close(self) -> None:
        self._links.close()
        self._keeper.close()

    def _names(self, given: Names) -> set[str]:
        if isinstance(given, int | str):
            given = (given,)
        return {item if item == CLIENT else self._node(item).name for item in given}

    def _node(self, given: int | str) -> LocalNode:
        name = f"broker-{given}" if isinstance(given, int) else given
        if name not in self._nodes:
            known = ", ".join(self._nodes)
            raise InvalidRequest(f"there is no node {given!r} in this cluster; it has {known}")
        return self._nodes[name]

    def _running(self, given: int | str) -> LocalNode:
        node = self._node(given)
        if not node.is_running:
            raise InvalidRequest(f"{node.name} does not run; `restart` starts it again")
        return node

    def _pids(self) -> dict[str, int]:
        return {n.name: n.process.pid for n in self._nodes.values() if n.process is not None}

    def _lay_out(self, brokers: int) -> None:
        dice = random.SystemRandom()
        cluster_id = random_cluster_id(dice)
        names = (
            ["broker-1"] if brokers == 1 else [HEAD, *(f"broker-{n + 1}" for n in range(brokers))]
        )
        founder: Founder | None = None
        for name in names:
            node_id = HEAD_ID if name == HEAD else NodeId(int(name.removeprefix("broker-")))
            identity = Identity(cluster_id, node_id, random_directory_id(dice))
            is_first = founder is None
            listen, found_at = self._addresses(name)
            founder = founder or Founder(node_id, identity.directory_id, found_at)
            roles = (*(HEAD_ROLES if is_first else ()), *(() if name == HEAD else ("broker",)))
            folder = self.directory / name
            founders = [founder] if is_first else None
            format_directory(OsFs(), RocksStore, folder / "data", identity, founders)
            settings = {
                "node_id": node_id,
                "roles": list(roles),
                "data_dir": str((folder / "data").absolute()),
                "listen": str(listen),
                "advertise": str(found_at),
                "controllers": [str(founder.address)],
                "internal_replication_factor": self._replicas,
                "offsets_partitions": SHARDS,
                "transactions_partitions": SHARDS,
            }
            # What JSON writes of numbers, plain strings and lists of them is TOML too.
            lines = (f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
            (folder / "node.toml").write_text("".join(lines))
            self._nodes[name] = LocalNode(name, folder, node_id, found_at)

    def _addresses(self, name: str) -> tuple[Address, Address]:
        """Where a node listens, and where others find it."""
        port = free_port()
        return Address(HOST, port), Address(HOST, self._links.add(name, port))
