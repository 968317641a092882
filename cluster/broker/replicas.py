"""All the partitions on this broker: opened, led, followed and dropped as the metadata says.

A log is opened when the metadata first names this broker as its replica, in a thread, as recovery
may take long. Nothing is ever deleted because metadata is absent: only a TopicDeleted record, or a
record that takes the replica away from this broker, lets data go (M10). A topic's deletion is final
and counts whenever it is heard. A replica that was taken away may have been given back since, so
that counts only in an image that knows this broker's present registration: at a start, an older
image, or the history of one, may pass by first.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from suiro._proto.common_pb2 import HelloReply
from suiro.model.configs import CleanupPolicy, broker_config, topic_config
from suiro.model.error_base import SuiroError
from suiro.model.errors import (
    DiskFull,
    NotLeader,
    StorageFailed,
    TopicIdMismatch,
    UnknownTopicOrPartition,
)
from suiro.model.ids import NO_BROKER_EPOCH, NodeId, TopicPartition
from suiro.model.records import ConfigResource
from suiro.version import PROTOCOL_MAX

from cluster.broker.offline import Offline, Remedy, may_stay, remedy, why_missing
from cluster.broker.partition import Partition
from cluster.broker.replica_reports import ReplicaReports
from cluster.broker.replication_hub import ReplicationHub
from cluster.broker.replication_role import ReplicaRole, is_beyond, is_known, role_of
from cluster.broker.shard_guard import check_owner, check_writer
from cluster.broker.situation import Situation
from cluster.log.config import Flush, LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro._proto.common_pb2 import Hello
    from suiro.model.configs import BrokerConfig, TopicConfig
    from suiro.model.ids import TopicId
    from suiro.model.image import ClusterImage, Delta, Node
    from suiro.model.records import PartitionId, PartitionState, ShardKind

    from cluster.broker.log_directories import LogDirectories
    from cluster.broker.log_directory import LogDirectory
    from cluster.host.env import Env
    from cluster.host.lease import Lease
    from cluster.host.quorum_client import QuorumClient
    from cluster.log.partition_log import PartitionLog

log = logging.getLogger("suiro.broker")

OPENING_MAX: Final = 8
"""Logs that are opened at the same time: enough to keep the threads busy, and no queue before them
that a producer's sync would have to stand in."""
ROOM_LOOK_S: Final = 5.0
"""Between two looks whether a full disk has room again for the replicas that it had none for."""


