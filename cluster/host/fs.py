"""The file system as the log sees it: `Fs` and `File`, and the real one, `OsFs`.

All of the product's file access goes through these, so that the simulator can put a disk behind
them that forgets what was not synced. What a caller may rely on is what POSIX gives: appended bytes
survive the process at once and a power loss after `sync`; a new, renamed or removed name survives a
power loss after `sync_directory` of the directory that holds it.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from suiro.model.batch import Buffer

IOV_MAX: Final = 1024


class File(Protocol):
    """One open file; every method blocks, `sync` perhaps for long (see Offload)."""

    @property
    def size(self) -> int: ...

    def append(self, parts: Sequence[Buffer]) -> None:
        """Write all parts at the end. After an OSError the file is as it was before the call."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position`; shorter only at the end of the file."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Return when the bytes and the size are on stable storage; after an OSError they may not
        be, ever.
        """

    def close(self) -> None: ...


class Fs(Protocol):
    """Names and directories. Paths are those of the operating system."""

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and appending; FileNotFoundError unless it exists or `create` is set."""

    def exists(self, path: Path) -> bool: ...

    def names(self, directory: Path) -> list[str]:
        """The names in a directory, sorted; a missing directory has none."""

    def make_directory(self, path: Path) -> None:
        """Make it and its parents; fine if it exists."""

    def rename(self, old: Path, new: Path) -> None:
        """Replace `new` atomically."""

    def remove(self, path: Path) -> None:
        """Remove a file; fine if it is gone."""

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and all below it; fine if it is gone."""

    def sync_directory(self, path: Path) -> None: ...

    def free_bytes(self, path: Path) -> int: ...


def read_file(fs: Fs, path: Path) -> bytes:
    """A whole small file."""
    file = fs.open(path)
    try:
        return file.read_at(0, file.size)
    finally:
        file.close()


def make_durable_directory(fs: Fs, path: Path) -> None:
    """Make it, and see to it that a power loss does not take its name away with all that is in it.
    One that is there may have been made just before a crash, so its name is synced as well.
    """
    missing = [made for made in path.parents if not fs.exists(made)]
    fs.make_directory(path)
    for made in (path, *missing):
        fs.sync_directory(made.parent)


def replace_file(fs: Fs, path: Path, content: bytes) -> None:
    """Write a small file: after any crash the old or the new content is there, whole."""
    temporary = path.with_name(path.name + ".tmp")
    fs.remove(temporary)
    file = fs.open(temporary, create=True)
    try:
        file.append([content])
        file.sync()
    finally:
        file.close()
    fs.rename(temporary, path)
    fs.sync_directory(path.parent)


class OsFile:
    """A file of the operating system, by its descriptor."""

    __slots__ = ("_descriptor", "_size")

    def __init__(self, path: Path, *, create: bool) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self._descriptor = os.open(path, flags, 0o644)
        self._size = os.fstat(self._descriptor).st_size

    @property
    def size(self) -> int:
        return self._size

    def append(self, parts: Sequence[Buffer]) -> None:
        try:
            written = self._write_all(parts)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += written

    def _write_all(self, parts: Sequence[Buffer]) -> int:
        total = 0
        rest = [memoryview(part).cast("B") for part in parts]
        while rest:
            written = os.writev(self._descriptor, rest[:IOV_MAX])
            total += written
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if written:
                rest[0] = rest[0][written:]
        return total

    def read_at(self, position: int, size: int) -> bytes:
        chunk = os.pread(self._descriptor, size, position)
        if len(chunk) == size or not chunk:
            return chunk
        chunks = [chunk]
        missing = size - len(chunk)
        while missing:
            chunk = os.pread(self._descriptor, missing, position + size - missing)
            if not chunk:
                break
            chunks.append(chunk)
            missing -= len(chunk)
        return b"".join(chunks)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self._size = size

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class OsFs:
    """The operating system's file system."""

    def open(self, path: Path, *, create: bool = False) -> OsFile:
        return OsFile(path, create=create)

    def exists(self, path: Path) -> bool:
        return path.exists()

    def names(self, directory: Path) -> list[str]:
        return sorted(os.listdir(directory)) if directory.is_dir() else []

    def make_directory(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def rename(self, old: Path, new: Path) -> None:
        os.replace(old, new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        if path.exists():
            shutil.rmtree(path)

    def sync_directory(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, path: Path) -> int:
        return shutil.disk_usage(path).free
