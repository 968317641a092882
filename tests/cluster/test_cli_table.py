"""Every command on a real cluster: it works; it fails with the right exit code, and says why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.cli.app import app
from typer.main import get_command

from cluster.local_cluster import Layout, LocalCluster, free_port
from tests.cluster.cli_kit import Answer, suiro_cli, suiro_here
from tests.cluster.cli_table import FAILS, WORKS
from tests.cluster.operator_kit import node_of, wait_until
from tests.unit.cli.test_help import commands

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

LAYOUT = Layout(controllers=1, brokers=4, groups=1, txns=1)
SECOND_DISK = 'log_dirs = ["{data}/log", "{data}/second"]\n'
NODE = (
    'node_id = {node_id}\nroles = ["{role}"]\ndata_dir = "{data}"\n'
    'listen = "{listen}"\ncontrollers = ["{controller}"]\ncluster_id = "{cluster_id}"\n'
)
TAKES_BOOTSTRAP = {
    path.removeprefix("suiro ")
    for path, command in commands(get_command(app))
    if any("--bootstrap" in parameter.opts for parameter in command.params)
}
SHOWS = {
    path.removeprefix("suiro ")
    for path, command in commands(get_command(app))
    if any("--output" in parameter.opts for parameter in command.params)
}
"""Commands with -o json."""

SHAPES_FILE = Path(__file__).parent / "cli_shapes.json"
SHAPES: dict[str, list[str]] = json.loads(SHAPES_FILE.read_text())


class Bench:
    """A cluster with something of everything, and the names of the table."""

    def __init__(self, cluster: LocalCluster, scratch: Path) -> None:
        self.cluster = cluster
        self.scratch = scratch
        self.names: dict[str, object] = {}

    def fill(self) -> None:
        """Topics, records, a group; then the names."""
        scratch = self.scratch
        (scratch / "lines").write_text("a:one\nb:two\nc:three\n")
        with suiro.Admin(self.cluster.bootstrap) as admin:
            admin.create_topic("orders", partitions=2, replication_factor=3)
            admin.create_topic("spread", partitions=8, replication_factor=1)
            admin.create_topic("moving", partitions=1, replication_factor=1)
            owner = admin.describe_topic("moving").partitions[0].leader
            followed = admin.describe_topic("orders").partitions[0].leader
        with suiro.Producer(self.cluster.bootstrap) as producer:
            for partition in (0, 1):
                producer.send("orders", b"one", key=b"a", partition=partition).result(30)
        with suiro.Consumer(
            self.cluster.bootstrap, group_id="billing", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe("orders")
            wait_until(lambda: bool(consumer.poll(0.5)), "a record")
            consumer.commit()
        data = node_of(self.cluster, followed).folder / "data"
        (files,) = data.glob("*/orders-0")
        self.names = {
            "bootstrap": self.cluster.bootstrap,
            "cluster_id": self.cluster.cluster_id,
            "controller": self.cluster.controllers[0].address,
            "group_toml": self.cluster.nodes["group-1"].config_path,
            "lines": scratch / "lines",
            "nobody": f"127.0.0.1:{free_port()}",
            "owner": owner,
            "partition": files,
            "plan": scratch / "plan.json",
            "scratch": scratch,
            "second": node_of(self.cluster, owner).folder / "data" / "second",
            "segment": files / f"{0:020}.log",
            "blank_toml": self.settings(8, "broker"),
        }
        planned = self.run("reassign plan", "--drain 4 --topics spread -o json")
        (scratch / "plan.json").write_text(planned.stdout)

    def settings(self, node_id: int, role: str) -> Path:
        """A file for one more node."""
        path = self.scratch / f"{role}-{node_id}.toml"
        text = NODE.format(
            node_id=node_id,
            role=role,
            data=self.scratch / f"data-{node_id}",
            listen=f"127.0.0.1:{free_port()}",
            controller=self.cluster.controllers[0].address,
            cluster_id=self.cluster.cluster_id,
        )
        path.write_text(text)
        return path

    def run(self, command: str, rest: str) -> Answer:
        words = [word.format(**self.names) for word in rest.split()]
        if command in TAKES_BOOTSTRAP and "--bootstrap" not in words:
            words += ["--bootstrap", self.cluster.bootstrap]
        return suiro_here(*command.split(), *words)

    def says(self, text: str) -> str:
        return text.format(**self.names)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    cluster = LocalCluster(tmp_path_factory.mktemp("cluster"), LAYOUT)
    for node in cluster.brokers:
        data = node.folder / "data"
        with node.config_path.open("a") as settings:
            settings.write(SECOND_DISK.format(data=data))
    with cluster:
        made = Bench(cluster, tmp_path_factory.mktemp("scratch"))
        made.fill()
        with suiro.Producer(cluster.bootstrap, transactional_id="copier") as producer:
            producer.begin_transaction()
            producer.send("orders", b"x", partition=1).result(30)
            yield made


@pytest.fixture(autouse=True)
def _no_contexts_of_ours(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "config"))
    for name in ("SUIRO", "SUIRO_CONTEXT"):
        monkeypatch.setenv(name, "")


@pytest.mark.parametrize("command", FAILS)
def test_a_command_fails_with_its_exit_code_and_says_why(bench: Bench, command: str) -> None:
    rest, code, says = FAILS[command]
    answer = bench.run(command, rest)
    assert answer.returncode == code, answer.stdout + answer.stderr
    assert bench.says(says) in answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr


def paths(data: object, at: str = "") -> Iterator[str]:
    """Every place in an answer: `members[].node`."""
    if isinstance(data, dict):
        for key, item in data.items():
            yield f"{at}.{key}".lstrip(".")
            yield from paths(item, f"{at}.{key}")
    elif isinstance(data, list):
        for item in data:
            yield from paths(item, f"{at}[]")


def check_shape(command: str, answer: Answer) -> None:
    """What programs may rely on is recorded; SUIRO_REWRITE=1 records it anew."""
    assert answer.returncode == 0, answer.stdout + answer.stderr
    found = set(paths(json.loads(answer.stdout)))
    if os.environ.get("SUIRO_REWRITE"):
        SHAPES[command] = sorted(found)
        SHAPES_FILE.write_text(json.dumps(dict(sorted(SHAPES.items())), indent=1) + "\n")
    missing = set(SHAPES[command]) - found
    assert not missing, f"programs may read these: {missing}"


@pytest.mark.parametrize("command", WORKS)
def test_a_command_works(bench: Bench, command: str) -> None:
    rest, says = WORKS[command]
    answer = bench.run(command, rest)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert says in answer.stdout + answer.stderr
    if command in SHOWS:
        check_shape(command, bench.run(command, f"{rest} -o json"))


def test_a_controller_comes_and_goes(bench: Bench) -> None:
    """`storage format`, `node run`, `quorum add`, `quorum remove`, as an operator types them."""
    settings = bench.settings(104, "controller")
    listen = next(line for line in settings.read_text().splitlines() if line.startswith("listen"))
    address = listen.split('"')[1]
    data = bench.scratch / "data-104"
    words = f"-d {data} --cluster-id {bench.cluster.cluster_id} --node-id 104"
    told = bench.run("storage format", f"{words} --no-initial-controllers").stdout
    directory = told.split()[-1]
    command = [sys.executable, "-m", "suiro.cli", "node", "run", "--config", str(settings)]
    with (bench.scratch / "controller.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        probe = f"live --address {address} --timeout 1"
        wait_until(lambda: bench.run("node probe", probe).returncode == 0, "it serves")
        added = bench.run("quorum add", f"104 {address} {directory}")
        assert (added.returncode, added.stdout) == (0, "controller 104 is a voter\n"), added.stderr
        members = json.loads(bench.run("quorum status", "-o json").stdout)["members"]
        assert [member["node"] for member in members] == [101, 104]
        removed = bench.run("quorum remove", "104")
        assert removed.stdout == "controller 104 is no longer a member\n", removed.stderr
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 0


def test_a_cluster_in_the_background(tmp_path: Path) -> None:
    words = ("--data-dir", str(tmp_path / "here"))
    up = suiro_cli("up", *words, "--port", str(free_port()), "--background")
    assert (up.returncode, "Suiro is up at" in up.stdout) == (0, True), up.stderr
    twice = suiro_cli("up", *words, "--port", str(free_port()), "--background")
    down = suiro_cli("down", *words)
    assert (twice.returncode, "runs in" in twice.stderr) == (1, True)
    assert (down.returncode, down.stdout) == (0, "stopped\n"), down.stderr
