"""An unclean election on real brokers: asked for, allowed, and then in the open.

The brokers write their event logs, which tell the same story.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import suiro
from suiro._proto import admin_pb2
from suiro.transport.methods import AdminMethods

from cluster.local_cluster import EVENTS, Layout, LocalCluster
from tests.cluster.operator_kit import fill, node_of, read_values, wait_until
from tests.cluster.test_operator_cli import ask, suiro_cli

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.local_cluster import LocalNode

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

ALLOWED = {"unclean.leader.election.enable": "true"}


def events_of(node: LocalNode, event: str) -> list[dict[str, Any]]:
    lines = (node.folder / EVENTS).read_text().split("\n")[:-1]  # whole ones
    return [found for found in map(json.loads, lines) if found["event"] == event]


def lose_the_leader(cluster: LocalCluster, admin: suiro.Admin) -> tuple[LocalNode, LocalNode]:
    """A topic whose only in-sync replica is dead, and whose other one lacks what that one has."""
    info = admin.create_topic("risky", partitions=1, replication_factor=2).partitions[0]
    leader = node_of(cluster, info.leader)
    follower = node_of(cluster, next(n for n in info.replicas if n != info.leader))
    fill(cluster, "risky", 10_000)
    follower.kill()
    wait_until(lambda: len(admin.describe_topic("risky").partitions[0].isr) == 1, "ISR of one")
    fill(cluster, "risky", 10_000)
    wait_until(
        lambda: 20 in [e["offset"] for e in events_of(leader, "high_watermark")], "it is told"
    )
    leader.kill()
    follower.start()
    follower.wait_ready()
    return leader, follower


def test_an_unclean_election_is_asked_for_allowed_and_seen(tmp_path: Path) -> None:
    layout = Layout(controllers=1, brokers=2, event_log=True)
    with LocalCluster(tmp_path, layout) as cluster, suiro.Admin(cluster.bootstrap) as admin:
        leader, follower = lose_the_leader(cluster, admin)
        assert "\tLeader: none\t" in ask(cluster, "topic", "describe", "risky")
        words = ("leader", "elect", "--topic", "risky", "--bootstrap", cluster.bootstrap)
        refused = suiro_cli(*words)
        assert (refused.returncode, "is alive" in refused.stdout) == (1, True)
        refused = suiro_cli(*words, "--unclean")
        assert (refused.returncode, "does not allow unclean" in refused.stdout) == (1, True)
        request = admin_pb2.AlterConfigsRequest(name="risky", set=ALLOWED)
        admin.ask(AdminMethods.ALTER_CONFIGS, request)
        assert f"risky-0    {follower.node_id}" in ask(cluster, *words[:4], "--unclean")
        told = "\tRecovery: unclean-election (acknowledged records may be lost)"
        wait_until(lambda: told in ask(cluster, "topic", "describe", "risky"), "it is visible")
        assert b"UNCLEAN ELECTION: risky-0" in cluster.controllers[0].new_log()
        assert len(read_values(cluster, "risky")) == 10
        leader.start()
        leader.wait_ready()
        wait_until(lambda: len(admin.describe_topic("risky").partitions[0].isr) == 2, "both back")
    check_events(cluster.controllers[0], leader, follower)


def check_events(controller: LocalNode, leader: LocalNode, follower: LocalNode) -> None:
    changed = [
        found["facts"]["state"]
        for found in events_of(controller, "committed")
        if found["record"] == "PartitionChanged"
    ]
    unclean = [s["leader"] for s in changed if s["recovery"] == 2]
    assert unclean[0] == follower.node_id
    records = {found["record"] for found in events_of(controller, "committed")}
    assert {"NodeRegistered", "NodeFenced", "NodeUnfenced", "TopicCreated"} <= records
    mine = [e for e in events_of(leader, "append") if e["partition"] == "risky-0"]
    theirs = {e["base"]: e for e in events_of(follower, "append") if e["partition"] == "risky-0"}
    assert len(mine) >= 2, "what was lost was appended after the first batch"
    first = mine[0]
    assert (first["base"], first["crc"]) == (0, theirs[0]["crc"]), "both have the same first batch"
    assert {e["role"] for e in events_of(follower, "role")} >= {"follower", "leader"}
    assert max(e["offset"] for e in events_of(leader, "high_watermark")) == 20
    cut = [(e["log_end"], e["offset"]) for e in events_of(leader, "truncate")]
    assert cut == [(20, 10)], "what the election gave up, its old leader cuts"
    assert any(e["after"] != e["before"] for e in events_of(leader, "isr"))