class Replicas:
    """Every partition of this broker, by name and by id."""

    def __init__(
        self,
        env: Env,
        hello: Hello,
        directories: LogDirectories,
        quorum: QuorumClient,
        lease: Lease,
    ) -> None:
        # The cores look at this one all the time, while the image may be replaced by a newer one.
        nodes: dict[NodeId, Node] = {}
        self.node = NodeId(hello.node_id)
        self.cluster_id = hello.cluster_id
        self.broker_epoch = NO_BROKER_EPOCH
        self.hub = ReplicationHub(env, hello, nodes, quorum, self.by_id)
        self._situation = Situation(self.node, nodes, lease, env.clock, self.hub, self.hub.events)
        self._nodes = nodes
        self._env = env
        self._directories = directories
        self._partitions: dict[TopicPartition, Partition] = {}
        self._by_id: dict[PartitionId, Partition] = {}
        self._image: ClusterImage | None = None
        self.offline: dict[PartitionId, Offline] = {}
        self._moving: set[PartitionId] = set()
        """Between two directories at this moment, and open in neither."""
        self.reports = ReplicaReports(quorum, self.node, env.rng)
        self.is_starting = True
        """Until it has said that it is ready: what is not found by then should have been there."""
        self.lost_directories = False
        directories.on_failed = self._on_directory_failed

    # -- for the handlers -------------------------------------------------------------------------

    def find(self, partition: TopicPartition) -> Partition | None:
        return self._partitions.get(partition)

    def by_id(self, partition_id: PartitionId) -> Partition | None:
        return self._by_id.get(partition_id)

    def get(self, partition: TopicPartition) -> Partition:
        """A partition of this broker; else an error that says where it is, if anywhere."""
        found = self._partitions.get(partition)
        if found is not None:
            return found
        topic = self._image.topic(partition.topic) if self._image is not None else None
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartition(f"{partition} does not exist")
        raise NotLeader(partition, topic.partitions[partition.partition].leader)

    def check_topic_id(self, partition: Partition, topic_id: bytes) -> None:
        """Refuse a caller who means a topic that was deleted and made again."""
        if topic_id and partition.state.topic_id != topic_id:
            raise TopicIdMismatch(f"{partition.partition.topic} was deleted and created again")

    def check_writer(self, partition: Partition, owner_epoch: int, append_at: int) -> None:
        """Refuse whoever may not write there: internal topics belong to their coordinators."""
        where = partition.partition
        check_writer(self._image, where, owner_epoch, append_at, partition.log.log_end)

    def check_owner(self, kind: ShardKind, shard: int, owner_epoch: int) -> None:
        """Refuse a coordinator that no longer owns its shard."""
        check_owner(self._image, kind, shard, owner_epoch)

    @property
    def image(self) -> ClusterImage | None:
        return self._image

    def hello_reply(self) -> HelloReply:
        return HelloReply(protocol=PROTOCOL_MAX, cluster_id=self.cluster_id, node_id=self.node)

    @property
    def broker_config(self) -> BrokerConfig:
        """What holds for this broker now: its own settings, else the cluster's."""
        if self._image is None:
            return broker_config({})
        own = self._image.configs(ConfigResource.BROKER, str(self.node))
        return broker_config(own, self._image.configs(ConfigResource.CLUSTER))

    @property
    def directories(self) -> list[LogDirectory]:
        return self._directories.all

    def all(self) -> list[Partition]:
        return list(self._partitions.values())

    # -- following the metadata -------------------------------------------------------------------

    async def on_delta(self, image: ClusterImage, delta: Delta) -> None:
        """Carry out what changed for this broker."""
        self._image = image
        self._nodes.clear()
        self._nodes.update(image.nodes)
        self.hub.sender.throttle.set_rate(image.throttle_bytes_per_s)
        for topic_id in sorted(delta.topics):
            if topic_id in image.deleted_topics:
                await self._drop_topic(topic_id)
        found = (image.partition(*partition_id) for partition_id in sorted(delta.partitions))
        states = [state for state in found if state is not None]
        knows_me = self._knows_me(image)
        if self.node in delta.nodes and knows_me:
            await self._on_known(image)
        await self._open_missing(image, states if knows_me else self._found(image, states))
        for state in states:
            await self._on_state(image, state)
        await self._delete_strays(image)
        if self.node in delta.nodes:
            # Until the image knew of this incarnation, no role was taken (see replication_role).
            for partition in self._by_id.values():
                self._change_role(partition, partition.state)
        for resource, name in sorted(delta.configs):
            if resource in {ConfigResource.TOPIC, ConfigResource.CLUSTER}:
                self._reconfigure(image, name if resource is ConfigResource.TOPIC else None)

    async def _on_known(self, image: ClusterImage) -> None:
        """The image knows of this incarnation. What is in no directory was left alone before: it
        may have been another's by then.
        """
        mine = image.partitions(image.replicas_on(self.node))
        await self._open_missing(image, mine)
        for state in mine:
            if state.id in self.offline:
                await self._on_offline_state(image, state)

    def _found(self, image: ClusterImage, states: Iterable[PartitionState]) -> list[PartitionState]:
        names = {state.id: image.topics[state.topic_id].name for state in states}
        return [
            state
            for state in states
            if self._directories.find(TopicPartition(names[state.id], state.partition))
        ]

    async def _open_missing(self, image: ClusterImage, states: Iterable[PartitionState]) -> None:
        """Several at a time: to open a log is mostly to wait for the disk."""
        turns = asyncio.Semaphore(OPENING_MAX)

        async def open_in_turn(state: PartitionState) -> None:
            where = TopicPartition(image.topics[state.topic_id].name, state.partition)
            async with turns:
                await self._open_or_report(image, where, state)

        async with asyncio.TaskGroup() as tasks:
            for state in states:
                is_here = state.id in self._by_id or state.id in self.offline
                is_here = is_here or state.id in self._moving
                if self.node in state.replicas and not is_here:
                    tasks.create_task(open_in_turn(state), name="open a log")

    async def _on_state(self, image: ClusterImage, state: PartitionState) -> None:
        partition = self._by_id.get(state.id)
        if state.id in self.offline:
            await self._on_offline_state(image, state)
            return
        if partition is None:
            return  # not here
        if self.node in state.replicas:
            self._change_role(partition, state)
            if self.node in state.isr:
                self._directories.end_quarantine(state.id)
        else:
            await self._drop(partition, for_good=self._knows_me(image))

    def _change_role(self, partition: Partition, state: PartitionState) -> None:
        last_epoch = partition.log.last_epoch
        role = role_of(self.node, self.broker_epoch, self._nodes, state, last_epoch)
        follows = state.leader if role is ReplicaRole.FOLLOWER else None
        if follows is None or follows != partition.follows:
            self.hub.role_changes(partition, follows)
        if self.node in state.offline and is_known(self.node, self.broker_epoch, self._nodes):
            self.reports.online(state.id)  # it was, and is open now
        partition.on_state(state, self.broker_epoch)
        if is_beyond(self.node, self.broker_epoch, self._nodes, state, last_epoch):
            reason = (
                f"there are records of leader epoch {last_epoch}, and it is {state.leader_epoch}"
            )
            self.on_damage(state.id, reason)
        if partition.leads:
            self.hub.sender.leads(partition)
        self.hub.keep_ticking(partition, wanted=len(state.replicas) > 1)

    async def _open(
        self, image: ClusterImage, where: TopicPartition, state: PartitionState
    ) -> None:
        config = _topic_config(image, where.topic)
        opened = await self._directories.open(where, state.topic_id, log_config(config))
        opened.failures.on_damage = partial(self.on_damage, state.id)
        partition = Partition(where, self._situation, opened, state)
        partition.min_isr = config.min_insync_replicas
        self._partitions[where] = partition
        self._by_id[state.id] = partition
        health = opened.home.health
        if health is not None and health.failure is not None:
            self._take_offline(partition, Offline.FAILED, health.failure)  # meanwhile

    # -- what cannot be used ----------------------------------------------------------------------

    async def _open_or_report(
        self, image: ClusterImage, where: TopicPartition, state: PartitionState
    ) -> None:
        is_missing = self._directories.find(where) is None
        why = why_missing(
            self.node,
            state,
            is_starting=self.is_starting,
            any_failed=self._directories.any_failed,
            any_lost=self.lost_directories,
        )
        if is_missing and why is not None:
            self._offline(state.id, where, why, why.value)
            return
        try:
            await self._open(image, where, state)
        except StorageFailed as error:
            self._offline(state.id, where, Offline.DAMAGED, str(error))
        except DiskFull as error:
            self._offline(state.id, where, Offline.NO_ROOM, str(error))
        except SuiroError as error:
            self._offline(state.id, where, Offline.FAILED, str(error))

    def _offline(
        self, partition_id: PartitionId, where: TopicPartition, why: Offline, reason: str
    ) -> None:
        log.error("%s is offline: %s", where, reason)
        self._mark_offline(partition_id, why)
        self.reports.offline(partition_id)
        if self.hub.events.on:
            self.hub.events.offline(where, why.name.lower(), reason)

    def _mark_offline(self, partition_id: PartitionId, why: Offline | None) -> None:
        if why is None:
            self.offline.pop(partition_id, None)
        else:
            self.offline[partition_id] = why
        self._env.metrics.replicas_offline.of().set(len(self.offline))

    def _on_directory_failed(self, directory: LogDirectory) -> None:
        """Everything in it stops at once: nobody is told any more that anything is held."""
        failed = len(self._directories.all) - len(self._directories.working)
        self._env.metrics.log_directories_failed.of().set(failed)
        for partition in list(self._by_id.values()):
            if partition.log.home.root == directory.path:
                self._take_offline(partition, Offline.FAILED, str(directory.failure))

    def on_damage(self, partition_id: PartitionId, reason: str) -> None:
        """A log has a bad place. Others lead and are fetched from, if there are any."""
        partition = self._by_id.get(partition_id)
        if partition is None or partition.is_damaged:
            return
        partition.is_damaged = True
        self._env.metrics.logs_damaged.of().add()
        if may_stay(self.node, partition.state):
            log.error("%s is damaged, and nobody else has it: %s", partition.partition, reason)
            return
        # Not now: whoever met the damage is in the middle of something.
        loop = asyncio.get_running_loop()
        loop.call_soon(self._take_offline, partition, Offline.DAMAGED, reason)

    def _take_offline(self, partition: Partition, why: Offline, reason: str) -> None:
        if self._by_id.get(partition.state.id) is not partition:
            return
        self._forget(partition)
        self._directories.abandon(partition.log)
        self._offline(partition.state.id, partition.partition, why, reason)

    async def _on_offline_state(self, image: ClusterImage, state: PartitionState) -> None:
        if self.node not in state.replicas:
            self._mark_offline(state.id, None)
            return
        if not self._knows_me(image):
            return
        where = TopicPartition(image.topics[state.topic_id].name, state.partition)
        match remedy(self.node, state, self.offline[state.id]):
            case Remedy.BEGIN_ANEW:
                await self._directories.put_in_quarantine(where, state.topic_id)
                self._env.metrics.logs_repaired.of().add()
            case Remedy.COME_BACK:
                pass
            case Remedy.WAIT:
                return
        self._mark_offline(state.id, None)
        await self._open_or_report(image, where, state)
        opened = self._by_id.get(state.id)
        if opened is not None:
            self._change_role(opened, state)

    async def watch_for_room(self) -> None:
        """Make the replicas that no directory had room for, once one has."""
        while True:
            await asyncio.sleep(ROOM_LOOK_S)
            waiting = [i for i, why in self.offline.items() if why is Offline.NO_ROOM]
            if waiting and self._directories.has_room:
                for partition_id in waiting:
                    await self._try_again(partition_id)

    async def _try_again(self, partition_id: PartitionId) -> None:
        assert self._image is not None
        image, state = self._image, self._image.partition(*partition_id)
        if state is None or self.node not in state.replicas:
            return  # the metadata say so, and whoever follows them will forget it
        where = TopicPartition(image.topics[state.topic_id].name, state.partition)
        self._moving.add(partition_id)
        self._mark_offline(partition_id, None)
        try:
            await self._open_or_report(image, where, state)
        finally:
            self._moving.discard(partition_id)
        await self._take_up(partition_id)

    async def exchange(self, partition: Partition, copy: PartitionLog) -> None:
        """A copy in another directory takes the place of a log; they are equal at this moment."""
        partition_id = partition.state.id
        self._forget(partition)
        self._moving.add(partition_id)
        copy.saved_high_watermark = partition.high_watermark
        try:
            await self._directories.exchange(partition.log, copy)
        finally:
            self._moving.discard(partition_id)
            await self._take_up(partition_id)

    async def _take_up(self, partition_id: PartitionId) -> None:
        """Open a log again, as the metadata are by now; or let it go, if they say so."""
        assert self._image is not None
        image, state = self._image, self._image.partition(*partition_id)
        if state is not None and (self.node in state.replicas or partition_id in self._by_id):
            await self._open_missing(image, [state])
            await self._on_state(image, state)
            opened = self._by_id.get(partition_id)
            if opened is not None:
                opened.solicit()
        elif partition_id.topic_id in image.deleted_topics:
            await self._drop_topic(partition_id.topic_id)
        else:
            await self._delete_strays(image)

    # -- those that go ----------------------------------------------------------------------------

    async def _drop_topic(self, topic_id: TopicId) -> None:
        for partition_id in [i for i in self.offline if i.topic_id == topic_id]:
            self._mark_offline(partition_id, None)
        for partition in [p for i, p in self._by_id.items() if i.topic_id == topic_id]:
            await self._drop(partition, for_good=True)
        for stray in [s for s in self._directories.strays if s.topic_id == topic_id]:
            await self._directories.delete_stray(stray)

    async def _delete_strays(self, image: ClusterImage) -> None:
        """Replicas that were taken away while this broker was not there to hear of it."""
        if not self._directories.strays or not self._knows_me(image):
            return
        for stray in list(self._directories.strays):
            state = image.partition(*stray)
            if state is not None and self.node not in state.replicas:
                await self._directories.delete_stray(stray)

    def _knows_me(self, image: ClusterImage) -> bool:
        return is_known(self.node, self.broker_epoch, image.nodes)

    def _forget(self, partition: Partition) -> None:
        del self._by_id[partition.state.id]
        del self._partitions[partition.partition]
        self.hub.forget(partition)
        partition.close()

    async def _drop(self, partition: Partition, *, for_good: bool) -> None:
        if self._by_id.get(partition.state.id) is not partition:
            return  # it went offline meanwhile
        self._forget(partition)
        if for_good:
            await self._directories.delete(partition.log)
        else:
            await self._directories.let_go(partition.log)

    def _reconfigure(self, image: ClusterImage, topic: str | None) -> None:
        for where, partition in self._partitions.items():
            if topic is None or where.topic == topic:
                config = _topic_config(image, where.topic)
                partition.log.config = log_config(config)
                partition.min_isr = config.min_insync_replicas

    async def close(self) -> None:
        """Sync and close every log; afterwards the shutdown may be marked as clean."""
        for partition in self._partitions.values():
            self.hub.forget(partition)
            partition.close()
            try:
                partition.log.checkpoint(partition.high_watermark, self._env.clock.now_ms())
                await self._env.offload.run(partition.log.close)
            except SuiroError as error:
                # Its directory has failed, so it is not marked as clean; the others may be.
                log.error("%s was not closed in order: %s", partition.partition, error)
        self._partitions.clear()
        self._by_id.clear()


def log_config(config: TopicConfig) -> LogConfig:
    """What of a topic's settings concerns its log."""
    return LogConfig(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        index_interval_bytes=config.index_interval_bytes,
        max_message_bytes=config.max_message_bytes,
        flush=Flush(config.flush_policy.value),
        flush_interval_ms=config.flush_ms,
        flush_interval_messages=config.flush_messages,
        retention_ms=config.retention_ms,
        retention_bytes=config.retention_bytes,
        deletes=config.cleanup_policy is not CleanupPolicy.COMPACT,
        compacts=config.cleanup_policy is not CleanupPolicy.DELETE,
        min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
        delete_retention_ms=config.delete_retention_ms,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        max_compaction_lag_ms=config.max_compaction_lag_ms,
    )


def _topic_config(image: ClusterImage, topic: str) -> TopicConfig:
    own = image.configs(ConfigResource.TOPIC, topic)
    return topic_config(own, image.configs(ConfigResource.CLUSTER))
