"""The same cluster as containers: each node is one, from the image of `make image`.

What the faults do to a node (`LocalNode`) and to the network is done by the engine, through the
docker SDK: kill, pause, stop, take off the network. Every container has an address of its own, and
the node's folder of this machine at the same path, so that settings need no change. The rest of the
container is as in compose.yaml: not root, a read-only root file system, no capability.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from suiro.model.errors import Unavailable

from cluster.local_cluster import READY_MARK, READY_TIMEOUT_S, STOP_TIMEOUT_S, LocalCluster
from cluster.local_cluster import LocalNode as Node
from tests.chaos.site import NAMES, Site, layout_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

IMAGE: Final = "suiro:latest"
USER: Final = 65_532
SUBNET: Final = "172.30.98"
POLL_S: Final = 0.02
ENGINE: Final = Path(__file__).parents[2] / "container" / "engine.sh"

KINDS: Final = (
    "kill leader", "kill controller", "kill txn coordinator", "kill group coordinator",
    "kill leader and controller", "pause longer than a session", "short pause", "cut off",
    "rolling restart", "reassignment", "controller hand-over", "rebalance storm", "overload",
)  # fmt: skip
"""What can be done to containers by their engine alone."""


def reason_against() -> str | None:
    """Why there can be no containers here; None if there can."""
    try:
        import docker
    except ImportError:
        return "the docker SDK is missing: `make setup`"
    engine = subprocess.run([ENGINE], check=False, capture_output=True, text=True)
    if engine.returncode:
        return engine.stdout.strip()
    client = docker.from_env()
    try:
        client.images.get(IMAGE)
    except docker.errors.ImageNotFound:
        return f"there is no image {IMAGE}; `make image` builds it"
    finally:
        client.close()
    return None


class ContainerNode(Node):
    """A node whose process is a container's."""

    def __init__(self, node: Node, engine: Any, network: Any) -> None:
        super().__init__(node.name, node.folder, node.node_id, node.address)
        self._network = network
        self._container = engine.containers.create(
            IMAGE,
            ["node", "run", "--config", str(self.config_path)],
            name=f"suiro-chaos-{os.getpid()}-{node.name}",
            user=f"{USER}:{USER}",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true"],
            volumes={str(node.folder): {"bind": str(node.folder), "mode": "rw"}},
            network=network.name,
            working_dir=str(node.folder),
        )
        self._started_at = 0
        network.disconnect(self._container)
        self.plug_in()

    def plug_in(self) -> None:
        self._network.connect(self._container, ipv4_address=self.address.host)

    def unplug(self) -> None:
        self._network.disconnect(self._container, force=True)

    @property
    def is_running(self) -> bool:
        self._container.reload()
        return bool(self._container.status in {"running", "paused"})

    def start(self) -> None:
        assert not self.is_running
        self._started_at = len(self._container.logs())
        self._container.start()

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        deadline_s = time.monotonic() + timeout_s
        while READY_MARK not in self.new_log():
            if not self.is_running or time.monotonic() > deadline_s:
                log = self.new_log().decode(errors="replace")
                raise Unavailable(f"{self.name} did not become ready; its log says:\n{log}")
            time.sleep(POLL_S)

    def new_log(self) -> bytes:
        return bytes(self._container.logs()[self._started_at :])

    def signal(self, number: signal.Signals) -> None:
        if not self.is_running:
            return
        if number is signal.SIGSTOP:
            self._container.pause()
        elif number is signal.SIGCONT:
            if self._container.status == "paused":
                self._container.unpause()
        else:
            self._container.kill(number.name)

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        return int(self._container.wait(timeout=timeout_s)["StatusCode"])

    def remove(self) -> None:
        (self.folder / "container.log").write_bytes(self._container.logs())
        self._container.remove(force=True, v=True)  # with the volume that the image declares


class Plugs:
    """The network as the faults see it: a container is on it or not."""

    def __init__(self, nodes: dict[str, ContainerNode]) -> None:
        self._nodes = nodes
        self._out: set[str] = set()

    def cut_all(self, ways: Iterable[tuple[str, str]]) -> None:
        """Only one node can be cut off, from all others, in both directions; from clients too."""
        pairs = set(ways)
        (name,) = {a for a, _ in pairs if all(a in pair for pair in pairs)}
        self._nodes[name].unplug()
        self._out.add(name)

    def heal(self) -> None:
        for name in sorted(self._out):
            self._nodes[name].plug_in()
        self._out.clear()


@contextmanager
def containers(root: Path) -> Iterator[Site]:
    """Everything up; leaves no container and no network behind."""
    import docker

    root = root.resolve()  # it is mounted by its path
    hosts = [f"{SUBNET}.{number}" for number in range(11, 11 + len(NAMES))]
    cluster = LocalCluster(root, layout_at(hosts))
    _give_away(root)
    with ExitStack() as stack:
        engine = docker.from_env()
        stack.callback(engine.close)
        pool = docker.types.IPAMPool(subnet=f"{SUBNET}.0/24")
        network = engine.networks.create(
            f"suiro-chaos-{os.getpid()}", ipam=docker.types.IPAMConfig(pool_configs=[pool])
        )
        stack.callback(network.remove)
        nodes = {}
        for name, node in cluster.nodes.items():
            nodes[name] = ContainerNode(node, engine, network)
            stack.callback(nodes[name].remove)
        cluster.nodes = dict(nodes)
        stack.enter_context(cluster)
        yield Site(cluster, Plugs(nodes), {})


def _give_away(root: Path) -> None:
    """The folders belong to the user of the image; everybody may enter what is above them."""
    root.chmod(0o755)
    for path in (root, *root.rglob("*")):
        os.chown(path, USER, USER)


def kinds_of(kinds: Sequence[str] | None) -> list[str]:
    """The kinds that are asked for, or all that can be done here."""
    unknown = sorted(set(kinds or ()) - set(KINDS))
    if unknown:
        raise SystemExit(f"containers know no {', '.join(unknown)}; they know {', '.join(KINDS)}")
    return list(kinds or KINDS)
