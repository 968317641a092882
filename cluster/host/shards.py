"""The coordinator shards that this node owns: each claimed, replayed, served, and given up in time.

The controllers say who owns what; `on_image` follows them. A shard's machine is rebuilt from its
partition whenever its term ends, by a failed append or by a change of owner, so a coordinator keeps
nothing of its own. What the shards are about, groups or transactions, is the `Program`'s part.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from suiro.cancellation import heed_cancellation
from suiro.model.error_base import SuiroError
from suiro.model.errors import CoordinatorLoading, NotCoordinator
from suiro.model.ids import NO_OWNER, TopicPartition
from suiro.model.topics import SHARD_TOPICS, shard_of
from suiro.retry import Backoff

from cluster.host.machine import Machine
from cluster.host.machine_host import MachineHost
from cluster.host.shard_log import ShardLog

if TYPE_CHECKING:
    from suiro.model.ids import NodeId, OwnerEpoch
    from suiro.model.image import ClusterImage
    from suiro.model.records import ShardKind

    from cluster.host.env import Env
    from cluster.host.lease import Lease
    from cluster.host.shard_log import Keyed

log = logging.getLogger("suiro.coordinator")

M = TypeVar("M", bound=Machine[Any])


class Program(Protocol[M]):
    """What a kind of coordinator does with its shards."""

    kind: ShardKind

    def new_machine(self, shard: int) -> M:
        """One that has seen nothing yet."""

    def encode(self, record: Any) -> Keyed: ...

    def decode(self, key: bytes, value: bytes | None) -> Any:
        """The record to apply, or None for one that means nothing any more."""

    def perform(self, shard: Shard[M], effect: Any) -> None:
        """Start one effect of a decision that is committed; may not block."""

    async def tend(self, shard: Shard[M]) -> None:
        """Runs while the shard is served, from its first moment: open work, deadlines."""


class Shard(Generic[M]):
    """One shard in the time of one ownership."""

    def __init__(self, index: int, owner_epoch: OwnerEpoch, program: Program[M]) -> None:
        self.index = index
        self.owner_epoch = owner_epoch
        self.log: ShardLog | None = None
        self.host: MachineHost[M] = MachineHost(
            self, program.encode, lambda effect: program.perform(self, effect)
        )
        self.refuse(CoordinatorLoading(f"shard {index} has just been taken over"))

    def refuse(self, error: SuiroError) -> None:
        self.host.stop(error)

    # -- the log of its present term --------------------------------------------------------------

    def append(self, records: Any) -> int:
        assert self.log is not None, "only a served machine decides"
        return self.log.append(records)

    async def committed(self, position: int) -> int:
        assert self.log is not None
        return await self.log.committed(position)


class Shards(Generic[M]):
    """`run` is a task of the node; `on_image` is told of every change of the metadata."""

    def __init__(self, env: Env, node_id: NodeId, lease: Lease, program: Program[M]) -> None:
        self._env = env
        self._node_id = node_id
        self._lease = lease
        self._program = program
        self._image: ClusterImage | None = None
        self._changed = asyncio.Event()
        self._owned: dict[int, Shard[M]] = {}

    def on_image(self, image: ClusterImage) -> None:
        self._image = image
        self._changed.set()

    def owned(self) -> list[Shard[M]]:
        return [self._owned[index] for index in sorted(self._owned)]

    def shard_for(self, name: str) -> Shard[M]:
        """The shard of a group or a transactional id, if it is ours for sure.

        Somebody else may own it once the quorum has given us up, and we would tell old news.
        """
        topic = self._topic
        found = None if self._image is None else self._image.topic(topic)
        if self._image is None or found is None:
            raise CoordinatorLoading(f"{topic} has not been created yet")
        index = shard_of(name, len(found.partitions))
        if index in self._owned and self._lease.holds(int(self._env.clock.monotonic_ms())):
            return self._owned[index]
        state = self._image.shard(self._program.kind, index)
        hints = {} if state is None or state.owner == NO_OWNER else {"owner": int(state.owner)}
        raise NotCoordinator(f"{name!r} belongs to shard {index}, which is not owned here", **hints)

    @property
    def _topic(self) -> str:
        return SHARD_TOPICS[self._program.kind]

    async def run(self) -> None:
        """Until cancelled: own what the metadata say."""
        tasks: dict[int, asyncio.Task[None]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    self._follow(group, tasks)
        finally:
            self._owned.clear()

    def _follow(self, group: asyncio.TaskGroup, tasks: dict[int, asyncio.Task[None]]) -> None:
        assert self._image is not None
        ours = {
            state.shard: state.owner_epoch
            for state in self._image.shards.values()
            if state.kind is self._program.kind and state.owner == self._node_id
        }
        for index, shard in list(self._owned.items()):
            if ours.get(index) != shard.owner_epoch:
                shard.refuse(NotCoordinator(f"shard {index} has another owner now"))
                tasks.pop(index).cancel()
                del self._owned[index]
        for index, owner_epoch in ours.items():
            if index not in self._owned:
                shard = self._owned[index] = Shard(index, owner_epoch, self._program)
                name = f"{self._program.kind} shard {index}"
                tasks[index] = group.create_task(self._own(shard), name=name)

    async def _own(self, shard: Shard[M]) -> None:
        """One term after another, until the ownership ends (and this task is cancelled)."""
        backoff = Backoff(self._env.rng)
        where = TopicPartition(self._topic, shard.index)
        while True:
            shard.log = ShardLog(self._env, where, shard.owner_epoch, self._present_image)
            try:
                machine = await self._load(shard.index, shard.log)
            except SuiroError as error:
                shard.refuse(CoordinatorLoading(f"{where} cannot be read yet: {error}"))
                log.info("%s: cannot be loaded: %s", where, error)
            else:
                backoff.reset()
                reason = await self._serve(shard, shard.log, machine)
                log.info("%s: the term has ended: %s", where, reason)
            heed_cancellation()
            await asyncio.sleep(backoff.next_s())

    def _present_image(self) -> ClusterImage:
        assert self._image is not None
        return self._image

    async def _load(self, index: int, shard_log: ShardLog) -> M:
        await shard_log.claim()
        machine = self._program.new_machine(index)
        async for key, value in shard_log.replay():
            record = self._program.decode(key, value)
            if record is not None:
                machine.apply(record)
        return machine

    async def _serve(self, shard: Shard[M], shard_log: ShardLog, machine: M) -> SuiroError:
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(_write(shard_log), name="shard writer")
            serving = tasks.create_task(shard.host.serve(machine, 0), name="shard host")
            await asyncio.sleep(0)  # the host serves before anything is asked of it
            tending = tasks.create_task(self._program.tend(shard), name="shard tender")
            reason = await serving
            writing.cancel()
            tending.cancel()
        return reason


async def _write(shard_log: ShardLog) -> None:
    try:
        await shard_log.run()
    except SuiroError as error:
        shard_log.fail(error)
