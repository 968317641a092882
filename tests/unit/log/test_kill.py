"""kill -9 in the middle of appending, on the real file system and the real store.

What the dying process had acknowledged is there afterwards: under flush=ack what `sync` had
returned, under flush=os what `append` had returned, as the page cache outlives the process.
"""

from __future__ import annotations

import os
import signal
from random import Random
from typing import TYPE_CHECKING, NoReturn

import pytest
from suiro.model.batch import read_header
from suiro.model.ids import LeaderEpoch

from cluster.host.fs import OsFs
from cluster.host.store import RocksStore
from cluster.log.config import Flush, LogConfig
from cluster.log.home import LogHome
from cluster.log.partition_log import PartitionLog
from tests.unit.log.kit import PARTITION, TOPIC_ID, batch, read_all

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 20


def open_log(root: Path, flush: Flush) -> tuple[PartitionLog, RocksStore]:
    store = RocksStore(root / "store")
    home = LogHome(OsFs(), store, root, PARTITION, TOPIC_ID)
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=500, flush=flush)
    return PartitionLog.open(home, config, now_ms=0, discard=lambda work: work()), store


def append_until_killed(root: Path, flush: Flush, acks: int) -> NoReturn:
    """The life of the child: one line per acknowledged end."""
    log, _ = open_log(root, flush)
    rng = Random(log.log_end)
    while True:
        known = log.state.producers.get(1)
        sequence = known.next_sequence if known is not None else 0
        raw = batch(3, size=rng.randint(0, 3_000), producer=(1, 0, sequence))
        end = log.append_as_leader(raw, LeaderEpoch(0), 0).end
        if log.sync_due(0):
            synced_end = log.sync()
            assert synced_end == end
        log.checkpoint(end, 0)
        os.write(acks, f"{end}\n".encode())


def last_ack(root: Path, flush: Flush, acks_before_kill: int) -> int:
    """Fork a child, let it acknowledge that much, kill it; returns what it acknowledged last."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            append_until_killed(root, flush, writer)
        finally:
            os._exit(1)  # only reached by a failure; the parent then sees too few lines
    os.close(writer)
    lines = b""
    while lines.count(b"\n") < acks_before_kill and (more := os.read(reader, 4096)):
        lines += more
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reader, 4096):
        lines += more
    os.close(reader)
    assert lines.count(b"\n") >= acks_before_kill
    return int(lines[: lines.rindex(b"\n")].split(b"\n")[-1])


@pytest.mark.parametrize("flush", [Flush.ACK, Flush.OS])
def test_nothing_acknowledged_is_lost(flush: Flush, tmp_path: Path) -> None:
    rng, before = Random(flush.value), 0
    for _ in range(KILLS):
        acked = last_ack(tmp_path, flush, rng.randint(1, 12))
        log, store = open_log(tmp_path, flush)
        batches = read_all(log, bytes_max=1 << 20)
        assert acked > before
        assert log.log_end >= acked
        assert log.log_end == 3 * len(batches)
        known = log.state.producers.get(1)
        assert known is not None
        assert known.next_sequence == read_header(batches[-1]).last_sequence + 1 == log.log_end
        before = int(log.log_end)
        log.close()
        store.close()
