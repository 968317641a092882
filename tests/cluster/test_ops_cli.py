"""The operator's questions on a real cluster: what they say is true, and what they refuse.

One cluster for all; the tests that kill a broker come last, and bring it back.
"""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
import suiro
from suiro.model.ids import NodeId

from cluster.local_cluster import Layout, LocalCluster, LocalNode, free_port
from tests.cluster.cli_kit import Shell, suiro_here
from tests.cluster.operator_kit import node_of, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

LAYOUT = Layout(controllers=1, brokers=3, groups=1, txns=1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), LAYOUT) as running:
        yield running


@pytest.fixture(scope="module")
def shell(cluster: LocalCluster) -> Shell:
    made = Shell(cluster.bootstrap)
    made.ask("topic", "create", "orders", "-p", "2", "-r", "3", "-c", "min.insync.replicas=3")
    made.ask("topic", "create", "single", "-p", "3", "-r", "1")
    made.ask("health", "--wait", "60")
    return made


# -- questions ------------------------------------------------------------------------------------


def test_a_healthy_cluster_says_so(shell: Shell) -> None:
    found = shell.data("health")
    assert found["healthy"] is True
    assert found["problems"] == []
    assert (found["nodes"], found["controller"]) == (5, 101)
    assert shell.ask("health").startswith("healthy: 5 nodes")


def test_whether_a_node_may_be_restarted(shell: Shell) -> None:
    """`single` has one replica each, `orders` needs all three: no broker may go."""
    found = shell.data("can-restart", "1", code=3)
    assert {p["kind"] for p in found["problems"]} == {"offline", "unwritable"}
    assert "may be restarted" in shell.ask("can-restart", "201")
    assert shell.data("can-restart", "101", code=3)["problems"][0]["kind"] == "quorum"
    assert shell.data("can-restart", "77", code=3)["problems"][0]["kind"] == "unknown-node"


def test_what_an_error_means() -> None:
    assert "NOT_LEADER" in suiro_here("errors").stdout
    shown = json.loads(suiro_here("errors", "NotEnoughReplicas", "-o", "json").stdout)
    assert (shown[0]["code"], shown[0]["retriable"]) == (38, True)
    unknown = suiro_here("errors", "NO_SUCH")
    assert (unknown.returncode, "there is no error" in unknown.stderr) == (1, True)


def test_the_busiest_topic_is_on_top(shell: Shell) -> None:
    stop = threading.Event()

    def write() -> None:
        with suiro.Producer(shell.bootstrap) as producer:
            while not stop.is_set():
                producer.send("single", b"x").result(30)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        first = shell.data("top", "-n", "1", "--interval", "0.5")[0]
    finally:
        stop.set()
        writing.join()
    assert first["topic"] == "single"
    assert first["records_per_s"] > 0
    assert "RECORDS/S" in shell.ask("top", "-n", "1", "--interval", "0.1")


def test_a_small_bench(shell: Shell) -> None:
    found = shell.data("bench", "--records", "3000", "--size", "50")
    assert found["produce_records_per_s"] > 0
    assert found["consume_records_per_s"] > 0
    assert "no topic" in shell.refused("bench", "--topic", "no topic", "--records", "1")


