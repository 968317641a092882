"""The disks of a broker: each a directory with its own store, its logs, its clean-shutdown mark."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from suiro.model.limits import DISK_RESERVE_BYTES
from suiro.model.records import PartitionId

from cluster.log.checkpoints import mark_clean, take_clean
from cluster.log.home import LogHome, find_homes, remove_destroyed
from cluster.log.partition_log import PartitionLog
from cluster.log.room import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from suiro.model.ids import BrokerEpoch, TopicId, TopicPartition

    from cluster.host.env import Env
    from cluster.host.store import Store
    from cluster.log.config import LogConfig

log = logging.getLogger("suiro.broker")


@dataclass(slots=True)
class _Directory:
    path: Path
    store: Store
    clean_epoch: BrokerEpoch | None
    room: Room
    logs: int = 0


class LogDirectories:
    """Opens logs where they are, and new ones where there are fewest."""

    def __init__(self, env: Env, paths: Sequence[Path]) -> None:
        self._env = env
        self._paths = paths
        self._directories: list[_Directory] = []
        self.strays: dict[PartitionId, LogHome] = {}
        """What is on the disks and not open: nobody has asked for it yet, or ever will."""
        self._discarding: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Open the stores; take the clean-shutdown marks, so that a crash from here on shows."""
        self._loop = asyncio.get_running_loop()
        for path in self._paths:
            self._env.fs.make_directory(path)
            store = await self._env.offload.run(partial(self._env.open_store, path / "state"))
            room = Room(self._env.fs, path, DISK_RESERVE_BYTES)
            self._directories.append(_Directory(path, store, take_clean(store), room))
            for home in await self._env.offload.run(partial(find_homes, self._env.fs, store, path)):
                self.strays[PartitionId(home.topic_id, home.partition.partition)] = home
            self._discard(partial(remove_destroyed, self._env.fs, path))

    @property
    def clean_epoch(self) -> BrokerEpoch | None:
        """The broker epoch whose shutdown was clean in every directory; None if it was not."""
        epochs = {directory.clean_epoch for directory in self._directories}
        return epochs.pop() if len(epochs) == 1 else None

    async def open(
        self, where: TopicPartition, topic_id: TopicId, config: LogConfig
    ) -> PartitionLog:
        """Recover or create a partition's log, in a thread."""
        directory = self._home_of(where)
        home = LogHome(
            self._env.fs, directory.store, directory.path, where, topic_id, directory.room
        )
        now_ms = self._env.clock.now_ms()
        directory.logs += 1  # before it is there: others choose a directory meanwhile
        opened = await self._env.offload.run(
            partial(PartitionLog.open, home, config, now_ms=now_ms, discard=self._discard)
        )
        self.strays.pop(PartitionId(topic_id, where.partition), None)
        return opened

    async def delete(self, log_to_delete: PartitionLog) -> None:
        """Close a log, forget it, and remove its files in the background."""

        def destroy() -> Callable[[], None]:
            log_to_delete.close()
            return log_to_delete.home.destroy()

        self._discard(await self._env.offload.run(destroy))
        log.info("%s: replica deleted", log_to_delete.home.partition)

    async def delete_stray(self, partition_id: PartitionId) -> None:
        """The same with what was never opened."""
        home = self.strays.pop(partition_id)
        self._discard(await self._env.offload.run(home.destroy))
        log.info("%s: stray replica deleted", home.partition)

    async def let_go(self, unwanted: PartitionLog) -> None:
        """Close a log and keep its files: whether they are to go is not known yet."""
        await self._env.offload.run(unwanted.close)
        home = unwanted.home
        self.strays[PartitionId(home.topic_id, home.partition.partition)] = home

    async def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Close the stores; with an epoch, mark the shutdown as clean."""
        await asyncio.sleep(0)  # discards that were handed over from threads become tasks
        if self._discarding:
            await asyncio.wait(self._discarding)
        for directory in self._directories:
            if broker_epoch is not None:
                mark_clean(directory.store, broker_epoch)
            directory.store.close()

    def _home_of(self, where: TopicPartition) -> _Directory:
        for directory in self._directories:
            if self._env.fs.exists(directory.path / str(where)):
                return directory
        return min(self._directories, key=lambda directory: directory.logs)

    def _discard(self, work: Callable[[], None]) -> None:
        """Unlink files some time later, in a thread: it would stop the loop for milliseconds.

        Called from the loop or, while a log is being opened, from a thread.
        """
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._start_discarding, work)

    def _start_discarding(self, work: Callable[[], None]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._env.offload.run(work), name="discard files")
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)
