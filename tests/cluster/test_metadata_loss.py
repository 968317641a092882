"""M10 on real processes: files go when a record says so, and never because metadata are absent."""

from __future__ import annotations

import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.reassign_plan import Placed

from cluster.host.fs import OsFs
from cluster.host.store import RocksStore
from cluster.local_cluster import Layout, LocalCluster
from cluster.storage import Founder, format_directory, load_identity
from tests.cluster.operator_kit import fill, read_values, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.local_cluster import LocalNode

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]


def log_of(node: LocalNode, partition: str) -> Path:
    return node.folder / "data" / "log" / partition


def forget_everything(controller: LocalNode) -> Path:
    """Give a controller a new, empty quorum of the same identity; where the old one is kept."""
    data = controller.folder / "data"
    identity = load_identity(OsFs(), data)
    kept = data.rename(controller.folder / "kept")
    founder = Founder(identity.node_id, identity.directory_id, controller.address)
    format_directory(OsFs(), RocksStore, data, identity, [founder])
    return kept


def test_a_broker_keeps_what_its_metadata_do_not_know(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, Layout(controllers=1, brokers=1))
    (controller,), (broker,) = cluster.controllers, cluster.brokers
    with cluster:
        with suiro.Admin(cluster.bootstrap) as admin:
            admin.create_topic("kept", partitions=1, replication_factor=1)
        fill(cluster, "kept", 100_000)
    kept = forget_everything(controller)
    with cluster:
        with suiro.Admin(cluster.bootstrap) as admin:
            assert "kept" not in admin.topics()
            admin.create_topic("other", partitions=1, replication_factor=1)
        assert log_of(broker, "kept-0").exists()
    shutil.rmtree(controller.folder / "data")
    kept.rename(controller.folder / "data")
    with cluster:
        assert len(read_values(cluster, "kept")) == 100
        assert log_of(broker, "other-0").exists(), "now the other one is unknown, and stays"


def test_what_was_deleted_or_moved_away_while_a_broker_was_down_goes(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, Layout(controllers=1, brokers=2)) as cluster:
        one, two = cluster.brokers
        with suiro.Admin(cluster.bootstrap) as admin:
            for topic in ("gone", "again", "moved"):
                admin.create_topic(topic, partitions=1, replication_factor=2)
                fill(cluster, topic, 20_000)
            assert all(log_of(two, f"{topic}-0").exists() for topic in ("gone", "again", "moved"))
            two.signal(signal.SIGTERM)
            two.wait()
            began = time.monotonic()
            admin.delete_topic("gone")
            assert time.monotonic() - began < 5, "a deletion does not wait for files"
            admin.delete_topic("again")
            admin.create_topic("again", partitions=1, replication_factor=1)
            admin.reassign([Placed("moved", 0, (one.node_id,))])
            wait_until(lambda: not log_of(one, "gone-0").exists(), "the files go in the background")
            two.start()
            two.wait_ready()
            for topic in ("gone", "moved"):
                path = log_of(two, f"{topic}-0")
                wait_until(lambda path=path: not path.exists(), f"{path} goes")  # type: ignore[misc]
            admin.reassign([Placed("again", 0, (two.node_id,))])
            wait_until(lambda: not admin.reassignments(), "its place is free for the new topic")
            assert log_of(two, "again-0").exists()
            wait_until(lambda: not log_of(one, "again-0").exists(), "and the former one goes")
            assert len(read_values(cluster, "moved")) == 20
