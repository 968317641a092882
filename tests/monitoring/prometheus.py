"""A Prometheus on loopback that scrapes nodes every second and knows our alert rules."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cluster.local_cluster import free_port
from tests.cluster.operator_kit import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RULES = Path(__file__).parents[2] / "monitoring" / "prometheus" / "suiro-alerts.yaml"


def reason_against() -> str | None:
    """Why there can be none here; None if there can."""
    found = shutil.which("prometheus")
    return None if found else "there is no prometheus: install Debian's package"


class Prometheus:
    """Its HTTP API."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=2) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def query(self, expression: str) -> list[Any]:
        """The series that an expression gives now."""
        words = urllib.parse.urlencode({"query": expression})
        found: list[Any] = self._get(f"/api/v1/query?{words}")["result"]
        return found

    def value(self, expression: str) -> float | None:
        """Of an expression that gives one series, or none."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """The labels of every alert that fires, by the alert's name."""
        alerts: dict[str, list[dict[str, str]]] = {}
        for alert in self._get("/api/v1/alerts")["alerts"]:
            if alert["state"] == "firing":
                alerts.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return alerts

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._url + path, timeout=5) as reply:
            answer = json.load(reply)
        assert answer["status"] == "success", answer
        return answer["data"]


@contextmanager
def prometheus(folder: Path, targets: Sequence[str]) -> Iterator[Prometheus]:
    """One that runs until the end of the block."""
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "suiro", "static_configs": [{"targets": list(targets)}]}],
    }
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        found = Prometheus(port)
        wait_until(found.is_ready, "Prometheus is ready")
        yield found
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(30)
