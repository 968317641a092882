"""What a transaction coordinator does with its shards: machines, markers, deadlines, producer ids.

`Shards` owns the plumbing: it claims a shard, replays it, serves its machine. This is the part that
knows about transactions. Whatever was decided before a take-over is finished after it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from suiro._proto import controller_pb2
from suiro.model.error_base import SuiroError
from suiro.model.ids import ProducerId
from suiro.model.records import ShardKind
from suiro.transport.methods import ControllerMethods

from cluster.txncoord.codec import decode, encode
from cluster.txncoord.failpoint import AFTER, BEFORE, COMPLETE, MARKED, Failpoint
from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.marker_sender import MarkerSender
from cluster.txncoord.producer_ids import ProducerIds
from cluster.txncoord.recipients import NodeRecipients
from cluster.txncoord.records import TxnChanged
from cluster.txncoord.requests import SendMarkers
from cluster.txncoord.txn import TxnState
from cluster.txncoord.txn_metrics import TxnMetrics

if TYPE_CHECKING:
    from cluster.host.coordinator import RoleContext
    from cluster.host.shard_log import Keyed
    from cluster.host.shards import Shard
    from cluster.txncoord.records import TxnRecord

log = logging.getLogger("suiro.txn")

LOOK_S: Final = 0.25
"""How often deadlines are looked at: a timeout is a matter of seconds."""

FORGET_S: Final = 600.0
ALLOCATE_TIMEOUT_S: Final = 10.0
COMPLETION_S_MAX: Final = 1.0
"""For so long whoever begins the next transaction waits here for the last one's markers."""
PAUSE_S_FIRST: Final = 0.02
PAUSE_S_MAX: Final = 1.0