def test_a_bundle_for_a_bug_report(shell: Shell, tmp_path: Path) -> None:
    shell.ask("debug", "bundle", "--file", str(tmp_path / "report.tar.gz"))
    with tarfile.open(tmp_path / "report.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        page = archive.extractfile("suiro-debug/metrics-101.txt")
        assert page is not None
        assert b"suiro_active_controllers 1" in page.read()
    assert names >= {"client.json", "doctor.json", "cluster.json", "configs.json", "groups.json"}
    assert {f"metrics-{n}.txt" for n in (1, 2, 3, 101, 201, 301)} <= names


def test_the_version_and_the_shells_completion() -> None:
    assert json.loads(suiro_here("version", "-o", "json").stdout)["version"]
    assert "_suiro_completion" in suiro_here("completion", "bash").stdout
    assert suiro_here("completion", "tcsh").returncode == 2


def test_lists_for_programs(shell: Shell) -> None:
    topics = shell.data("topic", "list")
    assert {"topic": "orders", "partitions": 2, "replicas": 3} in topics
    assert shell.data("quorum", "status")["leader"] == 101
    elected = shell.data("leader", "elect", "--topic", "orders")
    assert {entry["leader"] for entry in elected} <= {1, 2, 3}


# -- one node, as a container runs it -------------------------------------------------------------


def test_probes_and_the_hook_before_a_stop(cluster: LocalCluster) -> None:
    for node in cluster.nodes.values():
        for service in ("live", "ready"):
            answer = suiro_here("node", "probe", service, "--address", str(node.address))
            assert (answer.returncode, answer.stdout) == (0, "SERVING\n"), node.name
    config = str(cluster.nodes["group-1"].config_path)
    assert suiro_here("node", "before-stop", "--config", config).returncode == 0
    config = str(cluster.nodes["broker-1"].config_path)
    hook = suiro_here("node", "before-stop", "--config", config, "--timeout", "1")
    assert (hook.returncode, "stopping anyway" in hook.stderr) == (0, True)
    nobody = suiro_here("node", "probe", "--address", f"127.0.0.1:{free_port()}", "--timeout", "1")
    assert (nobody.returncode, "does not answer" in nobody.stderr) == (1, True)


# -- the doctor -----------------------------------------------------------------------------------


def findings(answer: Any, level: str) -> list[tuple[str, str, str]]:
    return [(f["check"], f["subject"], f["text"]) for f in answer if f["level"] == level]


def test_the_doctor_finds_nothing(shell: Shell) -> None:
    found = shell.data("doctor")
    assert {f["level"] for f in found} == {"ok"}
    assert {f["check"] for f in found} == {"bootstrap", "node", "health", "clock", "version"}


def test_the_doctor_names_a_wrong_port(cluster: LocalCluster) -> None:
    port = free_port()
    answer = suiro_here("doctor", "-b", f"127.0.0.1:{port}", "-o", "json")
    (found,) = json.loads(answer.stdout)
    assert (answer.returncode, found["text"]) == (3, "nothing listens there")
    controller = str(cluster.controllers[0].address)
    answer = suiro_here("doctor", "-b", controller, "-o", "json")
    assert "is a controller" in json.loads(answer.stdout)[0]["text"]
    nowhere = suiro_here("doctor", "-b", "no-such-host.invalid:9750")
    assert (nowhere.returncode, "no such name" in nowhere.stdout) == (3, True)


def test_the_doctor_knows_the_port_for_metrics() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        answer = suiro_here("doctor", "-b", f"127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    assert (answer.returncode, "port for metrics" in answer.stdout) == (3, True)


def test_the_doctor_knows_tls(tmp_path: Path) -> None:
    """Nodes have no TLS yet, so what answers is our server with a certificate; a port that speaks
    nothing at all is told from it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost")
    files = ("-days", "1", "-keyout", str(key), "-out", str(certificate))
    subprocess.run([*made, *files], check=True, capture_output=True)
    pairs = [(key.read_bytes(), certificate.read_bytes())]
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(pairs))
    server.start()
    try:
        answer = suiro_here("doctor", "-b", f"127.0.0.1:{port}")
    finally:
        server.stop(None).wait()
    assert (answer.returncode, "TLS is spoken there" in answer.stdout) == (3, True), answer.stdout

    with socket.create_server(("127.0.0.1", 0)) as mute:
        answer = suiro_here("doctor", "-b", f"127.0.0.1:{mute.getsockname()[1]}")
    assert (answer.returncode, "something else" in answer.stdout) == (3, True), answer.stdout


# -- why ------------------------------------------------------------------------------------------


def test_why_is_for_what_is_there(shell: Shell) -> None:
    assert "writable" in shell.ask("why", "orders/1")
    assert len(shell.data("why", "orders")) == 2
    assert "partitions 0 to 1" in shell.refused("why", "orders/7")
    assert "no topic, no group" in shell.refused("why", "nothing")


def test_why_a_group_is_stuck(shell: Shell) -> None:
    shell.ask("topic", "create", "jobs", "-p", "2", "-r", "3")
    with (
        suiro.Consumer(shell.bootstrap, group_id="workers") as slow,
        suiro.Consumer(shell.bootstrap, group_id="workers") as other,
    ):
        slow.subscribe("jobs")
        wait_until(lambda: bool(slow.poll(0.1)) or len(slow.assignment()) == 2, "all for one")
        assert "stable" in shell.ask("why", "group:workers")
        other.subscribe("jobs")  # from now on `slow` is asked to give one up, and does not poll
        wait_until(lambda: bool(other.poll(0.1)) or stuck(shell, "workers"), "a rebalance")
        (found,) = shell.data("why", "workers", code=3)
        assert found["state"] == "rebalancing"
        assert "has not given up jobs-" in found["causes"][0]


def stuck(shell: Shell, group: str) -> bool:
    return shell.run("why", f"group:{group}").returncode == 3


def test_why_a_transaction_is_open(shell: Shell) -> None:
    with suiro.Producer(shell.bootstrap, transactional_id="copier") as producer:
        producer.begin_transaction()
        producer.send("single", b"x", partition=0).result(30)
        (found,) = shell.data("why", "txn:copier", code=3)
        assert found["state"] == "open"
        assert "single-0" in found["causes"][1]
        (held,) = shell.data("why", "single/0", code=3)
        assert "transaction copier is open" in held["causes"][0]
        producer.abort_transaction()
    assert shell.ask("why", "txn:copier").startswith("transaction copier: complete_abort")


# -- changes --------------------------------------------------------------------------------------


def test_a_broker_is_drained(cluster: LocalCluster, shell: Shell) -> None:
    added = cluster.add_broker()
    added.start()
    added.wait_ready()
    shell.ask("topic", "create", "spread", "-p", "8", "-r", "1")
    with suiro.Admin(shell.bootstrap) as admin:
        assert added.node_id in {p.leader for p in admin.describe_topic("spread").partitions}
        assert "holds nothing any more" in shell.ask("drain", str(added.node_id))
        assert added.node_id not in {p.leader for p in admin.describe_topic("spread").partitions}
    assert shell.ask("drain", str(added.node_id)).startswith("0 partitions")
    assert shell.refused("drain", "99")


def restarted(node: LocalNode, within: tuple[str, ...]) -> None:
    node.kill()
    node.within = within
    node.start()
    node.wait_ready()


FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@pytest.mark.skipif(FAKETIME is None, reason="Debian's faketime is not installed")
def test_the_doctor_names_a_wrong_clock(cluster: LocalCluster, shell: Shell) -> None:
    """By its library: the command `faketime` would stand between us and the node we kill."""
    node = node_of(cluster, NodeId(3))
    faked = (f"LD_PRELOAD={FAKETIME}", "FAKETIME=+300s", "FAKETIME_DONT_FAKE_MONOTONIC=1")
    restarted(node, ("env", *faked))
    try:
        shell.ask("health", "--wait", "60")
        (found,) = findings(shell.data("doctor", code=3), "warning")
        assert found[:2] == ("clock", "node 3")
        assert "ahead of this machine's" in found[2]
    finally:
        restarted(node, ())
        shell.ask("health", "--wait", "60")


def test_a_dead_broker_is_named_by_all(cluster: LocalCluster, shell: Shell) -> None:
    node = node_of(cluster, NodeId(3))
    node.kill()
    wait_until(lambda: shell.run("health").returncode == 3, "the death is noticed")
    wait_until(lambda: "unwritable" in shell.run("why", "orders/0").stdout, "the ISR shrinks")
    assert "node-down" in {p["kind"] for p in shell.data("health", code=3)["problems"]}

    errors = findings(shell.data("doctor", code=3), "error")
    assert ("node", "node 3", f"{node.address}: nothing listens there") in errors

    (orders,) = shell.data("why", "orders/0", code=3)
    assert "min.insync.replicas is 3" in orders["causes"][0]
    assert orders["advice"][0] == "start node 3"
    offline = [e for e in shell.data("why", "single", code=3) if e["stuck"]]
    assert [e["state"] for e in offline] == ["offline"]
    assert f"node 3 at {node.address} is fenced" in offline[0]["causes"][1]

    node.start()
    began_s = time.monotonic()
    shell.ask("health", "--wait", "60")
    assert time.monotonic() - began_s < 60
    assert "writable" in shell.ask("why", "orders/0")
