"""One disk of a broker: a directory with its id, its store, its logs and its clean-shutdown mark.

The id is made with the directory and never changes. The controllers know a broker's directories by
it, so one that is gone, or a new one in its place, shows when the broker registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from zlib import crc32

from suiro.model.errors import StorageFailed
from suiro.model.limits import DISK_RESERVE_BYTES

from cluster.host.fs import make_durable_directory, read_file, replace_file
from cluster.log.checkpoints import take_clean
from cluster.log.failures import FULL
from cluster.log.health import Health, WatchedStore
from cluster.log.home import MOVED, MOVING, LogHome, find_homes
from cluster.log.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from suiro.model.ids import BrokerEpoch, TopicId, TopicPartition

    from cluster.host.env import Env
    from cluster.host.fs import Fs
    from cluster.host.store import Store

ID_FILE: Final = "directory.id"
PROBE_FILE: Final = "probe"
ID_BYTES: Final = 16


@dataclass(slots=True)
class LogDirectory:
    """A directory in use; one that could not be opened has only a path and a failure."""

    fs: Fs
    path: Path
    health: Health
    id: str = ""
    store: Store | None = None
    clean_epoch: BrokerEpoch | None = None
    room: Room | None = None
    logs: int = 0

    def open(self, env: Env) -> list[LogHome]:
        """Take it in use, and the clean-shutdown mark away, so that a crash from here on shows;
        returns the logs that are there. A failure is noted, and nothing raised.
        """
        try:
            make_durable_directory(self.fs, self.path)
            self.id = _directory_id(self.fs, self.path, env.rng.randbytes(ID_BYTES))
            self.store = WatchedStore(env.open_store(self.path / "state"), self.health)
            self.clean_epoch = take_clean(self.store)
            self.room = Room(self.fs, self.path, DISK_RESERVE_BYTES)
            return find_homes(self.fs, self.store, self.path)
        except (OSError, StorageFailed) as error:
            self.health.fail(f"{self.path} cannot be used: {error}")
            return []

    @property
    def failure(self) -> str | None:
        return self.health.failure

    def home(self, where: TopicPartition, topic_id: TopicId) -> LogHome:
        assert self.store is not None
        return LogHome(self.fs, self.store, self.path, where, topic_id, self.room, self.health)

    def has(self, where: TopicPartition) -> bool:
        return self.fs.exists(self.path / str(where))

    def unfinished_moves(self) -> list[LogHome]:
        """The copies that moves between directories have left here."""
        assert self.store is not None
        return [
            replace(home, suffix=suffix, room=self.room, health=self.health)
            for suffix in (MOVING, MOVED)
            for home in find_homes(self.fs, self.store, self.path, suffix)
        ]

    def free_bytes(self) -> int:
        """What is free on its disk; 0 if nobody knows."""
        try:
            return self.fs.free_bytes(self.path)
        except OSError:
            return 0

    def probe(self) -> None:
        """Is it still there, the same one, and can it be written to? For a thread."""
        try:
            found = _read_id(self.fs, self.path)
            if found != self.id:
                self.health.fail(f"{self.path} is gone, or another directory is in its place")
                return
            replace_file(self.fs, self.path / PROBE_FILE, b"")
        except OSError as error:
            if error.errno not in FULL:
                self.health.fail(f"{self.path} cannot be used: {error}")

    def close(self, mark: Callable[[Store], None] | None) -> None:
        """With `mark` every log in it was closed in order; what has failed is left as it is."""
        if self.store is None:
            return
        if mark is not None and self.failure is None:
            mark(self.store)
        self.store.close()


def _directory_id(fs: Fs, path: Path, fresh: bytes) -> str:
    """Its id, or a new one where there is none that can be read: then it counts as another
    directory, which costs its logs a place in the ISR and nothing else.
    """
    found = _read_id(fs, path)
    if found is None:
        replace_file(fs, path / ID_FILE, fresh + crc32(fresh).to_bytes(4, "big"))
        return fresh.hex()
    return found


def _read_id(fs: Fs, path: Path) -> str | None:
    if not fs.exists(path / ID_FILE):
        return None
    content = read_file(fs, path / ID_FILE)
    name, checksum = content[:ID_BYTES], content[ID_BYTES:]
    return name.hex() if checksum == crc32(name).to_bytes(4, "big") else None
