"""A real Prometheus and a real cluster: what the dashboard shows, an alert for a dead broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import suiro

from cluster.local_cluster import Layout, LocalCluster, free_port
from tests.cluster.operator_kit import wait_until
from tests.monitoring.prometheus import prometheus, reason_against

if TYPE_CHECKING:
    from tests.monitoring.prometheus import Prometheus

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(240),
    pytest.mark.skipif(reason_against() is not None, reason=str(reason_against())),
]

DASHBOARD = Path(__file__).parents[2] / "monitoring" / "grafana" / "suiro.json"
LAYOUT = Layout(controllers=1, brokers=3, groups=1, txns=1)
UNREAD = 50
QUIET_AT_FIRST = {"SuiroNodeDown", "SuiroNodeFenced", "SuiroPartitionsOffline"}


def panels() -> list[tuple[str, str]]:
    dashboard = json.loads(DASHBOARD.read_text())
    return [(p["title"], t["expr"]) for p in dashboard["panels"] for t in p["targets"]]


def test_a_killed_broker_makes_the_alerts_fire(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "cluster", LAYOUT)
    ports = {name: free_port() for name in cluster.nodes}
    for name, node in cluster.nodes.items():
        with node.config_path.open("a") as settings:
            settings.write(f"metrics_port = {ports[name]}\n")
    targets = [f"127.0.0.1:{port}" for port in ports.values()]
    with cluster, prometheus(tmp_path, targets) as watching:
        work(cluster)
        wait_until(lambda: watching.value("sum(up)") == len(targets), "all are scraped")
        check_panels(watching)
        lag = 'suiro_group_lag_records{group="billing",topic="orders"}'
        wait_until(lambda: (watching.value(lag) or 0) >= UNREAD, "the lag of the group", 30)
        assert watching.value('suiro_group_members{group="billing"}') == 0
        assert not watching.firing().keys() & QUIET_AT_FIRST

        cluster.nodes["broker-2"].kill()
        wait_until(lambda: "SuiroNodeFenced" in watching.firing(), "fenced", 60)
        wait_until(lambda: "SuiroNodeDown" in watching.firing(), "down", 90)
        (down,) = watching.firing()["SuiroNodeDown"]
        assert down["instance"] == f"127.0.0.1:{ports['broker-2']}"

        cluster.nodes["broker-2"].start()
        wait_until(lambda: not watching.firing().keys() & QUIET_AT_FIRST, "all is well again", 60)


def work(cluster: LocalCluster) -> None:
    """Some of everything that is counted."""
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic("orders", partitions=3, replication_factor=3)
    with (
        suiro.Producer(cluster.bootstrap, transactional_id="copier") as producer,
        producer.transaction(),
    ):
        producer.send("orders", b"x")
    with suiro.Consumer(
        cluster.bootstrap, group_id="billing", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe("orders")
        wait_until(lambda: bool(consumer.poll(0.5)), "a record")
        consumer.commit()
    with suiro.Producer(cluster.bootstrap) as producer:
        producer.send_many("orders", [b"x"] * UNREAD).wait(30)


def check_panels(watching: Prometheus) -> None:
    """Every panel of the dashboard shows something. (Rates want two looks, so a moment.)"""
    missing = dict(panels())

    def all_show_something() -> bool:
        for title, expression in panels():
            if title in missing and watching.query(expression):
                del missing[title]
        return not missing

    try:
        wait_until(all_show_something, "every panel shows something", 30)
    except AssertionError:
        pytest.fail(f"these panels are empty: {missing}")
