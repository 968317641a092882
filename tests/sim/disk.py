"""A disk in memory that forgets what was not synced: `ForgetfulFs` implements `Fs`.

The model, which promises no more than POSIX does:

- An append or a truncation is visible at once and survives the process. It survives a power loss
  for sure only after a `sync` of the file; until then any prefix of the file's unsynced changes may
  survive, the last one torn at any byte, and of the appended bytes any 64-byte page may be zeros.
- A new, renamed or removed name survives for sure only after a `sync_directory` of the directory
  that holds it; until then any subset of the unsynced changes may survive, each whole. A file whose
  name is lost is lost, however well its bytes were synced.
- A failed `sync` is not made good by a later one that succeeds: the pages count as clean, so the
  later one has nothing to write (fsyncgate).
- A write that fails leaves the file as it was.

A crash takes a `Survival`, which says what of all this survives: one of the named ones, or
`Chance`, which draws everything from a Random. `survivors` gives the disk after a crash at this
moment without ending this life, so that a test can look at every moment of a run: `after` is called
after every operation that changes something, and `fault` before every operation at all.
"""

from __future__ import annotations

import copy
import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from suiro.model.batch import Buffer

PAGE_BYTES: Final = 64
"""Small, so that the small files of a test have several."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing done to the disk."""

    kind: str
    """append, truncate, sync, create, rename, remove, make_directory, sync_directory, read."""
    path: Path
    size: int = 0


@dataclass(frozen=True, slots=True)
class Append:
    """Bytes put at the end, which was here."""

    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    size: int


Change = Append | Truncate


class Survival(Protocol):
    """What of the unsynced changes survives a power loss."""

    def content(self, durable: bytes, changes: Sequence[Change]) -> bytes:
        """A file's bytes after it."""

    def names(self, changes: int) -> list[bool]:
        """Which of a directory's changes are there after it."""


@dataclass(slots=True, eq=False)
class _File:
    durable: bytes = b""
    live: bytearray = field(default_factory=bytearray)
    changes: list[Change] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _NameChange:
    """`old` loses its name, `new` gets `node`; either may be missing."""

    old: str | None
    new: str | None
    node: _File | _Directory | None


@dataclass(slots=True, eq=False)
class _Directory:
    durable: dict[str, _File | _Directory] = field(default_factory=dict)
    live: dict[str, _File | _Directory] = field(default_factory=dict)
    changes: list[_NameChange] = field(default_factory=list)

    def change(self, old: str | None, new: str | None) -> None:
        node = self.live.get(old) if old is not None else None
        self.carry_out(self.live, _NameChange(old, new, node))
        self.changes.append(_NameChange(old, new, node))

    def add(self, name: str, node: _File | _Directory) -> None:
        self.live[name] = node
        self.changes.append(_NameChange(None, name, node))

    @staticmethod
    def carry_out(names: dict[str, _File | _Directory], change: _NameChange) -> None:
        if change.old is not None and names.get(change.old) is change.node:
            del names[change.old]
        if change.new is not None and change.node is not None:
            names[change.new] = change.node


