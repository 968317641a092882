"""One request through all services: by its id in every node's log, and as one tree of spans."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import grpc
import pytest
import suiro
from suiro.transport import trace

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.cli_kit import suiro_here
from tests.cluster.operator_kit import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

LAYOUT = Layout(controllers=1, brokers=1, groups=1, txns=1)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def cluster_with(folder: Path, settings: str) -> LocalCluster:
    cluster = LocalCluster(folder, LAYOUT)
    for node in cluster.nodes.values():
        with node.config_path.open("a") as file:
            file.write(settings)
    return cluster


@pytest.fixture
def request_of_ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the caller of `suiro` works for."""
    monkeypatch.setenv("TRACEPARENT", PARENT)
    yield
    trace.work_for("")


@pytest.mark.usefixtures("request_of_ours")
def test_a_request_is_found_in_the_log_of_every_service(tmp_path: Path) -> None:
    settings = 'log_format = "json"\nlog_level = "debug"\n'
    with cluster_with(tmp_path, settings) as cluster:
        assert suiro_here("topic", "create", "orders", "-b", cluster.bootstrap).returncode == 0
        assert suiro_here("group", "list", "-b", cluster.bootstrap).returncode == 0
        assert suiro_here("txn", "list", "-b", cluster.bootstrap).returncode == 0
        trace.work_for("")
        with suiro.Admin(cluster.bootstrap) as admin:
            admin.create_topic("later")
        logged = {name: lines_of(node.log_path) for name, node in cluster.nodes.items()}
    for name, method in (
        ("broker-1", "Admin/CreateTopics"),
        ("controller-1", "Admin/CreateTopics"),
        ("group-1", "ListGroups"),
        ("txn-1", "ListTransactions"),
    ):
        ours = [line for line in logged[name] if line.get("request") == TRACE]
        assert any(method in line["message"] for line in ours), name
    others = {
        line["request"]
        for line in logged["controller-1"]
        if "CreateTopics" in line["message"] and "request" in line
    } - {TRACE}
    assert len(others) == 1, "a client that has no request begins one of its own"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Collector:
    """What OpenTelemetry's exporters send to, over gRPC."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc

        self.spans: list[tuple[str, Any]] = []
        self._server = grpc.server(ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def Export(self, request: Any, _context: Any) -> Any:  # noqa: N802 - gRPC looks for it
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        for resource in request.resource_spans:
            names = {a.key: a.value.string_value for a in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [(names["service.name"], span) for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()

    def __enter__(self) -> Collector:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()


@pytest.mark.skipif(
    find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None,
    reason="the extra `otel` is not installed",
)
@pytest.mark.usefixtures("request_of_ours")
def test_a_request_is_one_tree_of_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with Collector() as collector:
        settings = f'traces_to = "http://127.0.0.1:{collector.port}"\n'
        with cluster_with(tmp_path, settings) as cluster:
            assert suiro_here("topic", "create", "orders", "-b", cluster.bootstrap).returncode == 0
            again = suiro_here("topic", "create", "orders", "-b", cluster.bootstrap)
            assert again.returncode == 1
            wait_until(lambda: len(created(collector)) >= 4, "the spans of both calls")
    broker, controller = (
        [span for service, span in created(collector) if service == f"suiro-{role}"]
        for role in ("broker", "controller")
    )
    assert (len(broker), len(controller)) == (2, 2)
    assert {span.parent_span_id.hex() for span in broker} == {PARENT.split("-")[2]}
    assert {span.parent_span_id for span in controller} == {span.span_id for span in broker}


def created(collector: Collector) -> list[tuple[str, Any]]:
    """Of our request; coordinators ask for topics of their own."""
    return [
        (service, span)
        for service, span in collector.spans
        if span.name == "Admin/CreateTopics" and span.trace_id.hex() == TRACE
    ]


def test_without_the_extra_a_node_says_what_it_lacks(tmp_path: Path) -> None:
    if find_spec("opentelemetry") is not None and find_spec("opentelemetry.exporter") is not None:
        pytest.skip("the extra `otel` is installed")
    cluster = cluster_with(tmp_path, 'traces_to = "http://127.0.0.1:1"\n')
    node = cluster.nodes["broker-1"]
    node.start()
    assert node.wait() == 1
    assert "pip install 'suiro[otel]'" in node.log_path.read_text()
