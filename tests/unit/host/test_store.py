"""One contract for both stores, and what only one of them can show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suiro.model.errors import StorageFailed

from cluster.host.store import RocksStore, Store
from tests.sim.store import StoreDisk

if TYPE_CHECKING:
    from pathlib import Path

END = b"\xff\xff"
Open = Callable[[], Store]


@pytest.fixture(params=["rocks", "forgetful"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "rocks":
        return lambda: RocksStore(tmp_path / "store")
    return StoreDisk(Random(1)).open


def test_keys_are_in_byte_order_and_ranges_half_open(open_store: Open) -> None:
    store = open_store()
    store.write(
        [(b"b", b"2"), (b"", b"0"), (b"\xfe", b"9"), (b"a", b"1"), (b"a\0", b"1+")], sync=False
    )
    assert [key for key, _ in store.scan(b"", END)] == [b"", b"a", b"a\0", b"b", b"\xfe"]
    assert list(store.scan(b"a", b"b")) == [(b"a", b"1"), (b"a\0", b"1+")]
    assert list(store.scan(b"a", b"a")) == []
    assert list(store.scan(b"b", b"a")) == []
    assert store.get(b"b") == b"2"
    assert store.get(b"c") is None
    store.close()


def test_one_write_deletes_ranges_then_keys_then_puts(open_store: Open) -> None:
    store = open_store()
    store.write([(bytes([n]), b"old") for n in range(10)], sync=False)
    store.write(
        [(b"\x05", b"new"), (b"\x00", b"new")],
        [b"\x00", b"\x01", b"missing"],
        [(b"\x04", b"\x08")],
        sync=True,
    )
    kept = {key[0]: value for key, value in store.scan(b"", END)}
    assert kept == {0: b"new", 2: b"old", 3: b"old", 5: b"new", 8: b"old", 9: b"old"}
    store.close()


def test_a_scan_sees_the_store_as_it_was_when_it_began(open_store: Open) -> None:
    store = open_store()
    store.write([(b"a", b"1"), (b"b", b"2")], sync=False)
    scan = store.scan(b"", END)
    store.write([(b"c", b"3")], [b"b"], sync=False)
    assert list(scan) == [(b"a", b"1"), (b"b", b"2")]
    store.close()


def test_a_process_that_ends_loses_nothing(open_store: Open) -> None:
    store = open_store()
    store.write([(b"synced", b"1")], sync=True)
    store.write([(b"unsynced", b"2")], sync=False)
    store.close()
    again = open_store()
    assert dict(again.scan(b"", END)) == {b"synced": b"1", b"unsynced": b"2"}
    again.close()


def test_only_one_may_have_it_open(open_store: Open) -> None:
    store = open_store()
    with pytest.raises(StorageFailed):
        open_store()
    store.close()
    open_store().close()


def test_a_closed_store_refuses_and_may_be_closed_again(open_store: Open) -> None:
    store = open_store()
    store.close()
    store.close()
    with pytest.raises(StorageFailed):
        store.get(b"a")
    with pytest.raises(StorageFailed):
        store.write([(b"a", b"1")], sync=False)


keys = st.binary(max_size=2)
ranges = st.lists(st.tuples(keys, keys).filter(lambda r: r[0] < r[1]), max_size=2)
writes = st.tuples(
    st.lists(st.tuples(keys, st.binary(max_size=3)), max_size=5), st.lists(keys, max_size=3), ranges
)


@settings(max_examples=25)
@given(st.lists(writes, max_size=6))
def test_both_stores_agree(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[tuple[list[tuple[bytes, bytes]], list[bytes], list[tuple[bytes, bytes]]]],
) -> None:
    rocks = RocksStore(tmp_path_factory.mktemp("twin") / "store")
    memory = StoreDisk(Random(1)).open()
    for puts, deletes, gone in script:
        for store in (rocks, memory):
            store.write(puts, deletes, gone, sync=False)
        assert list(rocks.scan(b"", b"\xff" * 3)) == list(memory.scan(b"", b"\xff" * 3))
    rocks.close()


def test_kill_9_loses_no_write(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib\n"
        "from cluster.host.store import RocksStore\n"
        "store = RocksStore(pathlib.Path(sys.argv[1]))\n"
        "for n in range(300):\n"
        "    store.write([(bytes([n // 256, n % 256]), b'x' * 100)], sync=n % 100 == 0)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "store"
    died = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert died.returncode == -9
    store = RocksStore(path)
    assert len(list(store.scan(b"", END))) == 300
    store.close()


def test_a_failed_write_poisons_a_rocks_store(tmp_path: Path) -> None:
    """A real failure: the kernel lets no file of this process grow beyond 200 kB."""
    code = (
        "import resource, signal, sys, pathlib\n"
        "from cluster.host.store import RocksStore\n"
        "from suiro.model.errors import StorageFailed\n"
        "store = RocksStore(pathlib.Path(sys.argv[1]))\n"
        "store.write([(b'good', b'1')], sync=True)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))\n"
        "def refused(work):\n"
        "    try:\n"
        "        work()\n"
        "    except StorageFailed:\n"
        "        return True\n"
        "    return False\n"
        "failed = refused(lambda: store.write([(b'bad', b'x' * 500_000)], sync=True))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "print(failed, refused(lambda: store.get(b'good')),\n"
        "      refused(lambda: store.write([(b'small', b'')], sync=True)))\n"
        "store.close()\n"
    )
    path = tmp_path / "store"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["True", "True", "True"], done.stderr
    store = RocksStore(path)
    assert store.get(b"good") == b"1"
    assert store.get(b"bad") is None
    store.close()


def test_a_failed_write_poisons_the_forgetful_store() -> None:
    disk = StoreDisk(Random(1))
    store = disk.open()
    store.write([(b"good", b"1")], sync=True)
    disk.fail_writes = True
    with pytest.raises(StorageFailed):
        store.write([(b"bad", b"1")], sync=True)
    disk.fail_writes = False
    with pytest.raises(StorageFailed):
        store.get(b"good")
    store.close()
    assert dict(disk.open().scan(b"", END)) == {b"good": b"1"}


def test_a_crash_keeps_what_was_synced_and_a_prefix_of_the_rest() -> None:
    kept = set()
    for seed in range(50):
        disk = StoreDisk(Random(seed))
        store = disk.open()
        store.write([(b"0", b"")], sync=False)
        store.write([(b"1", b"")], sync=True)
        store.write([(b"2", b""), (b"2+", b"")], sync=False)
        store.write([(b"3", b"")], [b"2"], sync=False)
        disk.crash()
        with pytest.raises(StorageFailed):
            store.write([(b"late", b"")], sync=True)
        kept.add(tuple(key for key, _ in disk.open().scan(b"", END)))
    assert kept == {(b"0", b"1"), (b"0", b"1", b"2", b"2+"), (b"0", b"1", b"2+", b"3")}
