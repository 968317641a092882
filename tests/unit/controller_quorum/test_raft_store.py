"""What a member keeps on disk comes back as it was, whatever the crash left of it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from suiro.model.errors import (
    ClusterIdMismatch,
    InvalidConfig,
    InvalidRequest,
    NotFormatted,
    StorageFailed,
)
from suiro.model.ids import Address, NodeId

from cluster.controller_quorum.conf import ConfState, DirectoryId, Member
from cluster.controller_quorum.messages import Entry, EntryKind, HardState, Snapshot
from cluster.controller_quorum.raft_store import PIECE_BYTES, RaftStore, StoreOwner
from cluster.host.store import RocksStore
from cluster.storage import Founder, Identity, format_directory, load_identity, random_cluster_id
from tests.sim.disk import ForgetfulFs
from tests.sim.store import StoreDisk

if TYPE_CHECKING:
    from cluster.controller_quorum.messages import Stored

OWNER = StoreOwner("cluster", NodeId(1), "directory")
ME = Member(NodeId(1), DirectoryId("directory"))
ADDRESS = Address("one", 9000)
CONF = ConfState((ME,))


def entries(first: int, last: int, term: int = 1) -> list[Entry]:
    return [Entry(n, term, EntryKind.NORMAL, b"%d" % n) for n in range(first, last + 1)]


class Disk:
    """A disk and the store that a process has open on it."""

    def __init__(self, seed: int = 0) -> None:
        self.disk = StoreDisk(Random(seed))
        self.store = RaftStore(self.disk.open())

    def format(self) -> RaftStore:
        self.store.format(OWNER, {(ME.node, ME.directory): ADDRESS})
        self.store.load(OWNER)
        return self.store

    def restart(self, owner: StoreOwner = OWNER) -> Stored:
        self.store.close()
        self.store = RaftStore(self.disk.open())
        return self.store.load(owner)

    def rows(self, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        self.store.close()
        raw = self.disk.open()
        rows = list(raw.scan(start, end))
        raw.close()
        return rows


def formatted() -> tuple[Disk, RaftStore]:
    disk = Disk()
    return disk, disk.format()


def test_a_formatted_store_has_the_founders_and_nothing_else() -> None:
    disk, _ = formatted()
    stored = disk.restart()
    assert stored.snapshot == Snapshot(conf=CONF)
    assert stored.entries == ()
    assert stored.hard_state == HardState()
    assert disk.store.addresses() == {ME.node: ADDRESS}


def test_a_store_of_somebody_else_is_refused() -> None:
    disk = Disk()
    with pytest.raises(NotFormatted):
        disk.restart()
    disk.format()
    with pytest.raises(ClusterIdMismatch):
        disk.restart(StoreOwner("another", ME.node, ME.directory))
    with pytest.raises(InvalidConfig, match="directory id"):
        disk.restart(StoreOwner("cluster", ME.node, "another"))


def test_entries_replace_the_tail_from_their_first_index_on() -> None:
    disk, store = formatted()
    store.write(None, entries(1, 5), HardState(1, ME, 2), sync=True)
    store.write(None, entries(3, 3, term=2), HardState(2, None, 2), sync=True)
    stored = disk.restart()
    assert list(stored.entries) == entries(1, 2) + entries(3, 3, term=2)
    assert stored.hard_state == HardState(2, None, 2)


def test_a_snapshot_from_the_leader_replaces_everything() -> None:
    disk, store = formatted()
    store.write(None, entries(1, 5), None, sync=True)
    snapshot = Snapshot(9, 3, CONF, bytes(range(256)) * (PIECE_BYTES // 100))
    store.write(snapshot, entries(10, 11, term=3), HardState(3, None, 9), sync=True)
    stored = disk.restart()
    assert stored.snapshot == snapshot
    assert list(stored.entries) == entries(10, 11, term=3)


def test_compaction_counts_all_at_once() -> None:
    disk, store = formatted()
    store.write(None, entries(1, 8), HardState(1, ME, 8), sync=True)
    snapshot = Snapshot(5, 1, CONF, b"state" * PIECE_BYTES)
    store.stage(snapshot)
    assert disk.restart().snapshot.index == 0, "staged is not enough"
    disk.store.stage(snapshot)  # the start has removed what did not count
    disk.store.compact(snapshot)
    stored = disk.restart()
    assert stored.snapshot == snapshot
    assert list(stored.entries) == entries(6, 8)


def test_pieces_that_never_counted_are_removed_at_the_next_start() -> None:
    disk, store = formatted()
    store.write(None, entries(1, 8), None, sync=True)
    store.stage(Snapshot(5, 1, CONF, b"state"))
    disk.restart()
    assert disk.rows(b"c", b"d") == []


def test_a_damaged_snapshot_is_refused() -> None:
    disk, store = formatted()
    store.write(None, entries(1, 8), None, sync=True)
    store.stage(Snapshot(5, 1, CONF, b"state"))
    store.compact(Snapshot(5, 1, CONF, b"state"))
    ((key, _),) = disk.rows(b"c", b"d")
    raw = disk.disk.open()
    raw.write(puts=[(key, b"stale")], sync=True)
    raw.close()
    with pytest.raises(StorageFailed, match="damaged"):
        disk.restart()


@pytest.mark.parametrize("seed", range(20))
def test_synced_writes_survive_any_crash(seed: int) -> None:
    """Against a dumb twin: a list of entries and the last hard state that was synced."""
    rng = Random(seed)
    disk = Disk(seed)
    store = disk.format()
    log: list[Entry] = []
    state = HardState()
    snapshot = Snapshot(conf=CONF)
    for term in range(1, 40):
        first = snapshot.index + 1 + rng.randint(0, len(log))
        new = entries(first, first + rng.randint(0, 4), term)
        state = HardState(term, ME if rng.random() < 0.5 else None, snapshot.index)
        store.write(None, new, state, sync=True)
        log = log[: first - snapshot.index - 1] + new
        if rng.random() < 0.2:
            store.write(None, (), state, sync=False)
        if rng.random() < 0.2:
            taken = Snapshot(log[0].index, log[0].term, CONF, b"s" * rng.randint(0, 9))
            store.stage(taken)
            if rng.random() < 0.8:
                store.compact(taken)
                snapshot, log = taken, log[1:]
        if rng.random() < 0.3:
            store.close()
            disk.disk.crash()
            stored = disk.restart()
            store = disk.store
            assert list(stored.entries) == log
            assert (stored.hard_state.term, stored.hard_state.vote) == (state.term, state.vote)
            assert stored.snapshot == snapshot


def test_the_same_on_rocksdb(tmp_path: Path) -> None:
    raw = RocksStore(tmp_path / "quorum")
    store = RaftStore(raw)
    store.format(OWNER, {(ME.node, ME.directory): ADDRESS})
    store.load(OWNER)
    store.write(None, entries(1, 5), HardState(1, ME, 2), sync=True)
    store.write(None, entries(3, 4, term=2), HardState(2, ME, 2), sync=True)
    snapshot = Snapshot(2, 1, CONF, b"state" * PIECE_BYTES)
    store.stage(snapshot)
    store.compact(snapshot)
    store.save_addresses({NodeId(2): Address("two", 2)})
    store.close()
    store = RaftStore(RocksStore(tmp_path / "quorum"))
    stored = store.load(OWNER)
    assert list(stored.entries) == entries(3, 4, term=2)
    assert stored.hard_state == HardState(2, ME, 2)
    assert stored.snapshot == snapshot
    assert store.addresses() == {ME.node: ADDRESS, NodeId(2): Address("two", 2)}
    store.close()


# -- formatting -----------------------------------------------------------------------------------

DATA = Path("/data")


def identity(seed: int = 0, node_id: int = 1) -> Identity:
    rng = Random(seed)
    return Identity(random_cluster_id(rng), NodeId(node_id), rng.randbytes(16))


def test_formatting_is_done_once() -> None:
    fs, disk, mine = ForgetfulFs(), StoreDisk(Random(0)), identity()
    founders = [Founder(mine.node_id, mine.directory_id, ADDRESS)]
    with pytest.raises(NotFormatted):
        load_identity(fs, DATA)
    format_directory(fs, lambda _: disk.open(), DATA, mine, founders)
    assert load_identity(fs, DATA) == mine
    with pytest.raises(InvalidRequest, match="formatted already"):
        format_directory(fs, lambda _: disk.open(), DATA, mine, founders)
    again = Identity(mine.cluster_id, mine.node_id, bytes(16))
    found = format_directory(
        fs, lambda _: disk.open(), DATA, again, founders, ignore_formatted=True
    )
    assert found == mine, "the directory keeps its id"
    with pytest.raises(ClusterIdMismatch):
        format_directory(
            fs, lambda _: disk.open(), DATA, identity(seed=1), founders, ignore_formatted=True
        )
    with pytest.raises(InvalidConfig, match="belongs to node 1"):
        load_identity(fs, DATA, node_id=NodeId(2))


def test_the_founders_must_have_this_node_among_them() -> None:
    fs, disk, mine = ForgetfulFs(), StoreDisk(Random(0)), identity()
    other = Founder(NodeId(2), bytes(16), ADDRESS)
    for wrong in ([other], [Founder(mine.node_id, bytes(16), ADDRESS)]):
        with pytest.raises(InvalidRequest):
            format_directory(fs, lambda _: disk.open(), DATA, mine, wrong)
    with pytest.raises(NotFormatted):
        load_identity(fs, DATA)
