"""The transaction coordinator of the simulation: the real machine on a log that commits late.

A decision is applied and appended at once; its reply and its effects leave when it is committed. A
coordinator that fails loses what was not committed, and the next one is built from the newest value
of every key, by the real codec: that is the compacted topic. Whatever the old one sent is under way
still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.errors import ConcurrentTransaction
from suiro.model.ids import ProducerId

from cluster.txncoord.codec import decode, encode
from cluster.txncoord.machine import TxnMachine
from cluster.txncoord.records import TxnChanged
from cluster.txncoord.requests import Completing, Marked, Places, SendMarkers
from cluster.txncoord.table import TxnLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.host.machine import Decision
    from tests.sim.txn_world import World

    Reply = Callable[[Any], None]
    Batch = tuple[tuple[bytes, bytes | None], ...]

TICK_MS = 50
RESEND_MS = 60
BLOCK = 8


class Coordinator:
    """Whoever owns the shard at the moment."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.owner_epoch = 0
        self.log: list[Batch] = []
        self.committed = 0
        self.next_id = 1
        self.machine = TxnMachine()
        self.take_over()
        world.after(TICK_MS, self._tick)

    def ask(
        self,
        what: str,
        choose: Callable[[TxnMachine], Decision[Any]],
        reply: Reply,
        *,
        may_be_late: bool = True,
    ) -> None:
        """A request over the network, and its answer back: a value or an error."""
        world = self.world

        def answer(value: Any) -> None:
            text = type(value).__name__ if isinstance(value, SuiroError) else str(value)
            world.send(f"answer to {what}: {text}", reply, value)

        world.send(what, lambda: self._serve(choose, answer), may_be_late=may_be_late)

    def decide(self, choose: Callable[[TxnMachine], Decision[Any]]) -> None:
        """Something that the coordinator does by itself."""
        self._serve(choose, lambda _: None)

    def take_over(self) -> None:
        """The owner is gone, or only thinks so: a new one loads what was committed."""
        world, random = self.world, self.world.random
        self.owner_epoch += 1
        del self.log[self.committed + random.randint(0, len(self.log) - self.committed) :]
        self.committed = len(self.log)
        newest: dict[bytes, bytes | None] = {}
        for batch in self.log:
            newest.update(batch)
        machine = TxnMachine(TxnLimits(epoch_max=world.plan.epoch_max))
        for key in sorted(newest):
            machine.apply(decode(key, newest[key]))
        self._check_committed()
        self.machine = machine
        self._refill()
        for work in machine.open_work():
            self._send_markers(work, self.owner_epoch)

    def _serve(self, choose: Callable[[TxnMachine], Decision[Any]], answer: Reply) -> None:
        try:
            decision = choose(self.machine)
        except SuiroError as error:
            self._when_committed(lambda error=error: answer(error))  # type: ignore[misc]
            return
        if decision.records:
            for record in decision.records:
                self.machine.apply(record)
            self.log.append(tuple(encode(record) for record in decision.records))
            self._refill()
        reply = decision.reply
        if isinstance(reply, Completing):
            reply = ConcurrentTransaction("still being completed")
        owner_epoch = self.owner_epoch

        def release() -> None:
            for effect in decision.effects:
                self._send_markers(effect, owner_epoch)
            answer(reply)

        self._when_committed(release)

    def _when_committed(self, act: Callable[[], None]) -> None:
        """Later, unless the owner changes before; in order, as the log commits in order."""
        position, owner_epoch = len(self.log), self.owner_epoch

        def check() -> None:
            if self.owner_epoch != owner_epoch:
                return
            if position > self.committed:
                self.committed = position
                self._check_committed()
            act()

        self.world.after(self.world.random.randint(0, self.world.plan.commit_ms), check)

    def _check_committed(self) -> None:
        for batch in self.log[self.world.checker.seen_batches : self.committed]:
            for key, value in batch:
                record = decode(key, value)
                if isinstance(record, TxnChanged):
                    self.world.checker.on_decided(record.txn)
            self.world.checker.seen_batches += 1

    def _tick(self) -> None:
        now = self.world.now
        self.decide(lambda machine: machine.decide_expire(now))
        self.world.after(TICK_MS, self._tick)

    def _refill(self) -> None:
        if self.machine.wants_producer_ids:
            start, self.next_id = self.next_id, self.next_id + BLOCK
            self.machine.on_producer_ids(ProducerId(start), ProducerId(self.next_id))

    # -- markers ----------------------------------------------------------------------------------

    def _send_markers(self, work: SendMarkers, owner_epoch: int) -> None:
        """Send to all who still owe an answer; again later, as long as this one is the owner."""
        world = self.world
        if owner_epoch != self.owner_epoch:
            return
        txn = self.machine.get(work.transactional_id)
        owed = {} if txn is None else {w.marker: w for w in txn.writers}
        left = False
        for writer in work.writers:
            now_owed = owed.get(writer.marker)
            if now_owed is None:
                continue
            for tp in writer.places.partitions:
                if tp in now_owed.partitions:
                    left = True
                    partition = world.partitions[tp]
                    answer = self._answered(work, Marked(writer.marker, Places((tp,))))
                    partition.write_marker(writer.marker, writer.commit, answer)
            for name in writer.places.groups:
                if name in now_owed.groups:
                    left = True
                    answer = self._answered(work, Marked(writer.marker, Places((), (name,))))
                    world.group.settle(writer.marker, writer.commit, answer)
        if left:
            world.after(RESEND_MS, self._send_markers, work, owner_epoch)

    def _answered(self, work: SendMarkers, answer: Marked) -> Callable[[], None]:
        world = self.world

        def tell() -> None:
            now, name = world.now, work.transactional_id
            self.decide(lambda machine: machine.decide_marked(name, [answer], now))

        return lambda: world.send(f"marked {answer.marker.producer_id}", tell)
