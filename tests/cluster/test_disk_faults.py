"""Real faults of real disks under real brokers (F9, F10, F13): a small tmpfs that fills up, EIO at
a write and at a sync that then succeeds (strace), a flipped bit in every file of the RocksDB of a
log directory. Nothing that was acknowledged is lost (P1), and nobody else is disturbed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING

import pytest
import suiro
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition

from cluster.local_cluster import Layout, LocalCluster, LocalNode
from tests.cluster.test_disks import PARTITIONS, RECORDS, create, eventually, on_disk, read, write
from tests.cluster.test_operator_cli import ask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a tmpfs: needs root")
needs_strace = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("strace") is None,
    reason="injects errors into system calls: needs root and strace",
)
MIB = 1 << 20
TMPFS_MIB = 160
FULL_AFTER_MAX = 2 * TMPFS_MIB


@contextmanager
def tmpfs(at: Path) -> Iterator[None]:
    at.mkdir(parents=True)
    options = ("-t", "tmpfs", "-o", f"size={TMPFS_MIB}m", "tmpfs", str(at))
    subprocess.run(["mount", *options], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def give_disks(broker: LocalNode, *names: str) -> None:
    dirs = json.dumps([str(broker.folder / name) for name in names])
    with broker.config_path.open("a") as config:
        config.write(f"log_dirs = {dirs}\n")


def values_of(cluster: LocalCluster, start: int, end: int) -> list[bytes]:
    """The first bytes of what is at these offsets of `t`-0."""
    found: list[bytes] = []
    with suiro.Consumer(cluster.bootstrap) as consumer:
        consumer.assign({TopicPartition("t", 0): start})
        while len(found) < end - start:
            polled = consumer.poll(10.0)
            assert polled, f"nothing comes after {len(found)} records"
            found += [(record.value or b"")[:8] for record in polled]
    return found


def fill(cluster: LocalCluster, first: int) -> tuple[int, SuiroError]:
    """Write a mebibyte at a time until it is refused: how many were stored by then, and why."""
    with suiro.Producer(
        cluster.bootstrap, compression="none", delivery_timeout_ms=4_000
    ) as producer:
        for number in range(first, first + FULL_AFTER_MAX):
            try:
                producer.send("t", b"%08d" % number + bytes(MIB - 1_000)).result(30)
            except SuiroError as error:
                return number, error
    raise AssertionError("the disk never filled up")


@needs_root
def test_a_disk_that_is_full_refuses_writes_and_recovers_when_there_is_room(tmp_path: Path) -> None:
    made = LocalCluster(tmp_path, Layout(controllers=1, brokers=1))
    broker = made.brokers[0]
    give_disks(broker, "small")
    with tmpfs(broker.folder / "small"), made as cluster:
        with suiro.Admin(cluster.bootstrap) as admin:
            configs = {"segment.bytes": str(8 * MIB), "min.insync.replicas": "1"}
            admin.create_topic("t", partitions=1, replication_factor=1, configs=configs)
        stored, error = fill(cluster, 0)
        assert "free beside the reserve" in str(error)
        assert stored > (TMPFS_MIB - 64) / 2, "the reserve is 64 MiB"
        assert broker.is_running
        assert values_of(cluster, 0, stored) == [b"%08d" % n for n in range(stored)]
        broker.kill()
        broker.start()
        broker.wait_ready()
        trimmed = stored - 10
        ask(cluster, "topic", "trim", "t", "--partition", "0", "--before", str(trimmed), "--yes")
        end, _ = fill(cluster, stored)
        assert end > stored + 20, "there was room again"
        assert values_of(cluster, trimmed, end) == [b"%08d" % n for n in range(trimmed, end)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    made = LocalCluster(tmp_path, Layout(controllers=1, brokers=3))
    for broker in made.brokers:
        give_disks(broker, "a", "b")
    with made as running:
        yield running


@contextmanager
def failing(broker: LocalNode, calls: str, paths: Sequence[Path]) -> Iterator[None]:
    """The first of these system calls that each thread makes on any of the files fails; the next
    one succeeds, as if nothing had been.
    """
    assert broker.process is not None
    tracer = subprocess.Popen(
        ["strace", "-f", "-o", "/dev/null", "-p", str(broker.process.pid)]
        + [word for path in paths for word in ("-P", str(path))]
        + ["-e", f"trace={calls}", "-e", f"inject={calls}:error=EIO:when=1"],
        stderr=subprocess.PIPE,
    )
    assert tracer.stderr is not None
    told = tracer.stderr.readline()
    assert b"attached" in told, told
    try:
        yield
    finally:
        tracer.terminate()
        tracer.wait()
        tracer.stderr.close()


@needs_strace
@pytest.mark.parametrize("calls", ["fdatasync", "writev"], ids=["sync", "write"])
def test_an_error_of_the_disk_takes_its_directory_offline_and_loses_nothing(
    cluster: LocalCluster, calls: str
) -> None:
    create(cluster, "t")
    with suiro.Admin(cluster.bootstrap) as admin:
        admin.alter_configs({"flush.policy": "ack"}, topic="t")
    write(cluster, "t", 0)
    broker = cluster.brokers[0]
    bad, good = str(broker.folder / "a"), str(broker.folder / "b")
    kept = on_disk(cluster, broker.node_id)[good]
    paths = sorted((broker.folder / "a").glob("t-*/*.log"))
    assert paths
    with failing(broker, calls, paths):
        write(cluster, "t", RECORDS)
    eventually(lambda: on_disk(cluster, broker.node_id)[bad] == ["FAILED"], "it goes on")
    assert on_disk(cluster, broker.node_id)[good] == kept, "the other disk goes on"
    assert broker.is_running
    check(cluster, 2 * RECORDS)
    broker.kill()
    broker.start()
    broker.wait_ready()
    eventually(lambda: in_sync(cluster), "not in sync again")
    write(cluster, "t", 2 * RECORDS)
    check(cluster, 3 * RECORDS)


def test_a_bit_flips_in_every_file_of_the_store_of_a_directory(cluster: LocalCluster) -> None:
    """RocksDB's: its log, its tables, its manifest. The directory counts as failed, or as one that
    was not closed in order; it never says less than was true.
    """
    create(cluster, "t")
    write(cluster, "t", 0)
    broker = cluster.brokers[0]
    broker.kill()
    state = broker.folder / "a" / "state"
    rng = Random(9)
    flipped = [path for path in sorted(state.iterdir()) if is_read(path) and flip(path, rng)]
    assert flipped
    write(cluster, "t", RECORDS)
    broker.start()
    broker.wait_ready()
    check(cluster, 2 * RECORDS)
    if not in_sync(cluster):  # what an operator does who trusts the disk, see docs/log.md
        broker.kill()
        shutil.rmtree(state)
        broker.start()
        broker.wait_ready()
    eventually(lambda: in_sync(cluster), "not in sync again")
    check(cluster, 2 * RECORDS)


def is_read(path: Path) -> bool:
    """RocksDB's own diary, its lock and its copies of the options are not."""
    return path.is_file() and not path.name.startswith(("LOG", "LOCK", "OPTIONS", "IDENTITY"))


def flip(path: Path, rng: Random) -> bool:
    content = bytearray(path.read_bytes())
    if not content:
        return False
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return True


def in_sync(cluster: LocalCluster) -> bool:
    with suiro.Admin(cluster.bootstrap) as admin:
        return all(len(p.isr) == 3 for p in admin.describe_topic("t").partitions)


def check(cluster: LocalCluster, count: int) -> None:
    """Everything that was acknowledged is there, once, in order."""
    found = read(cluster, "t", count)
    assert len(found) == count
    for number in range(PARTITIONS):
        own = [int(value or b"") for value in found if int(value or b"") % PARTITIONS == number]
        assert own == list(range(number, count, PARTITIONS))
