"""The page is read back with Prometheus' own parser."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster.host import metrics
from cluster.host.metrics import OTHER, Counter, Family, Gauge, Histogram, Metrics


def read(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_the_page_says_what_was_counted() -> None:
    node = Metrics()
    node.rpcs.of("Produce", "OK").add(3)
    node.rpcs_open.of("Produce").set(2.5)
    node.rpcs_open.of("Produce").add(-1)
    for seconds in (0.00005, 0.0001, 0.3, 99):
        node.rpc_seconds.of("Produce").observe(seconds)
    found = read(node.render().decode())
    method = ("method", "Produce")
    assert found["suiro_rpcs_total", (("code", "OK"), method)] == 3
    assert found["suiro_rpcs_open", (method,)] == 1.5
    assert found["suiro_rpc_seconds_bucket", (("le", "0.0001"), method)] == 2
    assert found["suiro_rpc_seconds_bucket", (("le", "0.25"), method)] == 2
    assert found["suiro_rpc_seconds_bucket", (("le", "0.5"), method)] == 3
    assert found["suiro_rpc_seconds_bucket", (("le", "+Inf"), method)] == 4
    assert found["suiro_rpc_seconds_count", (method,)] == 4
    assert found["suiro_rpc_seconds_sum", (method,)] == pytest.approx(99.30015)


@pytest.mark.parametrize("value", ['quo"te', "back\\slash", "new\nline", "水路"])
def test_label_values_may_be_anything(value: str) -> None:
    family = Family("suiro_test", "Some\nhelp \\ text.", ["topic"], Gauge)
    family.of(value).set(7)
    assert read("\n".join(family.lines()) + "\n") == {("suiro_test", (("topic", value),)): 7}


def test_a_metric_without_labels_is_there_from_the_start() -> None:
    family = Family("suiro_test_total", "Help.", (), Counter)
    assert read("\n".join(family.lines()) + "\n") == {("suiro_test_total", ()): 0}


def test_two_nodes_share_nothing() -> None:
    one, other = Metrics(), Metrics()
    one.rpcs.of("Produce", "OK").add()
    assert b"Produce" not in other.render()


def test_a_removed_series_is_gone() -> None:
    node = Metrics()
    node.rpcs_open.of("Fetch").set(1)
    node.rpcs_open.remove("Fetch")
    assert b"Fetch" not in node.render()


def test_too_many_label_values_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRIC_SERIES_MAX", 2)
    family = Family("suiro_test", "Help.", ["topic"], lambda: Histogram((1.0,)))
    for topic in ("a", "b", "c", "d", "a"):
        family.of(topic).observe(0.5)
    found = read("\n".join(family.lines()) + "\n")
    counts = {
        labels[0][1]: value for (name, labels), value in found.items() if name == "suiro_test_count"
    }
    assert counts == {"a": 2, "b": 1, OTHER: 2}


def test_counting_does_not_load_prometheus_client() -> None:
    code = "import sys, cluster.host.metrics; print('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_metric_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    names = re.findall(r"^# TYPE (\S+)", Metrics().render().decode(), re.MULTILINE)
    assert len(names) > 10
    assert [name for name in names if f"`{name}`" not in page] == []
