"""Where a partition's log lives, and whose it is: `LogHome`.

The directory `<root>/<topic>-<partition>` holds a small file with the topic's id, written before
any data. So a topic that was deleted and made again under its old name is never mixed up with the
old one, and data is never removed because something does not know whose it is (M10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zlib import crc32

from suiro.model.errors import StorageFailed, TopicIdMismatch
from suiro.model.ids import TopicId, TopicPartition

from cluster.host.fs import read_file, replace_file
from cluster.log.checkpoints import Checkpoint
from cluster.log.segment import DATA

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cluster.host.fs import Fs
    from cluster.host.store import Store
    from cluster.log.room import Room

TOPIC_ID_FILE: Final = "topic.id"
DESTROYED: Final = ".destroyed"


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

    @property
    def directory(self) -> Path:
        return self.root / str(self.partition)

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
        condemned = self.root / f"{self.partition}.{self.topic_id.hex()}{DESTROYED}"
        self.checkpoint().forget()  # first: a recovery point without its data would be an alarm
        if self.fs.exists(self.directory):
            self.fs.remove_tree(condemned)
            self.fs.rename(self.directory, condemned)
            self.fs.sync_directory(self.root)
        return lambda: self.fs.remove_tree(condemned)


def find_homes(fs: Fs, store: Store, root: Path) -> list[LogHome]:
    """Every partition that has a directory here, by the names and ids that they carry."""
    homes = []
    for name in sorted(fs.names(root)):
        topic, _, number = name.rpartition("-")
        path = root / name / TOPIC_ID_FILE
        if topic and number.isdecimal() and fs.exists(path):
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


def _encode_id(topic_id: bytes) -> bytes:
    return topic_id + crc32(topic_id).to_bytes(4, "big")


def _decode_id(content: bytes) -> bytes | None:
    topic_id, checksum = content[:-4], content[-4:]
    return topic_id if checksum == crc32(topic_id).to_bytes(4, "big") else None