class ForgetfulFs:
    """One machine's disk."""

    def __init__(self, *, capacity_bytes: int = 1 << 40) -> None:
        self.capacity_bytes = capacity_bytes
        self.capacities: dict[Path, int] = {}
        """Of directories that are disks of their own, as far as anybody asks."""
        self.fault: Callable[[Operation], OSError | None] | None = None
        """Called before every operation; what it returns is raised."""
        self.after: Callable[[Operation], None] | None = None
        """Called after every operation that changed something."""
        self.trace: list[Operation] = []
        self.life = 0
        self._root = _Directory()
        self._used_bytes = 0

    # -- crashes ----------------------------------------------------------------------------------

    def crash(self, survival: Survival) -> None:
        """The power fails: files that are open can only be closed, the rest is what survives."""
        self._root = _surviving_directory(self._root, survival)
        self._used_bytes = _size_of(self._root)
        self.life += 1

    def survivors(self, survival: Survival) -> ForgetfulFs:
        """The disk as it would be after a crash at this moment."""
        disk = ForgetfulFs(capacity_bytes=self.capacity_bytes)
        disk._root = _surviving_directory(self._root, survival)
        disk._used_bytes = _size_of(disk._root)
        return disk

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    def contents(self) -> dict[Path, bytes]:
        """Every file and what is in it."""
        return dict(_files(self._root, Path("/")))

    # -- damage -----------------------------------------------------------------------------------

    def content(self, path: Path) -> bytes:
        return bytes(self._file(path).live)

    def replace(self, path: Path, content: bytes) -> None:
        """Behind everyone's back and durably: bit rot, a lost page, a file from a backup."""
        file = self._file(path)
        self._used_bytes += len(content) - len(file.live)
        file.durable, file.live = content, bytearray(content)
        file.changes.clear()

    def flip_bit(self, path: Path, position: int, bit: int) -> None:
        content = bytearray(self.content(path))
        content[position] ^= 1 << bit
        self.replace(path, bytes(content))

    def snapshot(self, path: Path) -> _File | _Directory | None:
        """What is below a path, as it is now: a disk that is put on the shelf."""
        return copy.deepcopy(self._node(path))

    def restore(self, path: Path, found: _File | _Directory | None) -> None:
        """Durably put it back, in the place of whatever is there now."""
        parent = self._directory(path.parent)
        assert parent is not None
        assert found is not None
        self._used_bytes += _size_of(found) - _size_of(parent.live.get(path.name))
        parent.live[path.name] = parent.durable[path.name] = found

    # -- Fs ---------------------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False) -> ForgetfulFile:
        directory = self._directory(path.parent)
        node = directory.live.get(path.name) if directory is not None else None
        if node is None:
            if not create or directory is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
            self.begin("create", path)
            node = _File()
            directory.add(path.name, node)
            self.end("create", path)
        if isinstance(node, _Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return ForgetfulFile(self, path, node)

    def exists(self, path: Path) -> bool:
        return self._node(path) is not None

    def names(self, directory: Path) -> list[str]:
        node = self._directory(directory)
        return sorted(node.live) if node is not None else []

    def make_directory(self, path: Path) -> None:
        node = self._root
        for number, name in enumerate(path.parts[1:], start=2):
            below = node.live.get(name)
            if below is None:
                made = Path(*path.parts[:number])
                self.begin("make_directory", made)
                below = _Directory()
                node.add(name, below)
                self.end("make_directory", made)
            assert isinstance(below, _Directory)
            node = below

    def rename(self, old: Path, new: Path) -> None:
        assert old.parent == new.parent, "the model knows renames inside a directory only"
        directory = self._directory(old.parent)
        if directory is None or old.name not in directory.live:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(old))
        self.begin("rename", old)
        self._used_bytes -= _size_of(directory.live.get(new.name))
        directory.change(old.name, new.name)
        self.end("rename", old)

    def remove(self, path: Path) -> None:
        directory = self._directory(path.parent)
        if directory is None or path.name not in directory.live:
            return
        self.begin("remove", path)
        self._used_bytes -= _size_of(directory.live[path.name])
        directory.change(path.name, None)
        self.end("remove", path)

    def remove_tree(self, path: Path) -> None:
        self.remove(path)

    def sync_directory(self, path: Path) -> None:
        directory = self._directory(path)
        if directory is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        self.begin("sync_directory", path)
        directory.durable = dict(directory.live)
        directory.changes.clear()
        self.end("sync_directory", path)

    def free_bytes(self, path: Path) -> int:
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        if path in self.capacities:
            return self.capacities[path] - _size_of(self._node(path))
        return self.capacity_bytes - self._used_bytes

    # -- the parts --------------------------------------------------------------------------------

    def begin(self, kind: str, path: Path, size: int = 0) -> None:
        if self.fault is not None:
            error = self.fault(Operation(kind, path, size))
            if error is not None:
                raise error

    def end(self, kind: str, path: Path, size: int = 0) -> None:
        operation = Operation(kind, path, size)
        self.trace.append(operation)
        if self.after is not None:
            self.after(operation)

    def use(self, more_bytes: int) -> None:
        """Take room on the disk, or give it back."""
        if self._used_bytes + more_bytes > self.capacity_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._used_bytes += more_bytes

    def _node(self, path: Path) -> _File | _Directory | None:
        node: _File | _Directory | None = self._root
        for name in path.parts[1:]:
            node = node.live.get(name) if isinstance(node, _Directory) else None
        return node

    def _directory(self, path: Path) -> _Directory | None:
        node = self._node(path)
        return node if isinstance(node, _Directory) else None

    def _file(self, path: Path) -> _File:
        node = self._node(path)
        assert isinstance(node, _File), path
        return node


class ForgetfulFile:
    """An open file; dead after the crash of its disk."""

    def __init__(self, fs: ForgetfulFs, path: Path, file: _File) -> None:
        self._fs = fs
        self._path = path
        self._file = file
        self._life = fs.life
        self._is_open = True

    @property
    def size(self) -> int:
        return len(self._file.live)

    def append(self, parts: Sequence[Buffer]) -> None:
        data = b"".join(parts)
        self._begin("append", len(data))
        self._fs.use(len(data))
        self._file.changes.append(Append(len(self._file.live), data))
        self._file.live += data
        self._fs.end("append", self._path, len(data))

    def read_at(self, position: int, size: int) -> bytes:
        self._begin("read", size)
        return bytes(self._file.live[position : position + size])

    def truncate(self, size: int) -> None:
        self._begin("truncate", size)
        self._fs.use(size - len(self._file.live))
        self._file.changes.append(Truncate(size))
        _carry_out(self._file.live, self._file.changes[-1])
        self._fs.end("truncate", self._path, size)

    def sync(self) -> None:
        try:
            self._begin("sync", 0)
        except OSError:
            self._file.changes.clear()  # the pages count as clean now, and are not on the disk
            raise
        durable = bytearray(self._file.durable)
        for change in self._file.changes:
            _carry_out(durable, change)
        self._file.durable = bytes(durable)
        self._file.changes.clear()
        self._fs.end("sync", self._path)

    def close(self) -> None:
        self._is_open = False

    def _begin(self, kind: str, size: int) -> None:
        if not self._is_open or self._life != self._fs.life:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self._path))
        self._fs.begin(kind, self._path, size)


