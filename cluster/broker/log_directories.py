"""The disks of a broker, all of them: where a log is, and where a new one goes.

A directory that fails takes only its own logs along: it is looked at no more until the next start,
and the broker is told (`on_failed`), once.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from suiro.model.errors import DiskFull, StorageFailed
from suiro.model.records import PartitionId

from cluster.broker.log_directory import LogDirectory
from cluster.log.checkpoints import mark_clean
from cluster.log.health import Health
from cluster.log.home import MOVED, MOVING, QUARANTINED, find_aside, remove_destroyed
from cluster.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from suiro.model.ids import BrokerEpoch, TopicId, TopicPartition

    from cluster.host.env import Env
    from cluster.log.config import LogConfig
    from cluster.log.home import LogHome

log = logging.getLogger("suiro.broker")

PROBE_S: Final = 5.0
"""How long a directory that nobody writes to may be gone before that is found out."""


class LogDirectories:
    """Opens logs where they are, and new ones where there is room."""

    def __init__(self, env: Env, paths: Sequence[Path]) -> None:
        self._env = env
        self._loop: asyncio.AbstractEventLoop | None = None
        self.all: list[LogDirectory] = [
            LogDirectory(env.fs, path, Health(partial(self._failed, number)))
            for number, path in enumerate(paths)
        ]
        self.strays: dict[PartitionId, LogHome] = {}
        """What is on the disks and not open: nobody has asked for it yet, or ever will."""
        self.quarantined: dict[PartitionId, Callable[[], None]] = {}
        """Damaged logs that were put aside, and how to remove their files."""
        self.on_failed: Callable[[LogDirectory], None] = lambda _: None
        """Called on the loop's thread when one fails that was in use."""
        self._discarding: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Take the directories in use. Raises StorageFailed if there is none that can be."""
        self._loop = asyncio.get_running_loop()
        for directory in self.all:
            homes = await self._env.offload.run(partial(directory.open, self._env))
            for home in homes:
                self.strays[PartitionId(home.topic_id, home.partition.partition)] = home
            if directory.failure is None:
                self._discard(partial(remove_destroyed, self._env.fs, directory.path))
                self.quarantined.update(find_aside(self._env.fs, directory.path, QUARANTINED))
        self._settle_moves()
        if not self.working:
            raise StorageFailed("; ".join(str(directory.failure) for directory in self.all))

    @property
    def working(self) -> list[LogDirectory]:
        return [directory for directory in self.all if directory.failure is None]

    @property
    def ids(self) -> list[str]:
        """By which the controllers know those that work."""
        return [directory.id for directory in self.working]

    @property
    def any_failed(self) -> bool:
        return len(self.working) < len(self.all)

    @property
    def has_room(self) -> bool:
        """Whether a new log can be made."""
        return any(directory.free_bytes() for directory in self.working)

    @property
    def clean_epoch(self) -> BrokerEpoch | None:
        """The broker epoch whose shutdown was clean in every directory; None if it was not."""
        epochs = {directory.clean_epoch for directory in self.all}
        return epochs.pop() if len(epochs) == 1 else None

    async def probe_forever(self) -> None:
        """Find out about directories that nobody writes to."""
        while True:
            await asyncio.sleep(PROBE_S)
            for directory in self.working:
                await self._env.offload.run(directory.probe)

    # -- logs -------------------------------------------------------------------------------------

    def find(self, where: TopicPartition) -> LogDirectory | None:
        """The directory that has a log of that name."""
        return next((directory for directory in self.working if directory.has(where)), None)

    async def open(
        self,
        where: TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        chosen: LogDirectory | None = None,
    ) -> PartitionLog:
        """Recover or create a partition's log, in a thread; a new one in the `chosen` directory, or
        where there is most room for it.
        """
        directory = self.find(where) or chosen or self._roomiest()
        directory.logs += 1  # before it is there: others choose a directory meanwhile
        home = directory.home(where, topic_id)
        try:
            return await self.open_home(home, config)
        except BaseException:
            directory.logs -= 1
            raise

    async def open_home(self, home: LogHome, config: LogConfig) -> PartitionLog:
        now_ms = self._env.clock.now_ms()
        opened = await self._env.offload.run(
            partial(PartitionLog.open, home, config, now_ms=now_ms, discard=self._discard)
        )
        self.strays.pop(PartitionId(home.topic_id, home.partition.partition), None)
        return opened

    async def delete(self, log_to_delete: PartitionLog) -> None:
        """Close a log, forget it, and remove its files in the background."""

        def destroy() -> Callable[[], None]:
            log_to_delete.close()
            return log_to_delete.home.destroy()

        self._count_out(log_to_delete)
        self._discard(await self._env.offload.run(destroy))
        log.info("%s: replica deleted", log_to_delete.home.partition)

    async def delete_stray(self, partition_id: PartitionId) -> None:
        """The same with what was never opened."""
        home = self.strays.pop(partition_id)
        self._discard(await self._env.offload.run(home.destroy))
        log.info("%s: stray replica deleted", home.partition)

    async def let_go(self, unwanted: PartitionLog) -> None:
        """Close a log and keep its files: whether they are to go is not known yet."""
        self._count_out(unwanted)
        await self._env.offload.run(unwanted.close)
        home = unwanted.home
        self.strays[PartitionId(home.topic_id, home.partition.partition)] = home

    def abandon(self, failed: PartitionLog) -> None:
        """Close the files of a log whose directory has failed, some time later."""
        self._discard(failed.abandon)

    async def put_in_quarantine(self, where: TopicPartition, topic_id: TopicId) -> None:
        """Out of the way with a damaged log, if there is one; its files are kept."""
        directory = self.find(where)
        if directory is not None:
            home = directory.home(where, topic_id)
            partition_id = PartitionId(topic_id, where.partition)
            self.quarantined[partition_id] = await self._env.offload.run(home.quarantine)
            self.strays.pop(partition_id, None)
            log.warning("%s: the damaged log is put aside", where)

    async def exchange(self, former: PartitionLog, copy: PartitionLog) -> None:
        """A copy in another directory takes the place of a log; both are closed afterwards."""

        def exchange() -> tuple[LogHome, Callable[[], None]]:
            former.close()
            copy.close()
            return copy.home.take_the_place_of(former.home)

        self._count_out(former)
        home, remove = await self._env.offload.run(exchange)
        self.strays[PartitionId(home.topic_id, home.partition.partition)] = home
        self._discard(remove)

    def _settle_moves(self) -> None:
        """Finish the moves that a stop of the node interrupted, or forget them. One that was as
        good as done counts only if the log that it was made of cannot turn up again.
        """
        for directory in self.working:
            for home in directory.unfinished_moves():
                if home.suffix == MOVED and not self.any_failed and not self.find(home.partition):
                    final = home.finish_move()
                    self.strays[PartitionId(home.topic_id, home.partition.partition)] = final
                elif home.suffix == MOVING or self.find(home.partition):
                    self._discard(home.forget)

    def end_quarantine(self, partition_id: PartitionId) -> None:
        """Others hold what the damaged log held, and so does the one in its place."""
        remove = self.quarantined.pop(partition_id, None)
        if remove is not None:
            self._discard(remove)

    async def close(self, broker_epoch: BrokerEpoch | None) -> None:
        """Close the stores; with an epoch, mark the shutdown as clean."""
        await asyncio.sleep(0)  # discards that were handed over from threads become tasks
        if self._discarding:
            await asyncio.wait(self._discarding)
        mark = None if broker_epoch is None else partial(mark_clean, broker_epoch=broker_epoch)
        for directory in self.all:
            directory.close(mark)

    # -- the parts --------------------------------------------------------------------------------

    def _roomiest(self) -> LogDirectory:
        """Where a log that is not there yet finds most room, counting those that share it."""
        if not self.working:
            raise StorageFailed("every log directory of this broker has failed")
        if not self.has_room:
            raise DiskFull("no log directory of this broker has room")
        return max(
            self.working, key=lambda directory: directory.free_bytes() / (directory.logs + 1)
        )

    def _count_out(self, gone: PartitionLog) -> None:
        for directory in self.all:
            directory.logs -= directory.path == gone.home.root

    def _failed(self, number: int, reason: str) -> None:
        """For any thread."""
        log.error("log directory failed: %s", reason)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(lambda: self.on_failed(self.all[number]))

    def _discard(self, work: Callable[[], None]) -> None:
        """Unlink files some time later, in a thread: it would stop the loop for milliseconds.

        Called from the loop or, while a log is being opened, from a thread.
        """
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._start_discarding, work)

    def _start_discarding(self, work: Callable[[], None]) -> None:
        assert self._loop is not None
        task = self._loop.create_task(self._run_discard(work), name="discard files")
        self._discarding.add(task)
        task.add_done_callback(self._discarding.discard)

    async def _run_discard(self, work: Callable[[], None]) -> None:
        """What cannot be removed is found again, and removed, at the next start."""
        try:
            await self._env.offload.run(work)
        except OSError as error:
            log.warning("files that are no longer needed stay: %s", error)
