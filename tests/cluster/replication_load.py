"""A real cluster under load, with everything remembered that clients were told.

Writers send to every partition all the time and note what became of each record; at the end one
reader reads all of it, and `check` says what cannot be true. The replicas' files are compared by a
reader of their own.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import suiro
from suiro.aio import Admin, Consumer, Producer
from suiro.model.error_base import SuiroError
from suiro.verify.history import Anomaly, History, Outcome, Read, Send, check
from suiro.verify.payload import Payload

from tests.checkers.segments import differences, read_log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from suiro.connection import TopicInfo
    from suiro.handle import Sent

    from cluster.local_cluster import LocalCluster, LocalNode

TOPIC = "kept"
FILLER = b"." * 64
WAITING_MAX = 2_000
"""Records of one writer that are on their way: enough to outlast a failover at the usual pace."""
PATIENCE_S = 60.0


@dataclass
class Load:
    """Writers, and what they were told."""

    bootstrap: str
    partitions: int
    writers: int = 2
    pause_s: float = 0.01
    settings: dict[str, Any] = field(default_factory=dict)
    run: str = field(default_factory=lambda: os.urandom(4).hex())
    history: History = field(default_factory=History)
    waiting: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    acks: list[list[tuple[float, float]]] = field(default_factory=list)
    """For each partition when each acknowledged record was sent, and when that was heard."""

    def __post_init__(self) -> None:
        self.acks = [[] for _ in range(self.partitions)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write while the body runs; afterwards everything is answered for."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.writers):
                tasks.create_task(self._write(number, stop), name=f"writer {number}")
            try:
                yield
            finally:
                stop.set()

    async def _write(self, number: int, stop: asyncio.Event) -> None:
        given = {"linger_ms": 1, "delivery_timeout_ms": 120_000, **self.settings}
        async with Producer(self.bootstrap, **given) as producer, asyncio.TaskGroup() as answers:
            sequence = 0
            while not stop.is_set():
                for partition in range(self.partitions):
                    if self.waiting < WAITING_MAX * self.writers:
                        payload = Payload(self.run, TOPIC, partition, number, sequence)
                        sent = producer.send(TOPIC, payload.encode(FILLER), partition=partition)
                        answers.create_task(self._hear(payload, sent, time.monotonic()))
                sequence += 1
                await asyncio.sleep(self.pause_s)

    async def _hear(self, payload: Payload, sent: Sent, invoked_s: float) -> None:
        """Note what became of a record; what failed may be stored all the same."""
        self.waiting += 1
        outcome, offset = Outcome.INFO, -1
        try:
            offset = (await sent).offset
            outcome = Outcome.OK
            self.acks[payload.partition].append((invoked_s, time.monotonic()))
        except SuiroError as error:
            self.failures[type(error).__name__] += 1
        self.waiting -= 1
        self.history.sends.append(Send(payload, outcome, offset, invoked_s, time.monotonic()))

    async def writable_after(self, partition: int, since_s: float) -> float:
        """When the first record was acknowledged that was sent after `since_s`."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                heard_s = _first_after(self.acks[partition], since_s)
                if heard_s is not None:
                    return heard_s
                await asyncio.sleep(0.002)

    async def read_all(self) -> dict[int, int]:
        """Read everything from the beginning, into the history; where each partition ends."""
        history = self.history
        async with Consumer(self.bootstrap, auto_offset_reset="earliest") as consumer:
            ends = {}
            for number in range(self.partitions):
                where = suiro.TopicPartition(TOPIC, number)
                ends[number] = await consumer.offset_of(where, suiro.Bound.LATEST)
            for number, end in ends.items():
                where = suiro.TopicPartition(TOPIC, number)
                await consumer.assign([where])
                position = 0
                while position < end:
                    polled = await consumer.poll(20, max_records=10_000)
                    assert polled, f"{where}: nothing comes at {position}, it ends at {end}"
                    for record in polled:
                        value = record.value or b""
                        read = Read("final", TOPIC, number, record.offset, value)
                        history.reads.append(read)
                    position = polled[-1].offset + 1
        return ends


@dataclass(frozen=True)
class Verdict:
    """What the history and the files say."""

    sent: int
    acknowledged: int
    unknown: int
    read: int
    anomalies: list[Anomaly]
    differences: list[str]

    @property
    def is_good(self) -> bool:
        return not self.anomalies and not self.differences

    def lines(self) -> list[str]:
        names = Counter(f"{a.promise} {a.name}" for a in self.anomalies)
        lines = [
            f"records sent, acknowledged     {self.sent}, {self.acknowledged}",
            f"outcome unknown to the sender  {self.unknown}",
            f"records read at the end        {self.read}",
            f"anomalies (P1 to P8)           {dict(names) or 'none'}",
            f"replicas byte for byte equal   {self.differences or 'yes'}",
        ]
        return lines + [f"  {anomaly}" for anomaly in self.anomalies[:5]]


def judge(load: Load, brokers: Sequence[LocalNode], ends: dict[int, int]) -> Verdict:
    """To be called when the brokers have stopped and their files are at rest."""
    sends = load.history.sends
    differ = []
    for partition, end in ends.items():
        replicas = {b.name: read_log(_directory(b, partition)) for b in brokers}
        differ += [f"{TOPIC}-{partition}: {text}" for text in differences(replicas, end)]
    return Verdict(
        sent=len(sends),
        acknowledged=sum(send.outcome is Outcome.OK for send in sends),
        unknown=sum(send.outcome is Outcome.INFO for send in sends),
        read=len(load.history.reads),
        anomalies=check(load.history),
        differences=differ,
    )


async def make_topic(bootstrap: str, partitions: int, replication_factor: int = 3) -> TopicInfo:
    async with Admin(bootstrap) as admin:
        return await admin.create_topic(
            TOPIC,
            partitions=partitions,
            replication_factor=replication_factor,
            configs={"min.insync.replicas": "2"},
        )


async def leader_of(admin: Admin, cluster: LocalCluster, partition: int) -> LocalNode:
    """The broker that leads, once one does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            leader = (await admin.describe_topic(TOPIC)).partitions[partition].leader
            for node in cluster.brokers:
                if node.node_id == leader and node.is_running:
                    return node
            await asyncio.sleep(0.01)


async def in_sync_again(admin: Admin) -> None:
    """Until every replica of every partition is in its ISR."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            topic = await admin.describe_topic(TOPIC)
            if all(set(p.isr) == set(p.replicas) for p in topic.partitions):
                return
            await asyncio.sleep(0.02)


def _directory(broker: LocalNode, partition: int) -> Path:
    return broker.folder / "data" / "log" / f"{TOPIC}-{partition}"


def _first_after(acks: list[tuple[float, float]], since_s: float) -> float | None:
    heard = [heard_s for sent_s, heard_s in acks[-500:] if sent_s > since_s]
    return min(heard) if heard else None
