"""Real brokers: replicas are moved, throttled and cancelled; a fourth broker joins under load."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.model.ids import NodeId, TopicPartition
from suiro.reassign_plan import Placed

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.operator_kit import Load, fill, read_values, wait_until
from tests.cluster.test_operator_cli import ask, suiro_cli

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

MB = 1_000_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    layout = Layout(controllers=1, brokers=3, racks=("a", "b", "c"))
    with LocalCluster(tmp_path_factory.mktemp("cluster"), layout) as running:
        yield running


@pytest.fixture
def admin(cluster: LocalCluster) -> Iterator[suiro.Admin]:
    with suiro.Admin(cluster.bootstrap) as admin:
        yield admin


def test_racks_are_known_and_replicas_are_in_different_ones(
    cluster: LocalCluster, admin: suiro.Admin
) -> None:
    assert {holder.node_id: holder.rack for holder in admin.holders()} == {1: "a", 2: "b", 3: "c"}
    described = json.loads(_described(cluster, "spread", "--partitions", "3", "-r", "2"))
    assert [len(set(p["replicas"])) for p in described["partitions"]] == [2, 2, 2]
    assert sorted(p["leader"] for p in described["partitions"]) == [1, 2, 3]
    text = ask(cluster, "topic", "describe", "spread").splitlines()
    assert text[0].startswith("Topic: spread\tTopicId: ")
    assert "\tPartitionCount: 3\tReplicationFactor: 2\tConfigs: " in text[0]
    first = described["partitions"][0]
    replicas = ",".join(map(str, first["replicas"]))
    isr = ",".join(map(str, first["isr"]))
    head = "\tTopic: spread\tPartition: 0\tLeader: "
    assert text[1] == (f"{head}{first['leader']}\tReplicas: {replicas}\tIsr: {isr}")


def _described(cluster: LocalCluster, topic: str, *words: str) -> str:
    ask(cluster, "topic", "create", topic, *words)
    return ask(cluster, "topic", "describe", topic, "-o", "json")


def test_a_throttle_holds_for_new_replicas_and_for_nobody_else(
    cluster: LocalCluster, admin: suiro.Admin
) -> None:
    admin.create_topic("big", partitions=1, replication_factor=1)
    info = admin.create_topic("live", partitions=1, replication_factor=2)
    fill(cluster, "big", 6 * MB)
    target = next(n for n in (NodeId(1), NodeId(2), NodeId(3)) if n != leader_of(admin, "big"))
    plan = [Placed("big", 0, (target,))]
    admin.reassign(plan, throttle_bytes_per_s=2 * MB)
    began = time.monotonic()
    fill(cluster, "live", 2 * MB)
    live_s = time.monotonic() - began
    (moving,) = admin.reassignments()
    assert 0 < moving.bytes_left < moving.bytes_total
    assert json.loads(ask(cluster, "reassign", "status", "-o", "json"))[0]["bytes_per_s"] < 4 * MB
    wait_until(lambda: not admin.reassignments(), "the copy is complete")
    took_s = time.monotonic() - began
    assert took_s > 2, f"6 MB came in {took_s:.1f} s, at 2 MB/s that takes 3 s"
    assert live_s < took_s, "in-sync replicas do not wait for the throttle"
    assert (leader_of(admin, "big"), len(info.partitions[0].isr)) == (target, 2)
    print(f"6 MB at 2 MB/s took {took_s:.1f} s; 2 MB to live replicas meanwhile {live_s:.1f} s")


def leader_of(admin: suiro.Admin, topic: str) -> NodeId | None:
    return admin.describe_topic(topic).partitions[0].leader


def test_a_cancelled_reassignment_leaves_things_as_they_were(
    cluster: LocalCluster, admin: suiro.Admin
) -> None:
    admin.create_topic("stay", partitions=1, replication_factor=1)
    fill(cluster, "stay", 1 * MB)
    before = admin.describe_topic("stay").partitions[0].replicas
    other = next(n for n in (NodeId(1), NodeId(2), NodeId(3)) if n not in before)
    admin.reassign([Placed("stay", 0, (other,))], throttle_bytes_per_s=20_000)
    assert "stay-0" in ask(cluster, "reassign", "status")
    assert ask(cluster, "reassign", "cancel", "--topic", "stay") == "cancelled stay-0\n"
    assert ask(cluster, "reassign", "status") == "nothing is under way\n"
    info = admin.describe_topic("stay").partitions[0]
    assert (info.replicas, info.isr) == (before, before)
    folder = next(n for n in cluster.brokers if n.node_id == other).folder
    wait_until(lambda: not (folder / "data/log/stay-0").exists(), "what was copied is removed")
    assert len(read_values(cluster, "stay")) == 1_000


def test_replication_factor_and_partitions_can_be_changed(
    cluster: LocalCluster, admin: suiro.Admin
) -> None:
    admin.create_topic("grow", partitions=2, replication_factor=1)
    ask(cluster, "topic", "alter", "grow", "--partitions", "4", "--replication-factor", "3")
    wait_until(
        lambda: all(len(p.isr) == 3 for p in admin.describe_topic("grow").partitions),
        "all replicas are in sync",
    )
    assert len(admin.describe_topic("grow").partitions) == 4
    ask(cluster, "topic", "alter", "grow", "--replication-factor", "2")
    wait_until(
        lambda: all(len(p.replicas) == 2 for p in admin.describe_topic("grow").partitions),
        "one replica each is gone",
    )
    refused = suiro_cli("topic", "alter", "grow", "-r", "9", "--bootstrap", cluster.bootstrap)
    assert (refused.returncode, "3 brokers are alive" in refused.stderr) == (1, True)


def test_leaders_go_back_to_the_preferred_replicas(
    cluster: LocalCluster, admin: suiro.Admin
) -> None:
    admin.create_topic("led", partitions=3, replication_factor=3)
    node = cluster.brokers[1]
    node.signal(signal.SIGTERM)
    node.wait()
    assert all(p.leader != node.node_id for p in admin.describe_topic("led").partitions)
    node.start()
    node.wait_ready()

    def elected() -> bool:
        suiro_cli("leader", "elect", "--topic", "led", "--bootstrap", cluster.bootstrap)
        return all(p.leader == p.replicas[0] for p in admin.describe_topic("led").partitions)

    wait_until(elected, "every preferred replica is in sync and leads")
    unclean = suiro_cli("leader", "elect", "--bootstrap", cluster.bootstrap)
    assert (unclean.returncode, "either --all or --topic" in unclean.stderr) == (1, True)


def test_a_fourth_broker_takes_its_share_under_load_and_gives_it_back(
    cluster: LocalCluster, admin: suiro.Admin, tmp_path: Path
) -> None:
    config = {"min.insync.replicas": "2"}
    admin.create_topic("orders", partitions=4, replication_factor=3, configs=config)
    plan = tmp_path / "plan.json"
    with Load(cluster, "orders") as load:
        wait_until(lambda: len(load.acked) > 500, "records are acknowledged")
        node = cluster.add_broker("d")
        node.start()
        node.wait_ready()
        planned = ask(
            cluster,
            "reassign",
            "plan",
            "--to-brokers",
            "1,2,3,4",
            "--topics",
            "orders",
            "-o",
            "json",
        )
        plan.write_text(planned)
        assert len(json.loads(planned)["partitions"]) >= 3
        ask(cluster, "reassign", "execute", "--plan", str(plan), "--throttle", "50MB/s")
        wait_until(lambda: not admin.reassignments(), "the load is spread")
        held = [p for p in admin.describe_topic("orders").partitions if 4 in p.isr]
        assert len(held) == 3
        plan.write_text(ask(cluster, "reassign", "plan", "--drain", "4", "-o", "json"))
        ask(cluster, "reassign", "execute", "--plan", str(plan))
        wait_until(lambda: not admin.reassignments(), "broker 4 is empty again")
        so_far = len(load.acked)
        wait_until(lambda: len(load.acked) > so_far + 200, "records are acknowledged still")
    values = read_values(cluster, "orders")
    lost = {offset: value for offset, value in load.acked.items() if values[offset] != value}
    assert not lost
    assert len(values) == len(set(values)), "nothing was sent twice"
    assert all(4 not in p.replicas for p in admin.describe_topic("orders").partitions)
    partition = TopicPartition("orders", 0)
    print(f"{partition}: {len(load.acked)} acknowledged while replicas went to broker 4 and back")
