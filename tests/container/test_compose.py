"""The image and compose.yaml: a working cluster, seen from outside, that loses nothing.

Needs an engine and the image; `make container-test` brings both, and `make test` leaves it out.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.cli_kit import Shell, suiro_cli, suiro_here

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PROJECT = "suiro-test"
BROKERS = {"broker-0": "172.30.97.21", "broker-1": "172.30.97.22", "broker-2": "172.30.97.23"}
CONTROLLERS = {f"controller-{n}": f"172.30.97.1{n + 1}" for n in range(3)}
OTHERS = {
    "group-0": "172.30.97.31", "group-1": "172.30.97.32",
    "txn-0": "172.30.97.41", "txn-1": "172.30.97.42",
}  # fmt: skip
NODES = BROKERS | CONTROLLERS | OTHERS
READY_S = 180


def reason_against() -> str | None:
    """Why there can be no containers here; None if there can."""
    engine = subprocess.run(
        [ROOT / "container" / "engine.sh"], check=False, capture_output=True, text=True
    )
    if engine.returncode:
        return engine.stdout.strip()
    image = subprocess.run(
        ["docker", "image", "inspect", "suiro:latest"], check=False, capture_output=True
    )
    return "there is no image suiro:latest; `make image` builds it" if image.returncode else None


pytestmark = [
    pytest.mark.container,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(reason_against() is not None, reason=str(reason_against())),
]


def compose(*words: str) -> None:
    command = ["docker-compose", "--project-name", PROJECT, *words]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def container(name: str) -> str:
    return f"{PROJECT}_{name}_1"


def wait_ready(name: str) -> None:
    until_s = time.monotonic() + READY_S
    while suiro_here("node", "probe", "--address", f"{NODES[name]}:9750").returncode:
        log = docker("logs", "--tail", "20", container(name))
        assert time.monotonic() < until_s, f"{name} is not ready:\n{log}"


@pytest.fixture(scope="module")
def shell() -> Iterator[Shell]:
    compose("up", "--detach")
    try:
        for name in NODES:
            wait_ready(name)
        yield Shell(",".join(BROKERS.values()))
    finally:
        compose("down", "--volumes", "--timeout", "20")


def inspect(name: str) -> Any:
    return json.loads(docker("inspect", container(name)))[0]


def test_the_cluster_is_whole(shell: Shell) -> None:
    found = shell.data("health")
    assert (found["healthy"], found["nodes"]) == (True, len(BROKERS | OTHERS))
    assert len(shell.data("quorum", "status")["members"]) == 3


def test_a_node_may_do_little(shell: Shell) -> None:
    assert shell.bootstrap
    for name in NODES:
        found = inspect(name)
        assert found["HostConfig"]["ReadonlyRootfs"] is True
        assert found["HostConfig"]["CapDrop"] == ["ALL"]
        assert docker("exec", container(name), "id", "-u").strip() == "65532"
    tools = "command -v pip pip3 gcc cc make; exit 0"
    assert docker("exec", container("broker-0"), "sh", "-c", tools) == ""


def produced(shell: Shell, first: int, count: int) -> list[str]:
    lines = [f"record {number}" for number in range(first, first + count)]
    done = suiro_cli("produce", "kept", "-b", shell.bootstrap, given="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    return lines


def test_killed_containers_lose_nothing(shell: Shell) -> None:
    """Every broker and every controller is killed and started again, one after the other, and
    records are written while each is away."""
    shell.ask("topic", "create", "kept", "-p", "3", "-r", "3", "-c", "min.insync.replicas=2")
    written = produced(shell, 0, 1_000)
    for name in [*BROKERS, *CONTROLLERS]:
        docker("kill", "--signal", "KILL", container(name))
        written += produced(shell, len(written), 200)
        docker("start", container(name))
        wait_ready(name)
    shell.ask("health", "--wait", "60")
    read = shell.ask("consume", "kept", "--from-beginning", "-n", str(len(written))).splitlines()
    assert sorted(read) == sorted(written)
    more = shell.ask("consume", "kept", "--from-beginning", "--timeout", "3").splitlines()
    assert len(more) == len(written), "nothing is stored twice"
