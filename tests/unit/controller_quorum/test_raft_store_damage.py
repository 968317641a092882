"""A flipped bit in any file of the quorum's store, a real one (F13, M6, M10): the member refuses to
start, or finds all that it had. It never comes back with a vote, an entry or a snapshot less.
"""

from __future__ import annotations

import shutil
from random import Random
from typing import TYPE_CHECKING

import pytest
from suiro.model.error_base import SuiroError

from cluster.controller_quorum.messages import HardState, Snapshot
from cluster.controller_quorum.raft_store import RaftStore
from cluster.host.store import RocksStore
from tests.unit.controller_quorum.test_raft_store import ADDRESS, CONF, ME, OWNER, entries

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.controller_quorum.messages import Stored

ENTRIES = 60
FLIPS_PER_FILE = 6
KINDS = ("CURRENT", "MANIFEST-*", "*.sst", "*.log")
"""RocksDB's own diary and its copies of the options are not read."""


def load(path: Path) -> Stored:
    raw = RocksStore(path)
    try:
        return RaftStore(raw).load(OWNER)
    finally:
        raw.close()


def written(path: Path, *, closed: bool) -> Stored:
    """A member's store: votes, entries, a snapshot; as its process left it, or as kill -9 did."""
    live = path.with_name("live")
    raw = RocksStore(live)
    store = RaftStore(raw)
    store.format(OWNER, {(ME.node, ME.directory): ADDRESS})
    store.load(OWNER)
    store.write(Snapshot(9, 1, CONF, b"state" * 500), [], HardState(1, ME, 9), sync=True)
    for number in range(10, 10 + ENTRIES):
        state = HardState(number, ME, number)
        store.write(None, entries(number, number, term=number), state, sync=True)
    expected = RaftStore(raw).load(OWNER)
    if closed:
        raw.close()
        live.rename(path)
    else:
        shutil.copytree(live, path)
        raw.close()
    return expected


@pytest.mark.parametrize("closed", [True, False], ids=["stopped", "killed"])
def test_no_flipped_bit_makes_a_member_forget(tmp_path: Path, closed: bool) -> None:
    whole = tmp_path / "whole"
    expected = written(whole, closed=closed)
    rng = Random(1)
    refused = tried = 0
    for source in sorted(path for kind in KINDS for path in whole.glob(kind)):
        for _ in range(FLIPS_PER_FILE):
            damaged = tmp_path / "damaged"
            shutil.copytree(whole, damaged)
            content = bytearray((damaged / source.name).read_bytes())
            if not content:
                shutil.rmtree(damaged)
                break
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            (damaged / source.name).write_bytes(content)
            tried += 1
            try:
                found = load(damaged)
            except SuiroError:
                refused += 1
            else:
                assert found == expected, f"{source.name}: the member forgot"
            shutil.rmtree(damaged)
    assert refused > tried // 10, "some of these files matter"


def test_a_record_cut_short_at_the_end_is_left_out_and_no_other(tmp_path: Path) -> None:
    """As a power failure leaves it: what was not synced."""
    path = tmp_path / "store"
    expected = written(path, closed=False)
    (log,) = (p for p in path.glob("*.log") if p.stat().st_size)
    with log.open("rb+") as stream:
        stream.truncate(log.stat().st_size - 3)
    found = load(path)
    assert found.entries == expected.entries[:-1]
