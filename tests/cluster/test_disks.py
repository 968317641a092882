"""Disks and settings on three real brokers with two log directories each: one is lost while they
run, a replica is moved, and the commands that show and change all that.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.model.errors import OffsetOutOfRange
from suiro.model.ids import TopicPartition

from cluster.local_cluster import Layout, LocalCluster
from tests.cluster.test_operator_cli import ask, suiro_cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

PARTITIONS = 6
RECORDS = 600


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    made = LocalCluster(tmp_path_factory.mktemp("cluster"), Layout(controllers=1, brokers=3))
    for broker in made.brokers:
        dirs = json.dumps([str(broker.folder / "a"), str(broker.folder / "b")])
        with broker.config_path.open("a") as config:
            config.write(f"log_dirs = {dirs}\n")
    with made as running:
        yield running


def create(cluster: LocalCluster, topic: str) -> None:
    with suiro.Admin(cluster.bootstrap) as admin:
        configs = {"min.insync.replicas": "2"}
        admin.create_topic(topic, partitions=PARTITIONS, replication_factor=3, configs=configs)


def write(cluster: LocalCluster, topic: str, first: int) -> None:
    with suiro.Producer(cluster.bootstrap, delivery_timeout_ms=60_000) as producer:
        for number in range(first, first + RECORDS):
            producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
        producer.flush(60)


def read(cluster: LocalCluster, topic: str, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    with suiro.Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            found += [record.value for record in consumer.poll(1.0)]
    return found


def eventually(holds: Callable[[], bool], what: str, within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def on_disk(cluster: LocalCluster, broker: int) -> dict[str, list[str]]:
    """The partitions in each directory of a broker, and FAILED for one that has."""
    found = {}
    for directory in json.loads(ask(cluster, "log", "dirs", "-o", "json")):
        if directory["broker"] == broker:
            names = [f"{r['partition']['topic']}-{r['partition']['partition']}"
                     for r in directory["replicas"]]  # fmt: skip
            found[directory["path"]] = ["FAILED"] if directory["error"] else names
    return found


def test_a_lost_directory_takes_its_replicas_and_nothing_else(cluster: LocalCluster) -> None:
    create(cluster, "lost")
    write(cluster, "lost", 0)
    broker = cluster.brokers[0]
    gone, kept = str(broker.folder / "a"), str(broker.folder / "b")
    before = on_disk(cluster, broker.node_id)
    assert before[gone]
    assert before[kept]
    shutil.rmtree(gone)
    eventually(lambda: on_disk(cluster, broker.node_id)[gone] == ["FAILED"], "nobody noticed")
    assert "FAILED" in ask(cluster, "log", "dirs")
    write(cluster, "lost", RECORDS)
    found = read(cluster, "lost", 2 * RECORDS)
    assert {*found} == {b"%d" % number for number in range(2 * RECORDS)}
    assert len(found) == 2 * RECORDS
    assert on_disk(cluster, broker.node_id)[kept] == before[kept], "the other disk goes on"
    assert broker.is_running
    broker.kill()
    broker.start()
    broker.wait_ready()
    with suiro.Admin(cluster.bootstrap) as admin:
        eventually(
            lambda: all(len(p.isr) == 3 for p in admin.describe_topic("lost").partitions),
            "not in sync again",
        )
    held = on_disk(cluster, broker.node_id)
    assert sum(name.startswith("lost-") for names in held.values() for name in names) == PARTITIONS


def test_a_replica_is_moved_to_the_other_disk(cluster: LocalCluster) -> None:
    create(cluster, "moved")
    write(cluster, "moved", 0)
    broker = cluster.brokers[1]
    source, target = str(broker.folder / "a"), str(broker.folder / "b")
    name = next(n for n in on_disk(cluster, broker.node_id)[source] if n.startswith("moved-"))
    number = name.rpartition("-")[2]
    command = ("log", "move", "moved", number, "--broker", str(broker.node_id), "--to", target)
    assert target in ask(cluster, *command)
    held = on_disk(cluster, broker.node_id)
    assert name in held[target]
    assert name not in held[source]
    write(cluster, "moved", RECORDS)
    assert len(read(cluster, "moved", 2 * RECORDS)) == 2 * RECORDS
    assert "good" in suiro_cli("log", "verify", f"{target}/{name}").stdout
    refused = suiro_cli(*command[:-1], "/nowhere", "--bootstrap", cluster.bootstrap)
    assert refused.returncode != 0
    assert "/nowhere" in refused.stderr


def test_a_partition_is_trimmed_by_offset_and_by_time(cluster: LocalCluster) -> None:
    """And whoever reads below the start is told where it is now."""
    where = TopicPartition("trimmed", 0)
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.create_topic("trimmed", partitions=1, replication_factor=3)
    with suiro.Producer(cluster.bootstrap) as producer:
        for number in range(10):
            stamp_ms = 1_700_000_000_000 + number
            producer.send("trimmed", b"%d" % number, timestamp_ms=stamp_ms).result(30)
    trim = ("topic", "trim", "trimmed", "--partition", "0", "--yes")
    assert "starts at offset 3" in ask(cluster, *trim, "--before", "3")
    assert "starts at offset 7" in ask(cluster, *trim, "--before-time", "1700000000007")
    assert "starts at offset 7" in ask(cluster, *trim, "--before", "5"), "it never goes back"
    beyond = suiro_cli(*trim, "--before", "11", "--bootstrap", cluster.bootstrap)
    assert beyond.returncode != 0
    with suiro.Consumer(cluster.bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign({where: 0})
        with pytest.raises(OffsetOutOfRange) as told:
            consumer.poll(10.0)
        assert int(told.value.hints["start"]) == 7
        consumer.seek(where, 7)
        assert consumer.poll(10.0)[0].value == b"7"


def test_files_are_dumped_and_verified(cluster: LocalCluster, tmp_path: Path) -> None:
    create(cluster, "seen")
    write(cluster, "seen", 0)
    source = next(cluster.brokers[2].folder.glob("*/seen-0"))
    copy = Path(shutil.copytree(source, tmp_path / "seen-0"))
    told = json.loads(suiro_cli("log", "verify", str(copy), "-o", "json").stdout)
    assert (told["good"], told["records"]) == (True, RECORDS // PARTITIONS)
    segment = next(copy.glob("*.log"))
    dumped = suiro_cli("log", "dump", str(segment), "--records").stdout
    assert "offsets 0.." in dumped
    assert "value b'594'" in dumped
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    bad = suiro_cli("log", "verify", str(copy))
    assert bad.returncode == 1
    assert "CRC" in bad.stdout
    assert suiro_cli("log", "dump", str(segment)).returncode == 1
    used = [d for d in json.loads(ask(cluster, "log", "dirs", "-o", "json")) if d["broker"] == 3]
    sizes = [r["size_bytes"] for d in used for r in d["replicas"]
             if r["partition"] == {"topic": "seen", "partition": 0}]  # fmt: skip
    assert sizes == [len(content)]


def test_settings_are_read_changed_explained_and_compared(cluster: LocalCluster) -> None:
    create(cluster, "one")
    create(cluster, "two")
    changed = ask(cluster, "config", "set", "retention.ms=3600000", "--topic", "one")
    assert "604800000 -> 3600000" in changed
    assert "topic" in ask(cluster, "config", "get", "retention.ms", "--topic", "one")
    assert "retention.ms" in ask(cluster, "config", "diff", "--topic", "one", "--topic", "two")
    assert "min.insync.replicas" in ask(cluster, "config", "diff", "--topic", "two")
    ask(cluster, "config", "set", "retention.ms=", "--topic", "one")
    assert "retention.ms" not in ask(cluster, "config", "diff", "--topic", "one")
    ask(cluster, "config", "set", "scrub.bytes.per.s.max=1048576", "--broker", "1")
    got = json.loads(ask(cluster, "config", "get", "--broker", "1", "-o", "json"))
    assert got["scrub.bytes.per.s.max"] == {
        "value": "1048576", "default": str(8 << 20), "source": "broker",
    }  # fmt: skip
    bad = suiro_cli(
        "config", "set", "retention.ms=soon", "--topic", "one", "--bootstrap", cluster.bootstrap
    )
    assert bad.returncode != 0
    assert "must be" in bad.stderr
    told = suiro_cli("config", "explain", "min.insync.replicas").stdout
    assert "When to change it" in told


def test_a_plan_measures_the_users_own_data(tmp_path: Path) -> None:
    sample = tmp_path / "clicks.jsonl"
    sample.write_text(
        "".join(json.dumps({"user": n % 50, "page": "/x"}) + "\n" for n in range(5000))
    )
    words = ("plan", "--rate", "10000", "--retention", "7d", "--sample", str(sample), "-o", "json")
    got = json.loads(suiro_cli(*words).stdout)
    assert got["compression_ratio"] > 2
    raw = 10_000 * got["record_bytes"]
    disk = raw * 7 * 86_400 * 3 / got["compression_ratio"]
    assert got["disk_bytes"] == pytest.approx(disk)
    assert got["partitions"] == 1