# -- what survives --------------------------------------------------------------------------------


class Nothing:
    """Only what was synced."""

    def content(self, durable: bytes, changes: Sequence[Change]) -> bytes:
        return durable

    def names(self, changes: int) -> list[bool]:
        return [False] * changes


class Everything:
    """As after kill -9: the operating system goes on and writes it all."""

    def content(self, durable: bytes, changes: Sequence[Change]) -> bytes:
        content = bytearray(durable)
        for change in changes:
            _carry_out(content, change)
        return bytes(content)

    def names(self, changes: int) -> list[bool]:
        return [True] * changes


class NamesOnly(Nothing):
    """The names were written, the bytes were not."""

    def names(self, changes: int) -> list[bool]:
        return [True] * changes


class BytesOnly(Everything):
    """The bytes were written, the names were not."""

    def names(self, changes: int) -> list[bool]:
        return [False] * changes


class Torn(Everything):
    """All is there, but the last append of each file only by half."""

    def content(self, durable: bytes, changes: Sequence[Change]) -> bytes:
        whole = super().content(durable, changes)
        if changes and isinstance(changes[-1], Append):
            return whole[: len(whole) - (len(changes[-1].data) + 1) // 2]
        return whole


class Zeroed(Everything):
    """The sizes were written, the appended bytes were not: they read as zeros."""

    def content(self, durable: bytes, changes: Sequence[Change]) -> bytes:
        content = bytearray(durable)
        for change in changes:
            if isinstance(change, Append):
                _carry_out(content, Append(change.position, bytes(len(change.data))))
            else:
                _carry_out(content, change)
        return bytes(content)


class Chance:
    """Anything the model allows, drawn from a Random."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def content(self, durable: bytes, changes: Sequence[Change]) -> bytes:
        content = bytearray(durable)
        survive = changes[: self._rng.randint(0, len(changes))]
        for number, change in enumerate(survive):
            if isinstance(change, Append):
                data = self._with_lost_pages(change.data)
                if number == len(survive) - 1:
                    data = data[: self._rng.randint(0, len(data))]
                _carry_out(content, Append(change.position, data))
            else:
                _carry_out(content, change)
        return bytes(content)

    def names(self, changes: int) -> list[bool]:
        return [self._rng.random() < 0.5 for _ in range(changes)]

    def _with_lost_pages(self, data: bytes) -> bytes:
        if self._rng.random() < 0.7:
            return data
        pages = [data[at : at + PAGE_BYTES] for at in range(0, len(data), PAGE_BYTES)]
        return b"".join(page if self._rng.random() < 0.5 else bytes(len(page)) for page in pages)


NAMED_SURVIVALS: Final[tuple[Survival, ...]] = (
    Nothing(),
    Everything(),
    NamesOnly(),
    BytesOnly(),
    Torn(),
    Zeroed(),
)


def _carry_out(content: bytearray, change: Change) -> None:
    match change:
        case Append(position, data):
            content += bytes(max(0, position - len(content)))  # what a failed sync lost before it
            content[position : position + len(data)] = data
        case Truncate(size):
            del content[size:]


def _surviving_file(file: _File, survival: Survival) -> _File:
    content = survival.content(file.durable, file.changes) if file.changes else file.durable
    return _File(durable=content, live=bytearray(content))


def _surviving_directory(directory: _Directory, survival: Survival) -> _Directory:
    names = dict(directory.durable)
    kept = survival.names(len(directory.changes))
    for change, is_kept in zip(directory.changes, kept, strict=True):
        if is_kept:
            _Directory.carry_out(names, change)
    survivors: dict[str, _File | _Directory] = {}
    for name in sorted(names):
        node = names[name]
        survivors[name] = (
            _surviving_file(node, survival)
            if isinstance(node, _File)
            else _surviving_directory(node, survival)
        )
    return _Directory(durable=survivors, live=dict(survivors))


def _files(directory: _Directory, path: Path) -> Iterator[tuple[Path, bytes]]:
    for name in sorted(directory.live):
        node = directory.live[name]
        if isinstance(node, _Directory):
            yield from _files(node, path / name)
        else:
            yield path / name, bytes(node.live)


def _size_of(node: _File | _Directory | None) -> int:
    match node:
        case None:
            return 0
        case _File():
            return len(node.live)
        case _Directory():
            return sum(map(_size_of, node.live.values()))
