"""Members of a consumer group that write down what they go through; also as processes of their own.

    python -m tests.cluster.group_member BOOTSTRAP GROUP TOPIC HISTORY SETTINGS

reads orders from standard input, one a line (`join m1`, `leave m1`), and ends with it. SETTINGS are
those of the consumers, as JSON. The history is one JSON line per event, by the machine's monotonic
clock.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import defaultdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from suiro.aio import Consumer
from suiro.model.error_base import SuiroError
from suiro.model.errors import StaleMemberEpoch, UnknownMember
from suiro.model.ids import TopicPartition
from suiro.verify.groups import Event, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from suiro.model.record import Record

POLL_S = 0.2


class Journal:
    """The history of some members, in memory and, if there is a file, there."""

    def __init__(self, now_s: Callable[[], float], file: TextIO | None = None) -> None:
        self.now_s = now_s
        self.events: list[Event] = []
        self._file = file

    def add(
        self, member: str, kind: Kind, partition: str = "", offset: int = -1, end: int = -1
    ) -> None:
        self.put(Event(self.now_s(), member, kind, partition, offset, end))

    def put(self, event: Event) -> None:
        self.events.append(event)
        if self._file is not None:
            self._file.write(json.dumps(event) + "\n")


class JournalReader:
    """A journal that another process writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self._events: list[Event] = []

    @property
    def is_begun(self) -> bool:
        return self._path.exists()

    def events(self) -> list[Event]:
        """What was written so far; a last line that is torn, by a kill, does not count."""
        if self.is_begun:
            with self._path.open("rb") as file:
                file.seek(self._seen)
                fresh = file.read().rpartition(b"\n")[0]
            if fresh:
                self._seen += len(fresh) + 1
                events = (Event(*json.loads(line)) for line in fresh.splitlines())
                self._events += [event._replace(kind=Kind(event.kind)) for event in events]
        return self._events


class JournaledMember:
    """Polls, commits what it was given, and writes everything down."""

    def __init__(self, consumer: Consumer, name: str, journal: Journal) -> None:
        self.consumer = consumer
        self.name = name
        self.stop = asyncio.Event()
        self._journal = journal

    async def live(self, *topics: str) -> None:
        """Until it is stopped; an error that an application would see is an event too."""
        try:
            async with self.consumer as consumer:
                consumer.subscribe(
                    *topics,
                    on_assigned=self._on_assigned,
                    on_revoked=self._on_revoked,
                    on_lost=self._on_lost,
                )
                while not self.stop.is_set():
                    records = await consumer.poll(POLL_S)
                    self._on_records(records)
                    if records:
                        await self._commit(consumer.assignment())
                self._journal.add(self.name, Kind.GONE)
        except SuiroError as error:
            now_s = self._journal.now_s()
            self._journal.put(Event(now_s, self.name, Kind.FAILED, note=repr(error)))

    def _on_assigned(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            begins = self.consumer.position(partition)
            self._journal.add(self.name, Kind.ASSIGNED, str(partition), begins)

    async def _on_revoked(self, partitions: list[TopicPartition]) -> None:
        await self._commit(partitions)
        for partition in partitions:
            self._journal.add(self.name, Kind.REVOKED, str(partition))

    def _on_lost(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._journal.add(self.name, Kind.LOST, str(partition))

    def _on_records(self, records: Iterable[Record]) -> None:
        ranges: dict[str, list[int]] = defaultdict(list)
        for record in records:
            ranges[str(TopicPartition(record.topic, record.partition))].append(record.offset)
        for partition, offsets in ranges.items():
            for first, end in _runs(offsets):
                self._journal.add(self.name, Kind.POLLED, partition, first, end)

    async def _commit(self, partitions: Iterable[TopicPartition]) -> None:
        offsets = {partition: self.consumer.position(partition) for partition in partitions}
        try:
            await self.consumer.commit(offsets)
        except (StaleMemberEpoch, UnknownMember):
            return  # some of them are no longer its own; it will be told
        for partition, offset in offsets.items():
            self._journal.add(self.name, Kind.ACKED, str(partition), offset)


def _runs(offsets: list[int]) -> list[tuple[int, int]]:
    """Offsets as ranges: a hole between them is an event's end and another's beginning."""
    parts = [
        [offset for _, offset in run]
        for _, run in groupby(enumerate(offsets), key=lambda pair: pair[1] - pair[0])
    ]
    return [(part[0], part[-1] + 1) for part in parts]


class Host:
    """Members in one process, who come and go as they are told, each at its own pace."""

    def __init__(self, bootstrap: str, group: str, journal: Journal, settings: str) -> None:
        self._bootstrap = bootstrap
        self._group = group
        self._journal = journal
        self._settings = json.loads(settings)
        self._members: dict[str, tuple[JournaledMember, asyncio.Task[None]]] = {}

    async def run(self, topic: str) -> None:
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
        )
        async with asyncio.TaskGroup() as tasks:
            while line := (await orders.readline()).decode().split():
                order, name = line
                if order == "join":
                    member, life = self._join(name, topic, self._members.get(name))
                    self._members[name] = member, tasks.create_task(life, name=name)
                elif order == "hang":
                    os.kill(os.getpid(), signal.SIGSTOP)
                else:
                    self._members[name][0].stop.set()
            for member, _ in self._members.values():
                member.stop.set()

    def _join(
        self, name: str, topic: str, former: tuple[JournaledMember, asyncio.Task[None]] | None
    ) -> tuple[JournaledMember, Coroutine[None, None, None]]:
        consumer = Consumer(
            self._bootstrap,
            group_id=self._group,
            client_id=name,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **self._settings,
        )
        member = JournaledMember(consumer, name, self._journal)

        async def live() -> None:
            if former is not None:
                await asyncio.wait([former[1]])
            await member.live(topic)

        return member, live()


def main() -> None:
    bootstrap, group, topic, history, settings = sys.argv[1:]
    with Path(history).open("a", buffering=1) as file:
        journal = Journal(time.monotonic, file)
        asyncio.run(Host(bootstrap, group, journal, settings).run(topic))


if __name__ == "__main__":
    main()
