"""The forgetful disk does what its docstring says; and what it forgets, the real one may forget."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from cluster.host.fs import OsFs, read_file, replace_file
from tests.sim.disk import (
    NAMED_SURVIVALS,
    BytesOnly,
    Chance,
    Everything,
    ForgetfulFs,
    NamesOnly,
    Nothing,
    Operation,
    Torn,
    Zeroed,
)

if TYPE_CHECKING:
    from cluster.host.fs import Fs
    from tests.sim.disk import Survival

DIRECTORY = Path("/d")
FILE = DIRECTORY / "file"


def disk() -> ForgetfulFs:
    """A disk with a durable file of four bytes."""
    fs = ForgetfulFs()
    fs.make_directory(DIRECTORY)
    fs.sync_directory(Path("/"))
    file = fs.open(FILE, create=True)
    file.append([b"ab", b"cd"])
    file.sync()
    fs.sync_directory(DIRECTORY)
    return fs


@pytest.mark.parametrize(
    ("survival", "expected"),
    [
        (Nothing(), b"abcd"),
        (Everything(), b"abXYZ"),
        (NamesOnly(), b"abcd"),
        (BytesOnly(), b"abXYZ"),
        (Torn(), b"abX"),
        (Zeroed(), b"ab\0\0\0"),
    ],
)
def test_unsynced_bytes(survival: Survival, expected: bytes) -> None:
    fs = disk()
    file = fs.open(FILE)
    file.truncate(2)
    file.append([b"XYZ"])
    assert file.read_at(0, 10) == b"abXYZ"
    assert fs.survivors(survival).content(FILE) == expected
    assert fs.content(FILE) == b"abXYZ"
    file.sync()
    for any_survival in NAMED_SURVIVALS:
        assert fs.survivors(any_survival).content(FILE) == b"abXYZ"


def test_unsynced_names() -> None:
    fs = disk()
    fs.open(DIRECTORY / "new", create=True).sync()
    fs.rename(FILE, DIRECTORY / "moved")
    assert fs.names(DIRECTORY) == ["moved", "new"]
    assert fs.survivors(BytesOnly()).names(DIRECTORY) == ["file"]
    assert fs.survivors(NamesOnly()).names(DIRECTORY) == ["moved", "new"]
    found = {tuple(fs.survivors(Chance(Random(seed))).names(DIRECTORY)) for seed in range(50)}
    assert found == {("file",), ("file", "new"), ("moved",), ("moved", "new")}
    fs.sync_directory(DIRECTORY)
    assert fs.survivors(Nothing()).names(DIRECTORY) == ["moved", "new"]
    assert fs.survivors(Nothing()).content(DIRECTORY / "moved") == b"abcd"


def test_chance_reaches_torn_and_holed_appends_and_nothing_that_was_not_written() -> None:
    fs = disk()
    written = bytes(range(1, 200))
    fs.open(FILE).append([written])
    lengths, holes = set(), 0
    for seed in range(300):
        content = fs.survivors(Chance(Random(seed))).content(FILE)
        assert content[:4] == b"abcd"
        assert all(found in (0, real) for found, real in zip(content[4:], written, strict=False))
        lengths.add(len(content))
        holes += 0 in content
    assert {4, 203} <= lengths
    assert len(lengths) > 50
    assert holes > 20


def test_a_crash_kills_open_files() -> None:
    fs = disk()
    file = fs.open(FILE)
    file.append([b"!"])
    fs.crash(Nothing())
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.append([b"?"])
    file.close()
    assert fs.content(FILE) == b"abcd"


def test_a_later_sync_does_not_make_a_failed_one_good() -> None:
    fs = disk()
    file = fs.open(FILE)
    file.append([b"12"])
    fs.fault = lambda op: OSError(errno.EIO, "no") if op.kind == "sync" else None
    with pytest.raises(OSError, match="no"):
        file.sync()
    fs.fault = None
    file.append([b"34"])
    file.sync()
    assert file.read_at(0, 10) == b"abcd1234"
    assert fs.survivors(Everything()).content(FILE) == b"abcd\0\x0034"


def test_a_full_disk_takes_nothing() -> None:
    fs = disk()
    fs.capacity_bytes = 6
    file = fs.open(FILE)
    with pytest.raises(OSError, match="No space") as full:
        file.append([b"123"])
    assert full.value.errno == errno.ENOSPC
    assert (file.size, fs.free_bytes(DIRECTORY)) == (4, 2)
    file.append([b"12"])
    fs.remove(FILE)
    assert fs.free_bytes(DIRECTORY) == 6


def test_the_trace_names_every_change() -> None:
    fs = disk()
    seen: list[Operation] = []
    fs.after = seen.append
    replace_file(fs, FILE, b"new")
    assert [operation.kind for operation in seen] == [
        "create",
        "append",
        "sync",
        "rename",
        "sync_directory",
    ]
    assert fs.trace[-5:] == seen


def test_a_replaced_file_is_old_or_new_at_every_moment() -> None:
    fs = disk()

    def look(_: Operation) -> None:
        for survival in (*NAMED_SURVIVALS, Chance(Random(1)), Chance(Random(2))):
            assert fs.survivors(survival).content(FILE) in (b"abcd", b"new")

    fs.after = look
    replace_file(fs, FILE, b"new")
    assert fs.survivors(Nothing()).content(FILE) == b"new"


@pytest.mark.parametrize("kind", ["os", "sim"])
def test_both_file_systems_agree(kind: str, tmp_path: Path) -> None:
    fs: Fs = OsFs() if kind == "os" else ForgetfulFs()
    root = tmp_path / "a" / "b"
    fs.make_directory(root)
    fs.make_directory(root)
    assert fs.names(root / "none") == []
    with pytest.raises(FileNotFoundError):
        fs.open(root / "x")
    file = fs.open(root / "x", create=True)
    file.append([b"one", memoryview(b"two"), bytearray(b"")])
    assert (file.size, file.read_at(2, 3), file.read_at(5, 9), file.read_at(9, 1)) == (
        6,
        b"etw",
        b"o",
        b"",
    )
    file.truncate(4)
    file.append([b"!"])
    file.sync()
    assert read_file(fs, root / "x") == b"onet!"
    fs.rename(root / "x", root / "y")
    fs.sync_directory(root)
    assert (fs.exists(root / "x"), fs.exists(root / "y"), fs.names(root)) == (False, True, ["y"])
    assert file.read_at(0, 9) == b"onet!"
    file.close()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        file.read_at(0, 1)
    fs.remove(root / "y")
    fs.remove(root / "y")
    fs.open(root / "z", create=True).close()
    assert fs.free_bytes(root) > 0
    fs.remove_tree(root)
    fs.remove_tree(root)
    assert not fs.exists(root)
    with pytest.raises(FileNotFoundError):
        fs.rename(root, root.with_name("c"))
    with pytest.raises(FileNotFoundError):
        fs.sync_directory(root)
