"""Markers are sent until all have answered, by what the machine still owes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.errors import Unavailable
from suiro.model.ids import NodeId, ProducerIdentity, TopicPartition

from cluster.host.clock import SystemClock
from cluster.txncoord.marker_sender import MarkerSender
from cluster.txncoord.requests import Init, Places
from cluster.txncoord.txn import TxnState
from tests.unit.txncoord.kit import T0, T1, identity
from tests.unit.txncoord.test_service import Stage, staged

if TYPE_CHECKING:
    from collections.abc import Sequence

GONE = TopicPartition("gone", 0)


class Brokers:
    """Two of them, of which each call fails the first time; and a group coordinator."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.failed: set[object] = set()

    def leader_of(self, partition: TopicPartition) -> NodeId | None:
        if partition == T1 and "led" not in self.failed:
            self.failed.add("led")
            return None
        return {T0: NodeId(1), T1: NodeId(2)}.get(partition)

    def is_deleted(self, partition: TopicPartition) -> bool:
        return partition == GONE

    def fail_once(self, what: object) -> None:
        if what not in self.failed:
            self.failed.add(what)
            raise Unavailable("not now")

    async def write_markers(
        self,
        broker: NodeId,
        marker: ProducerIdentity,
        commit: bool,
        partitions: Sequence[TopicPartition],
    ) -> Sequence[TopicPartition]:
        self.fail_once(broker)
        self.calls.append((broker, marker, commit, *partitions))
        return partitions

    async def settle_offsets(self, group: str, identity: ProducerIdentity, commit: bool) -> None:
        self.fail_once(group)
        self.calls.append((group, identity, commit))


async def open_in(stage: Stage, places: Places) -> None:
    for decide in (
        lambda m: m.decide_init(Init("id", 1000, "me"), 0),
        lambda m: m.decide_add("id", identity(1, 0), places, 0),
        lambda m: m.decide_end("id", identity(1, 0), commit=True, now_ms=0),
    ):
        await stage.host.decide(decide)


async def test_every_place_is_told_until_it_answers() -> None:
    async with staged() as stage:
        await open_in(stage, Places((T0, T1, GONE), ("g",)))
        brokers = Brokers()
        seen: list[TxnState] = []

        def on_complete(name: str) -> None:
            txn = stage.machine.get(name)
            assert txn is not None
            seen.append(txn.state)

        sender = MarkerSender(stage.host, brokers, SystemClock(), lambda _: 0.0, on_complete)
        await sender.finish("id")
        assert seen == [TxnState.COMPLETE_COMMIT], "once, and the machine knew it by then"
        assert sorted(brokers.calls, key=str) == [
            ("g", identity(1, 0), True),
            (1, identity(1, 1), True, T0),
            (2, identity(1, 1), True, T1),
        ]


async def test_nothing_owed_is_nothing_sent() -> None:
    async with staged() as stage:
        brokers = Brokers()
        sender = MarkerSender(stage.host, brokers, SystemClock(), lambda _: 0.0, lambda _: None)
        await sender.finish("unknown")
        await stage.init()
        await sender.finish("id")
        assert brokers.calls == []
