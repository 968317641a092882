"""Carry a decision to every partition and group, until all have answered: `MarkerSender`.

Markers are idempotent, so whatever is unknown is sent again. Each round asks the machine what is
still owed, so a take-over or a moved leader needs no special case; the answers of a round are one
decision. It ends when nothing is owed, or when the machine is no longer served here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from suiro.model.error_base import SuiroError

from cluster.txncoord.requests import Marked, Places
from cluster.txncoord.table import markers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.ids import NodeId, ProducerIdentity, TopicPartition

    from cluster.host.clock import Clock
    from cluster.host.machine import Decision
    from cluster.host.machine_host import MachineHost
    from cluster.txncoord.machine import TxnMachine
    from cluster.txncoord.requests import WriterMarkers


class Recipients(Protocol):
    """The brokers and group coordinators, as a transaction coordinator sees them."""

    def leader_of(self, partition: TopicPartition) -> NodeId | None:
        """Who leads it now, or None."""

    def is_deleted(self, partition: TopicPartition) -> bool:
        """Whether the metadata say that its topic is gone: then nobody is owed anything."""

    async def write_markers(
        self,
        broker: NodeId,
        marker: ProducerIdentity,
        commit: bool,
        partitions: Sequence[TopicPartition],
    ) -> Sequence[TopicPartition]:
        """Those where the marker is committed."""

    async def settle_offsets(self, group: str, identity: ProducerIdentity, commit: bool) -> None:
        """Return once the group has settled what the transaction left pending."""


class MarkerSender:
    """Finishes what was decided on one machine."""

    def __init__(
        self,
        host: MachineHost[TxnMachine],
        recipients: Recipients,
        clock: Clock,
        pause: Callable[[int], float],
        on_complete: Callable[[str], None],
    ) -> None:
        """`pause` says how many seconds to wait before the round of this number. `on_complete` is
        told of an id whose next transaction may be decided; that this is committed comes later.
        """
        self._host = host
        self._recipients = recipients
        self._clock = clock
        self._pause = pause
        self._on_complete = on_complete

    async def finish(self, transactional_id: str) -> None:
        """Until every place has its marker. Raises what the host raises when it stops serving."""
        rounds = 0
        while owed := await self._owed(transactional_id):
            if rounds:
                await asyncio.sleep(self._pause(rounds))
            rounds += 1
            answers = [answer for answer in await self._round(owed) if answer is not None]
            if answers:
                await self._host.decide(self._marked(transactional_id, answers))

    def _marked(
        self, transactional_id: str, answers: list[Marked]
    ) -> Callable[[TxnMachine], Decision[bool]]:
        now_ms = self._clock.now_ms()

        def choose(machine: TxnMachine) -> Decision[bool]:
            decision = machine.decide_marked(transactional_id, answers, now_ms)
            if decision.reply:  # and soon, when it has been applied, the machine knows it
                asyncio.get_running_loop().call_soon(self._on_complete, transactional_id)
            return decision

        return choose

    async def _owed(self, transactional_id: str) -> tuple[WriterMarkers, ...]:
        txn = await self._host.read(lambda machine: machine.get(transactional_id))
        work = () if txn is None else markers_of(txn)
        return work[0].writers if work else ()

    async def _round(self, owed: Sequence[WriterMarkers]) -> list[Marked | None]:
        """One attempt at everything that is owed, side by side."""
        async with asyncio.TaskGroup() as tasks:
            started = []
            for writer in owed:
                for broker, partitions in self._by_leader(writer).items():
                    started.append(tasks.create_task(self._mark(writer, broker, partitions)))
                started += [
                    tasks.create_task(self._settle(writer, group)) for group in writer.places.groups
                ]
        return [task.result() for task in started]

    def _by_leader(self, writer: WriterMarkers) -> dict[NodeId | None, list[TopicPartition]]:
        """By leader; None for those that are deleted. Those without a leader wait."""
        found: dict[NodeId | None, list[TopicPartition]] = {}
        for partition in writer.places.partitions:
            leader = self._recipients.leader_of(partition)
            if leader is not None or self._recipients.is_deleted(partition):
                found.setdefault(leader, []).append(partition)
        return found

    async def _mark(
        self, writer: WriterMarkers, broker: NodeId | None, partitions: list[TopicPartition]
    ) -> Marked | None:
        done: Sequence[TopicPartition] = partitions
        if broker is not None:
            try:
                done = await self._recipients.write_markers(
                    broker, writer.marker, writer.commit, partitions
                )
            except SuiroError:
                return None  # unknown: it is sent again
        return Marked(writer.marker, Places(tuple(done))) if done else None

    async def _settle(self, writer: WriterMarkers, group: str) -> Marked | None:
        try:
            await self._recipients.settle_offsets(group, writer.identity, writer.commit)
        except SuiroError:
            return None
        return Marked(writer.marker, Places((), (group,)))
