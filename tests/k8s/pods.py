"""Pods as processes: the very commands of the manifests, with what a pod would give them.

Every pod has a network namespace of its own, so each listens on the same port; the files of the
ConfigMap are at /etc/suiro and its volume at /var/lib/suiro, in a mount namespace of its own.
Names are in /etc/hosts. What restarts a pod does what a kubelet does: preStop, SIGTERM, the grace
period, init containers, startup probe, readiness probe. Needs root; see `reason_against`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.cluster import netns
from tests.k8s.manifests import Manifest, node_of, of_kind, pod_of

if TYPE_CHECKING:
    from collections.abc import Sequence

STARTED_S_MAX = 120.0
MOUNT = """
set -e
for place in /etc /var/lib; do
  over="$FOLDER/mount$place"
  mkdir -p "$over/up" "$over/work"
  mount -t overlay suiro -o "lowerdir=$place,upperdir=$over/up,workdir=$over/work" "$place"
done
mkdir -p /etc/suiro /var/lib/suiro
mount --bind "$CONFIG" /etc/suiro
mount --bind "$VOLUME" /var/lib/suiro
mount --bind "$CONFIG/../hosts" /etc/hosts
exec "$@"
"""


def reason_against() -> str | None:
    """Why pods cannot be played here; None if they can."""
    return netns.reason_against()


@dataclass
class Pod:
    """One pod of a StatefulSet."""

    name: str
    manifest: Manifest
    folder: Path
    config: Path
    env: dict[str, str]
    address: str
    within: Sequence[str]
    process: subprocess.Popen[bytes] | None = None

    @property
    def volume(self) -> Path:
        return self.folder / "volume"

    @property
    def log_path(self) -> Path:
        return self.folder / "node.log"

    def command(self, container: Manifest) -> list[str]:
        """The image's entry point and the manifest's arguments, with $(NAMES) filled in."""
        given = [*container.get("command", ["suiro"]), *container.get("args", [])]
        return [re.sub(r"\$\((\w+)\)", lambda found: self.env[found[1]], word) for word in given]

    def spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        self.volume.mkdir(parents=True, exist_ok=True)
        places = {"FOLDER": self.folder, "CONFIG": self.config, "VOLUME": self.volume}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, **self.env, **{k: str(v) for k, v in places.items()}, "PATH": path}
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                [*self.within, "unshare", "--mount", "sh", "-c", MOUNT, "pod", *command],
                env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    async def run_to_its_end(self, command: list[str]) -> None:
        process = self.spawn(command)
        code = await asyncio.to_thread(process.wait, STARTED_S_MAX)
        assert code == 0, f"{shlex.join(command)} in {self.name} ended with {code}:\n{self.log()}"

    async def start(self) -> None:
        """Init containers, the node, its startup probe, its readiness probe."""
        for container in pod_of(self.manifest)["initContainers"]:
            await self.run_to_its_end(self.command(container))
        node = node_of(self.manifest)
        self.process = self.spawn(self.command(node))
        await self.probed(node["startupProbe"])
        await self.probed(node["readinessProbe"])

    async def probed(self, probe: Manifest) -> None:
        """Until the probe succeeds."""
        until_s = time.monotonic() + STARTED_S_MAX
        where = f"{self.address}:{probe['grpc']['port']}"
        request = health_pb2.HealthCheckRequest(service=probe["grpc"]["service"])
        async with grpc.aio.insecure_channel(where) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            while not await _serves(stub, request):
                assert self.process is not None
                assert self.process.poll() is None, f"{self.name} ended:\n{self.log()}"
                assert time.monotonic() < until_s, f"{self.name} is not well:\n{self.log()}"
                await asyncio.sleep(0.2)

    async def stop(self) -> None:
        """As a pod is deleted: the hook, then SIGTERM; both within the grace period."""
        began_s = time.monotonic()
        await self.run_to_its_end(node_of(self.manifest)["lifecycle"]["preStop"]["exec"]["command"])
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        grace_s = pod_of(self.manifest)["terminationGracePeriodSeconds"]
        left_s = grace_s - (time.monotonic() - began_s)
        code = await asyncio.to_thread(self.process.wait, left_s)
        assert code == 0, f"{self.name} ended with {code}:\n{self.log()}"

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")[-3_000:]


async def _serves(stub: Any, request: Any) -> bool:
    try:
        reply = await stub.Check(request, timeout=2)
    except grpc.aio.AioRpcError:
        return False
    return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)


def pods_of(manifests: list[Manifest], root: Path) -> tuple[list[Pod], netns.Namespaces]:
    """Every pod of every StatefulSet, and the network they are on, not made yet."""
    sets = of_kind(manifests, "StatefulSet")
    names = [f"{n}-{i}" for n, m in sets.items() for i in range(m["spec"]["replicas"])]
    network = netns.Namespaces(names)
    maps = of_kind(manifests, "ConfigMap")
    config = root / "config"
    config.mkdir()
    pods = []
    for name in names:
        manifest = sets[name.rpartition("-")[0]]
        pod = Pod(name, manifest, root / name, config, {}, network.host(name), network.within(name))
        pod.env = _environment(pod, maps)
        pod.folder.mkdir()
        pods.append(pod)
    (volume,) = {_config_map(pod.manifest) for pod in pods}
    for file, text in maps[volume]["data"].items():
        (config / file).write_text(text)
    return pods, network


def _config_map(manifest: Manifest) -> str:
    volumes = {v["name"]: v for v in pod_of(manifest)["volumes"]}
    return str(volumes["config"]["configMap"]["name"])


def _environment(pod: Pod, maps: dict[str, Manifest]) -> dict[str, str]:
    fields = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.manifest["metadata"]["namespace"],
        "metadata.labels['topology.kubernetes.io/zone']": "",
    }
    env = {}
    for entry in node_of(pod.manifest)["env"]:
        source = entry["valueFrom"]
        if "fieldRef" in source:
            env[entry["name"]] = fields[source["fieldRef"]["fieldPath"]]
        else:
            key = source["configMapKeyRef"]
            env[entry["name"]] = maps[key["name"]]["data"][key["key"]]
    return env


def hosts_file(pods: list[Pod]) -> str:
    """What the cluster's DNS would say."""
    lines = ["127.0.0.1 localhost"]
    for pod in pods:
        service = pod.manifest["spec"]["serviceName"]
        short = f"{pod.name}.{service}"
        lines.append(f"{pod.address} {short} {short}.{pod.env['POD_NAMESPACE']}.svc")
    return "\n".join(lines) + "\n"
