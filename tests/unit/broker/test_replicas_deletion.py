"""M10: files go because of a record; a replica's only by metadata of the broker's own time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, cast

from suiro._proto.common_pb2 import Hello
from suiro.model.ids import (
    Address,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    PartitionEpoch,
    TopicId,
    TopicPartition,
)
from suiro.model.image import ClusterImage, Delta
from suiro.model.records import (
    NodeRegistered,
    PartitionChanged,
    PartitionCreated,
    PartitionState,
    Role,
    TopicCreated,
    TopicDeleted,
)

from cluster.broker.log_directories import LogDirectories
from cluster.broker.replicas import Replicas
from cluster.host.clock import SystemClock
from cluster.host.env import Env
from cluster.host.lease import Lease
from cluster.host.metrics import Metrics
from tests.sim.disk import ForgetfulFs
from tests.sim.loop import InlineOffload
from tests.sim.store import StoreDisk
from tests.unit.log.kit import batch

if TYPE_CHECKING:
    from suiro.model.records import MetadataRecord

ME, OTHER = NodeId(1), NodeId(2)
BEFORE, NOW = BrokerEpoch(5), BrokerEpoch(9)
ROOT = Path("/data/log")
T0 = TopicPartition("t", 0)


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode() * 16)


def registered(epoch: BrokerEpoch) -> NodeRegistered:
    return NodeRegistered(ME, b"i" * 16, epoch, (Role.BROKER,), Address("h", 1))


def created(name: str, *replicas: NodeId) -> list[MetadataRecord]:
    state = PartitionState(topic_id(name), 0, replicas, replicas, replicas[0])
    return [TopicCreated(topic_id(name), name), PartitionCreated(state)]


class Life:
    """One life of broker 1 on a disk that outlives it; the records of the feed come one by one."""

    def __init__(self, disk: Disk) -> None:
        nothing = cast("Any", None)
        env = Env(
            clock=SystemClock(),
            offload=InlineOffload(Random(0)),
            store_offload=InlineOffload(Random(0)),
            fs=disk.fs,
            open_store=lambda _: disk.store.open(),
            transport=nothing,
            rng=Random(0),
            metrics=Metrics(),
            make_server=nothing,
        )
        self.directories = LogDirectories(env, [ROOT])
        hello = Hello(node_id=ME, cluster_id="c")
        self.replicas = Replicas(env, hello, self.directories, nothing, Lease(0))
        self.replicas.broker_epoch = NOW
        self.image = ClusterImage()

    async def start(self) -> Life:
        await self.directories.start()
        return self

    async def hear(self, *records: MetadataRecord) -> None:
        delta = Delta()
        for record in records:
            self.image.apply(record)
            delta.add(record)
        await self.replicas.on_delta(self.image, delta)

    async def move(self, *replicas: NodeId) -> None:
        old = self.image.topics[topic_id("t")].partitions[0]
        new = replace(
            old,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=LeaderEpoch(old.leader_epoch + (old.leader != replicas[0])),
            partition_epoch=PartitionEpoch(old.partition_epoch + 1),
        )
        await self.hear(PartitionChanged(new))

    async def end(self) -> None:
        await self.replicas.close()
        await self.directories.close(None)


class Disk:
    def __init__(self) -> None:
        self.fs = ForgetfulFs()
        self.store = StoreDisk(Random(0))

    def has(self, name: str) -> bool:
        return self.fs.exists(ROOT / name / "topic.id")


async def with_record() -> Disk:
    """A disk on which t-0 has a record of an earlier life."""
    disk = Disk()
    life = await Life(disk).start()
    await life.hear(registered(NOW), *created("t", OTHER, ME))
    found = life.replicas.find(T0)
    assert found is not None
    found.log.append_as_leader(batch(2), LeaderEpoch(0), 0)
    await life.end()
    return disk


async def test_a_removal_that_was_taken_back_before_this_life_deletes_nothing() -> None:
    disk = await with_record()
    life = await Life(disk).start()
    await life.hear(registered(BEFORE), *created("t", OTHER, ME))
    await life.move(OTHER)
    assert (life.replicas.find(T0), disk.has("t-0")) == (None, True)
    await life.move(OTHER, ME)
    await life.hear(registered(NOW))
    found = life.replicas.find(T0)
    assert found is not None
    assert found.log.log_end == 2, "what it had before it still has"
    await life.move(OTHER)
    assert not disk.has("t-0"), "this time it was told in its own time"
    await life.end()


async def test_a_replica_that_was_moved_away_meanwhile_goes() -> None:
    disk = await with_record()
    life = await Life(disk).start()
    await life.hear(*created("t", OTHER))
    assert disk.has("t-0"), "this may be an image of before"
    await life.hear(registered(NOW))
    assert not disk.has("t-0")
    await life.end()


async def test_a_topic_that_was_deleted_and_made_again_finds_its_place_free() -> None:
    disk = await with_record()
    life = await Life(disk).start()
    again = PartitionState(topic_id("u"), 0, (ME,), (ME,), ME)
    deleted = TopicDeleted(topic_id("t"), "t")
    await life.hear(deleted, TopicCreated(topic_id("u"), "t"), PartitionCreated(again))
    assert not disk.has("t-0")
    assert life.replicas.find(T0) is None, "in an image of before it may be another's by now"
    await life.hear(registered(NOW))
    found = life.replicas.find(T0)
    assert found is not None
    assert (found.log.log_end, found.log.home.topic_id) == (0, topic_id("u"))
    await life.end()


async def test_what_nobody_knows_stays() -> None:
    disk = await with_record()
    life = await Life(disk).start()
    await life.hear(registered(NOW), *created("other", ME))
    await asyncio.sleep(0)
    assert disk.has("t-0")
    await life.end()
