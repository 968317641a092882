"""Rules, dashboards and templates speak only of metrics that exist, and promtool agrees."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from cluster.host.metrics import Metrics
from cluster.host.rpc_meter import RpcMeter

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "monitoring"
RULES = MONITORING / "prometheus"
FILES = sorted(path for path in MONITORING.rglob("*") if path.suffix in {".json", ".yaml"})
SERIES = re.compile(r"\bsuiro_[a-z_]+\b")
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="there is no promtool: install Debian's prometheus"
)


def page() -> str:
    metrics = Metrics()
    RpcMeter(metrics, "/suiro.v1.Broker/Fetch").ended(None)
    for family in (metrics.topic_records, metrics.topic_bytes, metrics.topic_log_bytes):
        family.of("orders")
    metrics.group_lag_records.of("billing", "orders")
    metrics.group_members.of("billing")
    return metrics.render().decode()


def known() -> set[str]:
    return {line.split("{")[0].split()[0] for line in page().splitlines() if line[0] != "#"}


def promtool(*words: str, given: str = "") -> None:
    done = subprocess.run(
        ["promtool", *words], input=given, cwd=RULES, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_metrics_that_exist_are_named(path: Path) -> None:
    named = set(SERIES.findall(path.read_text()))
    assert named
    assert named <= known()


def test_the_documentation_has_every_metric() -> None:
    families = set(re.findall(r"^# TYPE (\w+) ", page(), re.MULTILINE))
    told = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE))
    assert told == families


def test_every_panel_asks_something() -> None:
    dashboard = json.loads((MONITORING / "grafana" / "suiro.json").read_text())
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert all(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])


def test_every_alert_says_what_to_do() -> None:
    (group,) = yaml.safe_load((RULES / "suiro-alerts.yaml").read_text())["groups"]
    for rule in group["rules"]:
        assert rule["annotations"].keys() == {"summary", "action"}, rule["alert"]


@needs_promtool
def test_promtool_accepts_rules_and_page() -> None:
    promtool("check", "rules", "suiro-alerts.yaml")
    promtool("check", "metrics", given=page())


@needs_promtool
def test_a_killed_broker_makes_the_alert_fire() -> None:
    promtool("test", "rules", "suiro-alerts-test.yaml")
