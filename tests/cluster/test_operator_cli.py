"""The operator's commands on three real controllers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cluster.local_cluster import Layout, LocalCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(controllers=3, brokers=1)
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        yield running


def suiro_cli(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "suiro.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def ask(cluster: LocalCluster, *words: str) -> str:
    answer = suiro_cli(*words, "--bootstrap", cluster.bootstrap)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_quorum_status_and_transfer(cluster: LocalCluster) -> None:
    lines = ask(cluster, "quorum", "status").splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["101", "102", "103"]
    leader = int(lines[0].split()[1])
    other = next(n for n in (101, 102, 103) if n != leader)
    assert ask(cluster, "quorum", "transfer", str(other)) == f"controller {other} leads\n"
    assert ask(cluster, "quorum", "status").startswith(f"leader {other} ")


def test_the_state_is_hashed_when_asked_for(cluster: LocalCluster) -> None:
    assert "state" not in ask(cluster, "quorum", "status")
    lines = ask(cluster, "quorum", "status", "--state-hash").splitlines()
    assert re.fullmatch(r"state [0-9a-f]{32,} at \d+ of node 10[123]", lines[1])


def test_metadata_as_records_and_as_a_tree(cluster: LocalCluster) -> None:
    ask(cluster, "topic", "create", "orders", "--partitions", "2")
    records = [json.loads(line) for line in ask(cluster, "metadata", "dump").splitlines()]
    assert "orders" in [r["name"] for r in records if r["type"] == "TopicCreated"]
    assert ask(cluster, "metadata", "shell", "ls", "/topics") == "orders/\n"
    shown = json.loads(ask(cluster, "metadata", "shell", "cat", "/topics/orders/1"))
    assert shown["leader"] == 1
    missing = suiro_cli("metadata", "shell", "ls", "/nope", "--bootstrap", cluster.bootstrap)
    assert "there is no /nope" in missing.stderr


def test_a_directory_is_formatted_once_and_for_one_cluster(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    cluster_id = suiro_cli("storage", "random-uuid").stdout.strip()
    words = ("storage", "format", "-d", data, "--node-id", "7", "--cluster-id")
    assert suiro_cli(*words, cluster_id).returncode == 0
    again = suiro_cli(*words, cluster_id)
    assert (again.returncode, "formatted already" in again.stderr) == (1, True)
    assert suiro_cli(*words, cluster_id, "--ignore-formatted").returncode == 0
    foreign = suiro_cli(*words, suiro_cli("storage", "random-uuid").stdout.strip())
    assert (foreign.returncode, "belongs to cluster" in foreign.stderr) == (1, True)


def test_an_unformatted_directory_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text(
        f'node_id = 1\nroles = ["broker"]\ndata_dir = "{tmp_path}/data"\n'
        'listen = "127.0.0.1:0"\ncontrollers = ["127.0.0.1:1"]\n'
    )
    command = [sys.executable, "-m", "cluster", "--config", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (run.returncode, "suiro storage format" in run.stderr) == (1, True)


def test_assertions_may_not_be_switched_off(tmp_path: Path) -> None:
    config = tmp_path / "node.toml"
    config.write_text(
        f'node_id = 1\nroles = ["controller"]\ndata_dir = "{tmp_path}/data"\n'
        'listen = "127.0.0.1:0"\n'
    )
    command = [sys.executable, "-O", "-m", "cluster", "--config", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (run.returncode, "do not run it with -O" in run.stderr) == (1, True)
