"""Group: members that come and go, and write down what they go through (G1, G2, G5, P8)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from suiro.aio import Bound
from suiro.model.error_base import SuiroError
from suiro.model.ids import TopicPartition
from suiro.verify.clients import keep_trying, make_topic
from suiro.verify.groups import Kind, check

from tests.cluster.group_member import Journal, JournaledMember

if TYPE_CHECKING:
    from suiro.verify.clients import Clients

TOPIC = "orders"
GROUP = "readers"
DRAIN_S_MAX = 60.0
SETTINGS = {"session_timeout_ms": 3_000, "heartbeat_interval_ms": 500}


class Group:
    """One producer, and members who share what it writes."""

    name = "group"

    def __init__(
        self,
        clients: Clients,
        partitions: int = 4,
        members: int = 2,
        members_max: int = 4,
        pause_s: float = 0.1,
    ) -> None:
        self.clients = clients
        self.journal = Journal(clients.now_s)
        self.rebalances = 0
        self._partitions = partitions
        self._members = members
        self._members_max = members_max
        self._pause_s = pause_s
        self._alive: dict[str, tuple[JournaledMember, asyncio.Task[None]]] = {}
        self._leaving: list[asyncio.Task[None]] = []
        self._born = 0
        self._sent = 0

    @property
    def done(self) -> int:
        counted = Counter(event.kind for event in self.journal.events)
        return counted[Kind.ACKED]

    async def prepare(self) -> None:
        await make_topic(self.clients, TOPIC, self._partitions)

    async def run(self, stop: asyncio.Event) -> None:
        """Members stay until `finish`."""
        for _ in range(self._members):
            self.join()
        await self.clients.spawn("orders", self._write(stop))

    def flap(self) -> None:
        """Somebody comes, or somebody goes, as chance will have it."""
        if len(self._alive) < 2 or (
            len(self._alive) < self._members_max and self.clients.rng.random() < 0.5
        ):
            self.join()
        else:
            self.leave()

    def join(self) -> None:
        self._born += 1
        self.rebalances += 1
        name = f"member-{self._born}"
        consumer = self.clients.consumer(name, group_id=GROUP, enable_auto_commit=False, **SETTINGS)
        member = JournaledMember(consumer, name, self.journal)
        self._alive[name] = member, self.clients.spawn(name, member.live(TOPIC))

    def leave(self) -> None:
        self.rebalances += 1
        name = self.clients.rng.choice(sorted(self._alive))
        member, task = self._alive.pop(name)
        member.stop.set()
        self._leaving.append(task)

    async def finish(self) -> list[str]:
        """Until everything was given to somebody."""
        ends = await self._ends()
        until_s = self.clients.now_s() + DRAIN_S_MAX
        while "G5" in " ".join(check(self.journal.events, ends)):
            if self.clients.now_s() > until_s:
                break
            self._revive()
            await asyncio.sleep(1)
        for member, _ in self._alive.values():
            member.stop.set()
        await asyncio.gather(*self._leaving, *(task for _, task in self._alive.values()))
        wrong = check(self.journal.events, ends)
        return [line for line in wrong if not line.startswith("error of")]

    def _revive(self) -> None:
        """A member that an error ended is replaced, as its supervisor would."""
        for name in [name for name, (_, task) in self._alive.items() if task.done()]:
            del self._alive[name]
            self.join()

    async def _ends(self) -> dict[str, int]:
        async with self.clients.consumer("ends of orders") as consumer:
            return {
                f"{TOPIC}-{number}": await consumer.offset_of(
                    TopicPartition(TOPIC, number), Bound.LATEST
                )
                for number in range(self._partitions)
            }

    async def _write(self, stop: asyncio.Event) -> None:
        async def live() -> None:
            async with self.clients.producer("orders", linger_ms=1) as producer:
                while not stop.is_set():
                    self._revive()
                    partition = self.clients.rng.randrange(self._partitions)
                    try:
                        await producer.send(TOPIC, b"x", partition=partition)
                        self._sent += 1
                    except SuiroError:
                        await asyncio.sleep(self._pause_s)
                    await asyncio.sleep(self.clients.rng.uniform(0, self._pause_s))

        await keep_trying(live, stop)
