"""Who may read from a follower, and what it says to those whom it cannot serve (row 27, P8, P9)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from suiro._proto.common_pb2 import READ_COMMITTED, READ_UNCOMMITTED
from suiro.model.errors import NotLeader, OffsetNotAvailable, UnknownLeaderEpoch
from suiro.model.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, PartitionEpoch, TopicPartition

from cluster.broker.follower import Part
from cluster.broker.partition import Partition
from cluster.broker.situation import Situation
from cluster.host.clock import SystemClock
from cluster.host.lease import Lease
from tests.unit.broker.replication_kit import EPOCH, node, state
from tests.unit.broker.test_partition_acks import Nobody
from tests.unit.log.kit import Place, batch

TWO = NodeId(2)
B2 = BrokerEpoch(20)
COMMITTED = 4


class Following:
    """Broker 2 follows broker 1 in the ISR; it has six records and knows four to be committed."""

    def __init__(self) -> None:
        self.lease = Lease(0)
        self.lease.until_ms = 1 << 62
        nodes = {NodeId(n): node(n, 10 * n) for n in (1, 2)}
        world = cast("Any", Nobody())
        situation = Situation(TWO, nodes, self.lease, SystemClock(), world)
        self.state = state(1, 2, replicas=(1, 2))
        log = Place().open()
        log.append_as_leader(batch(COMMITTED), EPOCH, 0)
        log.append_as_leader(batch(2), EPOCH, 0)
        self.partition = Partition(TopicPartition("t", 0), situation, log, self.state)
        self.partition.on_state(self.state, B2)

    def hear(self, high_watermark: int = COMMITTED) -> None:
        """The leader says that the logs match."""
        end = self.partition.log.log_end
        self.partition.on_part(Part(EPOCH, end, end, Offset(high_watermark), Offset(0)), b"")

    def read(self, offset: int, *, nearby: bool = True) -> int:
        run = self.partition.read(offset, 1 << 20, READ_UNCOMMITTED, nearby=nearby)
        assert run.next_offset >= offset
        return run.next_offset


def test_it_serves_what_is_committed_and_nothing_else() -> None:
    following = Following()
    following.hear()
    assert following.read(0) == COMMITTED
    assert following.read(COMMITTED) == COMMITTED, "nothing yet"
    following.hear(6)
    assert following.read(0) == 6


def test_read_committed_too() -> None:
    following = Following()
    following.hear()
    run = following.partition.read(0, 1 << 20, READ_COMMITTED, nearby=True)
    assert (run.next_offset, run.last_stable_offset) == (COMMITTED, COMMITTED)


def test_a_reader_that_is_ahead_waits_and_is_not_told_out_of_range() -> None:
    following = Following()
    following.hear()
    assert following.read(5) == 5
    assert following.read(1_000) == 1_000
    following.partition.log.trim_to(Offset(COMMITTED))
    with pytest.raises(OffsetNotAvailable):
        following.read(0)


def test_before_its_leader_has_been_heard_it_serves_nobody() -> None:
    with pytest.raises(OffsetNotAvailable):
        Following().read(0)


def test_who_does_not_ask_for_it_is_sent_to_the_leader() -> None:
    following = Following()
    following.hear()
    with pytest.raises(NotLeader) as refused:
        following.read(0, nearby=False)
    assert refused.value.leader == 1


def test_out_of_the_isr_or_out_of_touch_it_serves_nobody() -> None:
    following = Following()
    following.hear()
    told: list[str] = []
    following.partition.watch(lambda: told.append("look again"), READ_COMMITTED)
    out = replace(following.state, isr=(NodeId(1),), partition_epoch=PartitionEpoch(8))
    following.partition.on_state(out, B2)
    assert told, "its readers look again when it has left the ISR"
    with pytest.raises(NotLeader):
        following.read(0)
    following.partition.on_state(replace(following.state, partition_epoch=PartitionEpoch(9)), B2)
    assert following.read(0) == COMMITTED
    following.lease.end()
    with pytest.raises(NotLeader):
        following.read(0)


def test_positions_are_judged_by_the_leader() -> None:
    following = Following()
    following.hear()
    following.partition.check_position(1_000, EPOCH)
    with pytest.raises(UnknownLeaderEpoch):
        following.partition.check_position(0, LeaderEpoch(EPOCH + 1))
