"""What acks=all may be answered for: the append of a leader epoch that still lasts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest
from suiro._proto.common_pb2 import READ_COMMITTED, READ_UNCOMMITTED
from suiro.model.errors import NotLeader
from suiro.model.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch, TopicPartition

from cluster.broker.partition import Partition
from cluster.broker.situation import Situation
from cluster.host.clock import SystemClock
from cluster.host.lease import Lease
from tests.unit.broker.replication_kit import node, state
from tests.unit.log.kit import Place, batch, marker

ONE = NodeId(1)
B1 = BrokerEpoch(10)


class Nobody:
    """A world in which nobody listens."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


def led_by_one(*others: int) -> Partition:
    """A partition that broker 1 leads in epoch 5, with a lease that does not end."""
    lease = Lease(0)
    lease.until_ms = 1 << 62
    situation = Situation(ONE, {ONE: node(1, 10)}, lease, SystemClock(), cast("Any", Nobody()))
    now = state(1, *others, replicas=(1, *others))
    partition = Partition(TopicPartition("t", 0), situation, Place().open(), now)
    partition.on_state(now, B1)
    return partition


async def test_an_append_of_this_epoch_is_answered() -> None:
    partition = led_by_one()
    info = partition.append(batch(2), acks=-1)
    await partition.wait_committed(info.end, LeaderEpoch(5), 1)


async def test_an_append_is_not_answered_in_a_later_epoch() -> None:
    """Its answer waited behind others while another led, and the same offset holds other records
    by the time this broker leads again."""
    partition = led_by_one()
    now = partition.state
    info = partition.append(batch(2), acks=-1)
    away = replace(
        now, leader=NodeId(2), leader_epoch=LeaderEpoch(6), partition_epoch=PartitionEpoch(8)
    )
    partition.on_state(replace(away, replicas=(ONE, NodeId(2)), isr=(NodeId(2),)), B1)
    partition.log.truncate_to(Offset(0), 0)
    back = replace(now, leader_epoch=LeaderEpoch(7), partition_epoch=PartitionEpoch(9))
    partition.on_state(back, B1)
    partition.append(batch(2, fill=9), acks=-1)
    assert partition.high_watermark == info.end
    with pytest.raises(NotLeader):
        await partition.wait_committed(info.end, LeaderEpoch(5), 1)


async def test_a_leader_without_a_lease_lets_go_of_those_who_wait() -> None:
    partition = led_by_one(2)
    info = partition.append(batch(2), acks=-1)
    told: list[str] = []
    partition.watch(lambda: told.append("look again"), READ_UNCOMMITTED)
    waiting = asyncio.create_task(partition.wait_committed(info.end, LeaderEpoch(5), 60))
    await asyncio.sleep(0)
    partition.tick()
    assert not waiting.done()
    assert not told
    partition._at.lease.end()
    partition.tick()
    with pytest.raises(NotLeader):
        await waiting
    assert told


def test_readers_of_committed_records_are_told_of_the_end_of_a_transaction_alone() -> None:
    partition = led_by_one()
    told: list[str] = []
    partition.watch(lambda: told.append("committed"), READ_COMMITTED)
    partition.watch(lambda: told.append("uncommitted"), READ_UNCOMMITTED)
    partition.append(batch(2, producer=(4, 0, 0), transactional=True), acks=-1)
    assert told == ["uncommitted"]
    partition.append_marker(marker(4, 1, commit=True))
    assert told == ["uncommitted", "committed", "uncommitted"]
