"""Where a partition's log lives, and whose it is: `LogHome`.

The directory `<root>/<topic>-<partition>` holds a small file with the topic's id, written before
any data. So a topic that was deleted and made again under its old name is never mixed up with the
old one, and data is never removed because something does not know whose it is (M10).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from zlib import crc32

from suiro.model.errors import StorageFailed, TopicIdMismatch
from suiro.model.ids import TopicId, TopicPartition
from suiro.model.records import PartitionId

from cluster.host.fs import read_file, replace_file
from cluster.log.checkpoints import Checkpoint
from cluster.log.segment import DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cluster.host.fs import Fs
    from cluster.host.store import Store
    from cluster.log.health import Health
    from cluster.log.room import Room

TOPIC_ID_FILE: Final = "topic.id"
DESTROYED: Final = ".destroyed"
QUARANTINED: Final = ".quarantine"
MOVING: Final = ".moving"
"""A copy that is being made, for a move between directories."""
MOVED: Final = ".moved"
"""A copy that is whole: from here on the move is finished, whatever happens."""


@dataclass(frozen=True, slots=True)
class LogHome:
    """One partition's place: a directory below `root`, and keys in the root's store."""

    fs: Fs
    store: Store
    root: Path
    partition: TopicPartition
    topic_id: TopicId
    room: Room | None = None
    """What may still be written there; None where nobody counts."""
    health: Health | None = None
    """Who is to know when the directory fails; None where nobody watches."""
    suffix: str = ""
    """Of a log that is not in use yet: behind the name of its directory."""

    @property
    def directory(self) -> Path:
        return self.root / f"{self.partition}{self.suffix}"

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.store, self.topic_id, self.partition.partition)

    def take_room(self, size: int) -> None:
        """Before so much is written: DiskFull if only the reserve is left."""
        if self.room is not None:
            self.room.take(size)

    def move_in(self) -> None:
        """Make the directory, or make sure that it is this topic's."""
        path = self.directory / TOPIC_ID_FILE
        if self.fs.exists(path):
            found = _decode_id(read_file(self.fs, path))
            if found is None:
                raise StorageFailed(f"{self.partition}: the topic's id is damaged")
            if found != self.topic_id:
                raise TopicIdMismatch(
                    f"{self.partition}: the directory belongs to topic {found.hex()}, "
                    f"not to {self.topic_id.hex()}"
                )
            return
        if any(name.endswith(DATA) for name in self.fs.names(self.directory)):
            raise StorageFailed(f"{self.partition}: there is data, but no topic id")
        self.fs.make_directory(self.directory)
        replace_file(self.fs, path, _encode_id(self.topic_id))
        self.fs.sync_directory(self.root)

    def destroy(self) -> Callable[[], None]:
        """Give the partition up, durably; returns the work that removes the files, for a thread.

        Only for a topic that is known to be deleted, or a replica that is known to be no longer
        wanted here. The log must be closed.
        """
        return self._put_aside(DESTROYED)

    def quarantine(self) -> Callable[[], None]:
        """The same for a log that is damaged: its files stay aside until the work is run, which is
        when others are known to hold what it held.
        """
        return self._put_aside(QUARANTINED)

    def take_the_place_of(self, former: LogHome) -> tuple[LogHome, Callable[[], None]]:
        """This copy is whole, synced and closed, and so is the log that it was made of: from here
        on, durably, it is the log. Returns its place, and the work that removes the old files.
        A crash in between leaves both, or this one as MOVED.
        """
        assert self.suffix == MOVING
        moved = replace(self, suffix=MOVED)
        self.fs.rename(self.directory, moved.directory)
        self.fs.sync_directory(self.root)
        remove = former.destroy()
        return moved.finish_move(), remove

    def finish_move(self) -> LogHome:
        """The log that this was made of is gone."""
        final = replace(self, suffix="")
        self.fs.rename(self.directory, final.directory)
        self.fs.sync_directory(self.root)
        return final

    def forget(self) -> None:
        """Remove a copy that nobody needs."""
        self.checkpoint().forget()
        self.fs.remove_tree(self.directory)

    def _put_aside(self, suffix: str) -> Callable[[], None]:
        aside = self.root / f"{self.partition}.{self.topic_id.hex()}{suffix}"
        self.checkpoint().forget()  # first: a recovery point without its data would be an alarm
        if self.fs.exists(self.directory):
            self.fs.remove_tree(aside)
            self.fs.rename(self.directory, aside)
            self.fs.sync_directory(self.root)
        return lambda: self.fs.remove_tree(aside)


def find_homes(fs: Fs, store: Store, root: Path, suffix: str = "") -> list[LogHome]:
    """Every partition that has a directory here, by the names and ids that they carry; or every
    copy under that suffix.
    """
    homes = []
    for name in sorted(fs.names(root)):
        topic, _, number = name.removesuffix(suffix).rpartition("-")
        path = root / name / TOPIC_ID_FILE
        if topic and number.isdecimal() and name.endswith(suffix) and fs.exists(path):
            topic_id = _decode_id(read_file(fs, path))
            if topic_id is not None:
                where = TopicPartition(topic, int(number))
                homes.append(LogHome(fs, store, root, where, TopicId(topic_id)))
    return homes


def remove_destroyed(fs: Fs, root: Path) -> None:
    """Finish the removals that a stop of the node interrupted."""
    for name in fs.names(root):
        if name.endswith(DESTROYED):
            fs.remove_tree(root / name)


def find_aside(fs: Fs, root: Path, suffix: str) -> dict[PartitionId, Callable[[], None]]:
    """What was put aside under that suffix, and how to remove it."""
    found: dict[PartitionId, Callable[[], None]] = {}
    for name in fs.names(root):
        where, _, topic_id = name.removesuffix(suffix).rpartition(".")
        number = where.rpartition("-")[2]
        if name.endswith(suffix) and number.isdecimal():
            partition_id = PartitionId(TopicId(bytes.fromhex(topic_id)), int(number))
            found[partition_id] = partial(fs.remove_tree, root / name)
    return found


def _encode_id(topic_id: bytes) -> bytes:
    return topic_id + crc32(topic_id).to_bytes(4, "big")


def _decode_id(content: bytes) -> bytes | None:
    topic_id, checksum = content[:-4], content[-4:]
    return topic_id if checksum == crc32(topic_id).to_bytes(4, "big") else None
