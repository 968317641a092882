"""Moves replicas from one log directory of this broker to another, one at a time.

The copy is a log of its own that follows the one in use, in the background and at a bounded rate.
When it has caught up, the replica stops for a moment, the copy takes its place, durably, and the
replica goes on there in the role it had: to the others it looks like a short pause. A crash leaves
the old log or the new one (`LogHome.take_the_place_of`), and a move that did not get so far is
forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest, StorageFailed

from cluster.broker.throttle import Throttle
from cluster.log.home import MOVING

if TYPE_CHECKING:
    from suiro.model.ids import TopicPartition

    from cluster.broker.log_directories import LogDirectories
    from cluster.broker.log_directory import LogDirectory
    from cluster.broker.partition import Partition
    from cluster.broker.replicas import Replicas
    from cluster.host.env import Env
    from cluster.log.partition_log import PartitionLog

log = logging.getLogger("suiro.broker")

CHUNK_BYTES: Final = 1 << 20
WAITING_MAX: Final = 1_000


@dataclass(slots=True)
class Move:
    """One replica on its way."""

    where: TopicPartition
    to: LogDirectory
    moved_bytes: int = 0


class ReplicaMoves:
    """`run` is a task of the broker."""

    def __init__(self, replicas: Replicas, directories: LogDirectories, env: Env) -> None:
        self._replicas = replicas
        self._directories = directories
        self._env = env
        self._throttle = Throttle()
        self.moves: dict[TopicPartition, Move] = {}
        self._arrived = asyncio.Event()

    def start(self, where: TopicPartition, path: str) -> None:
        """Have it moved; nothing happens if it is there already. Raises InvalidRequest."""
        partition = self._replicas.find(where)
        if partition is None:
            raise InvalidRequest(f"{where} has no replica here that could be moved")
        known = {str(directory.path): directory for directory in self._directories.working}
        if path not in known:
            raise InvalidRequest(f"no log directory {path} works here; there are {sorted(known)}")
        if where in self.moves and self.moves[where].to is not known[path]:
            raise InvalidRequest(f"{where} is on its way to {self.moves[where].to.path} already")
        if len(self.moves) >= WAITING_MAX:
            raise InvalidRequest(f"{WAITING_MAX} replicas wait to be moved; that is the most")
        if partition.log.home.root != known[path].path:
            self.moves.setdefault(where, Move(where, known[path]))
            self._arrived.set()

    async def run(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self.moves:
                move = next(iter(self.moves.values()))
                try:
                    await self._move(move)
                except SuiroError as error:
                    log.warning("%s was not moved: %s", move.where, error)
                finally:
                    del self.moves[move.where]

    async def _move(self, move: Move) -> None:
        partition = self._replicas.find(move.where)
        if partition is None:
            return  # dropped, or offline, before its turn came
        topic_id = partition.state.topic_id
        home = replace(move.to.home(move.where, topic_id), suffix=MOVING)
        await self._env.offload.run(home.forget)  # what an earlier attempt has left
        copy = await self._directories.open_home(home, partition.log.config)
        try:
            await self._catch_up(partition, copy, move)
            await self._replicas.exchange(partition, copy)
        except BaseException:
            # What cannot be removed now is removed by the next attempt, or at the next start.
            with contextlib.suppress(SuiroError, OSError):
                await self._env.offload.run(partial(_forget, copy))
            raise
        log.info("%s: moved to %s", move.where, move.to.path)

    async def _catch_up(self, partition: Partition, copy: PartitionLog, move: Move) -> None:
        """Until the two logs are equal, in this very turn of the loop."""
        source, now_ms = partition.log, self._env.clock.now_ms
        copy.restart_at(source.log_start)
        while copy.log_end != source.log_end or copy.log_start < source.log_start:
            if self._replicas.find(move.where) is not partition:
                raise StorageFailed(f"{move.where} is gone")
            if copy.log_end < source.log_start:
                copy.restart_at(source.log_start)  # trimmed meanwhile
            elif copy.log_end > source.log_end:
                copy.restart_at(source.log_start)  # cut meanwhile, perhaps in the middle of a batch
            elif copy.log_end == source.log_end:
                copy.trim_to(source.log_start)
            else:
                data = source.read_from(copy.log_end, CHUNK_BYTES)
                copy.append_as_follower(data, now_ms())
                move.moved_bytes = copy.size_bytes
                if copy.sync_due(now_ms()) or copy.log_end == source.log_end:
                    await self._env.offload.run(copy.sync)  # little is left for the end
                await self._pause(len(data))

    async def _pause(self, size: int) -> None:
        clock = self._env.clock
        self._throttle.set_rate(self._replicas.broker_config.compaction_bytes_per_s_max)
        due_ms = self._throttle.spend(size, clock.monotonic_ms())
        await asyncio.sleep(max(0.0, due_ms - clock.monotonic_ms()) / 1000)


def _forget(copy: PartitionLog) -> None:
    copy.abandon()
    copy.home.forget()
