"""`suiro node format` on real processes: founding, coming late, losing a volume."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cluster.local_cluster import free_port
from tests.cluster.cli_kit import suiro_here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

NAMES = ["controller-0", "controller-1", "controller-2"]


class Controllers:
    """Three controllers with one file, as a ConfigMap gives it, but for where they listen."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cluster_id = suiro_here("storage", "random-uuid").stdout.strip()
        self.addresses = {name: f"127.0.0.1:{free_port()}" for name in NAMES}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name, address in self.addresses.items():
            (root / f"{name}.toml").write_text(
                f'cluster_id = "{self.cluster_id}"\nfirst_node_id = 101\nroles = ["controller"]\n'
                f'data_dir = "{self.data(name)}"\nlisten = "{address}"\n'
                f"controllers = {list(self.addresses.values())}\n"
            )

    def data(self, name: str) -> Path:
        return self.root / name

    def node(self, verb: str, name: str, *more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "suiro.cli", "node", verb, "--name", name]
        command += ["--config", str(self.root / f"{name}.toml"), *more]
        return subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)

    def founders(self, name: str) -> object:
        return json.loads((self.data(name) / "founding.json").read_text())["founders"]

    def is_ready(self, name: str) -> bool:
        return suiro_here("node", "probe", "--address", self.addresses[name]).returncode == 0

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.communicate()

    def start(self, *names: str) -> None:
        for name in names:
            self.running[name] = self.node("run", name)
        for name in names:
            while not self.is_ready(name):
                assert self.running[name].poll() is None, f"{name} ended"


@pytest.fixture
def controllers(tmp_path: Path) -> Iterator[Controllers]:
    made = Controllers(tmp_path)
    yield made
    for name in list(made.running):
        made.kill(name)


def said(step: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, text = step.communicate(timeout=60)
    return step.returncode, text.decode()


def test_controllers_found_a_quorum_once(controllers: Controllers) -> None:
    alone = controllers.node("format", NAMES[0], "--timeout", "1")
    assert said(alone)[0] == 1
    assert not (controllers.data(NAMES[0]) / "identity.json").exists()

    steps = [controllers.node("format", name) for name in NAMES]
    for step in steps:
        code, text = said(step)
        assert code == 0, text
    assert controllers.founders(NAMES[0]) == controllers.founders(NAMES[2])
    controllers.start(*NAMES)

    # Its volume is lost while the others are away: nobody tells it that there is a quorum, and it
    # waits rather than found another.
    for name in NAMES:
        controllers.kill(name)
    shutil.rmtree(controllers.data(NAMES[0]))
    code, text = said(controllers.node("format", NAMES[0], "--timeout", "2"))
    assert (code, "lost its volume" in text) == (1, True)

    # They are back: it becomes one that can be added, and is ready when it has been.
    controllers.start(NAMES[1], NAMES[2])
    code, text = said(controllers.node("format", NAMES[0]))
    assert (code, "as one to be added" in text) == (0, True)
    controllers.running[NAMES[0]] = controllers.node("run", NAMES[0])
    bootstrap = ("--bootstrap", ",".join(controllers.addresses.values()))
    directory = text.split()[-1]
    where = controllers.addresses[NAMES[0]]
    for words in (("remove", "101"), ("add", "101", where, directory)):
        answer = suiro_here("quorum", *words, *bootstrap)
        assert answer.returncode == 0, answer.stderr
    while not controllers.is_ready(NAMES[0]):
        assert controllers.running[NAMES[0]].poll() is None
