"""Roll every StatefulSet of the dev overlay under load, in Kubernetes' order, with its own probes.

    unshare --mount python -m tests.k8s.roll [--sets suiro-broker,suiro-controller] [--partitions 6]

From the highest ordinal down, each pod once the one before is ready. Fails if a send fails, if a
partition is seen without a leader, or if anything acknowledged is lost, duplicated or out of order.
Run it in a mount namespace of its own: it puts its own /etc/hosts in place.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from suiro.aio import Admin
from suiro.model.ids import Address, NodeId

from cluster.local_cluster import LocalNode
from tests.cluster.replication_load import Load, judge, make_topic
from tests.cluster.replication_roll import Watcher
from tests.k8s.manifests import OVERLAYS, render
from tests.k8s.pods import Pod, hosts_file, pods_of, reason_against

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

OVERLAY = OVERLAYS / "dev"
PORT = 9750


def brokers_of(pods: Sequence[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.name.startswith("suiro-broker-")]


def bootstrap_of(pods: Sequence[Pod]) -> str:
    return ",".join(f"{pod.address}:{PORT}" for pod in brokers_of(pods))


@asynccontextmanager
async def running(root: Path) -> AsyncIterator[list[Pod]]:
    """All pods of the overlay, ready."""
    pods, network = pods_of(render(OVERLAY), root)
    with own_hosts(root / "hosts", hosts_file(pods)), network:
        try:
            await asyncio.gather(*(pod.start() for pod in pods))
            yield pods
        finally:
            for pod in pods:
                pod.kill()


@contextmanager
def own_hosts(path: Path, text: str) -> Iterator[None]:
    """Names for this process, and those that it starts."""
    path.write_text(text)
    subprocess.run(["mount", "--bind", str(path), "/etc/hosts"], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "/etc/hosts"], check=True)


async def roll(pods: Sequence[Pod], sets: Sequence[str]) -> list[str]:
    """Restart the pods of these sets as a changed template does; a line for each."""
    lines = []
    for name in sets:
        mine = [pod for pod in pods if pod.name.rpartition("-")[0] == name]
        for pod in reversed(mine):
            began_s = time.monotonic()
            await pod.stop()
            stopped_s = time.monotonic()
            await pod.start()
            ready_s = time.monotonic()
            await asyncio.sleep(pod.manifest["spec"]["minReadySeconds"])
            lines.append(f"{pod.name:22} {stopped_s - began_s:8.2f} {ready_s - stopped_s:9.2f}")
    return lines


async def run(root: Path, sets: Sequence[str], partitions: int) -> bool:
    async with running(root) as pods:
        bootstrap = bootstrap_of(pods)
        await make_topic(bootstrap, partitions)
        load = Load(bootstrap, partitions)
        async with load.running(), Admin(bootstrap) as admin:
            watcher = Watcher(admin)
            watching = asyncio.create_task(watcher.run(), name="watcher")
            await load.writable_after(0, time.monotonic())
            lines = await roll(pods, sets)
            await load.writable_after(0, time.monotonic())
            watching.cancel()
        ends = await load.read_all()
        for pod in brokers_of(pods):
            await pod.stop()
    brokers = [
        LocalNode(pod.name, pod.volume, NodeId(number), Address(pod.address, PORT))
        for number, pod in enumerate(brokers_of(pods), 1)
    ]
    verdict = judge(load, brokers, ends)
    print("\n".join(["restarted                stop s   ready s", *lines]))
    print(f"failed sends                   {dict(load.failures) or 'none'}")
    print(f"looks, offline partitions      {watcher.looks}, {watcher.offline[:3] or 'none'}")
    print("\n".join(verdict.lines()))
    return verdict.is_good and not load.failures and not watcher.offline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    every = "suiro-controller,suiro-broker,suiro-group,suiro-txn"
    parser.add_argument("--sets", default=every)
    parser.add_argument("--partitions", type=int, default=6)
    options = parser.parse_args()
    if (reason := reason_against()) is not None:
        sys.exit(reason)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to stop"))  # leaves nothing behind
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        is_good = asyncio.run(run(Path(root), options.sets.split(","), options.partitions))
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