class TxnProgram:
    """The `Program` of transaction shards."""

    kind = ShardKind.TXN

    def __init__(self, context: RoleContext) -> None:
        self.failpoint = Failpoint.from_environment()
        self._context = context
        self._metrics = TxnMetrics(context.env.metrics)
        self._ids = ProducerIds()
        self._allocating = asyncio.Lock()
        self._served: dict[int, _Served] = {}

    def new_machine(self, _shard: int) -> TxnMachine:
        return TxnMachine()

    def encode(self, record: TxnRecord) -> Keyed:
        if self.failpoint.is_set and isinstance(record, TxnChanged):
            self.failpoint.reached(BEFORE, record.txn.state)
        return encode(record)

    def decode(self, key: bytes, value: bytes | None) -> TxnRecord:
        return decode(key, value)

    def perform(self, shard: Shard[TxnMachine], effect: Any) -> None:
        assert isinstance(effect, SendMarkers)
        if self.failpoint.is_set:
            commits = any(writer.commit for writer in effect.writers)
            self.failpoint.reached(
                AFTER, TxnState.PREPARE_COMMIT if commits else TxnState.PREPARE_ABORT
            )
        if shard.index in self._served:  # else its open work is started when it is
            self._served[shard.index].finish(effect.transactional_id)

    async def completed(self, shard: Shard[TxnMachine], transactional_id: str) -> None:
        """Wait for the markers of the id's last transaction, for a moment at most."""
        served = self._served.get(shard.index)
        if served is not None:
            await served.completions.wait(transactional_id)

    async def tend(self, shard: Shard[TxnMachine]) -> None:
        """While a shard is served."""
        context = self._context
        recipients = NodeRecipients(
            context.env, lambda: context.feed.image, shard, lambda: self.failpoint.reached(MARKED)
        )
        completions = Completions()
        sender = MarkerSender(
            shard.host, recipients, context.env.clock, self._pause_s, completions.end
        )
        async with asyncio.TaskGroup() as tasks:
            served = _Served(tasks, sender, completions, self.failpoint)
            self._served[shard.index] = served
            try:
                for work in await shard.host.read(lambda machine: machine.open_work()):
                    served.finish(work.transactional_id)
                await self._tend_forever(shard)
            finally:
                if self._served.get(shard.index) is served:
                    del self._served[shard.index]
                    self._metrics.forget(shard.index, context.env.clock.now_ms())

    async def _tend_forever(self, shard: Shard[TxnMachine]) -> None:
        loop = asyncio.get_running_loop()
        forgotten_s = loop.time()
        while True:
            try:
                await self._supply(shard)
                await self._expire(shard)
                await self._measure(shard)
                if loop.time() - forgotten_s >= FORGET_S:
                    forgotten_s = loop.time()
                    await self._forget(shard)
            except SuiroError as error:  # over, and this task will be cancelled, or for the moment
                log.debug("txn shard %d: %s", shard.index, error)
            await asyncio.sleep(LOOK_S)

    async def _supply(self, shard: Shard[TxnMachine]) -> None:
        if await shard.host.read(lambda machine: machine.wants_producer_ids):
            start, end = await self._allocate()
            await shard.host.read(lambda machine: machine.on_producer_ids(start, end))

    async def _expire(self, shard: Shard[TxnMachine]) -> None:
        now_ms = self._context.env.clock.now_ms()
        due_ms = await shard.host.read(lambda machine: machine.next_deadline_ms())
        if due_ms is not None and due_ms <= now_ms:
            await shard.host.decide(lambda machine: machine.decide_expire(now_ms))

    async def _measure(self, shard: Shard[TxnMachine]) -> None:
        now_ms = self._context.env.clock.now_ms()
        await shard.host.read(lambda machine: self._metrics.look(shard.index, machine, now_ms))

    async def _forget(self, shard: Shard[TxnMachine]) -> None:
        now_ms = self._context.env.clock.now_ms()
        await shard.host.decide(lambda machine: machine.decide_forget(now_ms))

    def _pause_s(self, rounds: int) -> float:
        return min(PAUSE_S_FIRST * float(2 ** min(rounds, 10)), PAUSE_S_MAX)

    # -- producer ids -----------------------------------------------------------------------------

    async def new_producer_id(self) -> ProducerId:
        """For a producer that is only idempotent."""
        async with self._allocating:
            if self._ids.wants_block:
                self._ids.add(*await self._allocate())
            return self._ids.take()

    async def _allocate(self) -> tuple[ProducerId, ProducerId]:
        context = self._context
        node = context.feed.image.nodes[context.node_id]
        block = await context.quorum.call(
            ControllerMethods.ALLOCATE_PRODUCER_IDS,
            controller_pb2.AllocateProducerIdsRequest(
                node_id=context.node_id, broker_epoch=node.broker_epoch
            ),
            timeout_s=ALLOCATE_TIMEOUT_S,
        )
        return ProducerId(block.first), ProducerId(block.first + block.count)


class Completions:
    """The ids whose markers are under way, and who waits for that to end."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Event] = {}

    def begin(self, transactional_id: str) -> None:
        self._open.setdefault(transactional_id, asyncio.Event())

    def end(self, transactional_id: str) -> None:
        event = self._open.pop(transactional_id, None)
        if event is not None:
            event.set()

    async def wait(self, transactional_id: str) -> None:
        """Until it ends, for a moment at most."""
        event = self._open.get(transactional_id)
        if event is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(COMPLETION_S_MAX):
                    await event.wait()


class _Served:
    """The transactions of a shard whose markers are being sent, each by one task at most."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        sender: MarkerSender,
        completions: Completions,
        failpoint: Failpoint,
    ) -> None:
        self.completions = completions
        self._tasks = tasks
        self._sender = sender
        self._failpoint = failpoint
        self._wanted: set[str] = set()
        self._running: set[str] = set()

    def finish(self, transactional_id: str) -> None:
        self.completions.begin(transactional_id)
        self._wanted.add(transactional_id)
        if transactional_id not in self._running:
            self._running.add(transactional_id)
            self._tasks.create_task(self._finish(transactional_id), name="txn markers")

    async def _finish(self, transactional_id: str) -> None:
        try:
            while transactional_id in self._wanted:
                self._wanted.discard(transactional_id)
                await self._sender.finish(transactional_id)
            self._failpoint.reached(COMPLETE)
        except SuiroError as error:
            log.debug("the markers of %s wait for the next owner: %s", transactional_id, error)
        finally:
            self._running.discard(transactional_id)
            self.completions.end(transactional_id)
