"""What a transaction writes to, in the simulation: partitions with the real log state, and a group.

A partition is one log and a high watermark that lags behind it. When its leader fails, the next one
has everything below the high watermark, and perhaps some of the rest; its state is replayed from
the batches or read from a snapshot. Batches are real bytes, so that the real filter reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from suiro.model.batch import read_header
from suiro.model.control import ControlType, Marker, decode_marker, encode_marker
from suiro.model.encode import BatchOptions, encode_lists
from suiro.model.error_base import SuiroError
from suiro.model.errors import NotLeader, ProducerFenced
from suiro.model.ids import LeaderEpoch, Offset, ProducerIdentity, TopicPartition

from cluster.broker.txn_verify import opens_transaction
from cluster.broker.visible import visible_batches
from cluster.log.producers import Duplicate
from cluster.log.state import LogState, decode_state
from cluster.txncoord.requests import Places

if TYPE_CHECKING:
    from collections.abc import Callable

    from suiro.model.batch import BatchHeader

    from tests.sim.txn_world import World

    Reply = Callable[[Any], None]

READ_MS = 40


@dataclass(frozen=True, slots=True)
class Sent:
    """One record that a producer sends: `value` names it in the whole run."""

    transactional_id: str
    identity: ProducerIdentity
    sequence: int
    value: str


class Partition:
    """One partition, at whoever leads it."""

    def __init__(self, world: World, name: TopicPartition) -> None:
        self.world = world
        self.name = name
        self.leader_epoch = 0
        self.batches: list[bytes] = []  # one record each, so an offset is an index
        self.values: list[str] = []
        self.producer_ids: list[int] = []
        self.forgot = False
        self.high_watermark = 0
        self.state = LogState(Offset(0))
        self._waiting: list[tuple[int, Callable[[], None]]] = []
        self._position = 0
        world.after(READ_MS, self._read)

    # -- producers --------------------------------------------------------------------------------

    def produce(self, sent: Sent, reply: Reply) -> None:
        """Over the network; the answer is the offset, or an error."""
        world = self.world

        def answer(value: Any) -> None:
            world.send(f"answer {sent.value}: {_text(value)}", reply, value)

        text = f"produce {sent.value} to {self.name}"
        world.send(text, self._arrived, sent, answer, may_be_late=True)

    def _arrived(self, sent: Sent, answer: Reply) -> None:
        header = read_header(_batch(sent))
        if not opens_transaction(self.state.producers.get(header.producer_id), header):
            self._append(sent, answer)
            return
        leader_epoch = self.leader_epoch

        def verified(result: Any) -> None:
            if isinstance(result, SuiroError):
                answer(result)
            elif self.leader_epoch != leader_epoch:
                answer(NotLeader(self.name, None))
            else:
                self._append(sent, answer)

        places = Places((self.name,))
        self.world.coordinator.ask(
            f"verify {sent.value} at {self.name}",
            lambda machine: machine.decide_verify(sent.transactional_id, sent.identity, places),
            verified,
            may_be_late=False,
        )

    def _append(self, sent: Sent, answer: Reply) -> None:
        data = _batch(sent)
        try:
            verdict = self.state.producers.check(read_header(data))
        except SuiroError as error:
            answer(error)
            return
        if isinstance(verdict, Duplicate):
            offset = int(verdict.base_offset)
            self.world.counts["duplicates answered"] += 1
            self.world.checker.on_duplicate(self.name, sent.value, self.values, offset)
        else:
            offset = self._write(data, sent.value)
        self._when_committed(offset + 1, lambda: answer(offset))

    # -- markers ----------------------------------------------------------------------------------

    def write_marker(
        self, marker: ProducerIdentity, commit: bool, answer: Callable[[], None]
    ) -> None:
        word = "commit" if commit else "abort"
        text = f"{word} {marker.producer_id}.{marker.producer_epoch} in {self.name}"
        self.world.send(text, self._marker_arrived, marker, commit, answer, may_be_late=True)

    def _marker_arrived(
        self, marker: ProducerIdentity, commit: bool, answer: Callable[[], None]
    ) -> None:
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        data = bytes(encode_marker(Marker(kind, 0), marker, 0))
        try:
            verdict = self.state.producers.check_marker(read_header(data))
        except ProducerFenced:
            self.world.counts["late markers"] += 1
            return
        if isinstance(verdict, Duplicate):
            offset = int(verdict.base_offset)
        else:
            offset = self._write(data, f"{'commit' if commit else 'abort'} {_id(marker)}")
        self._when_committed(offset + 1, answer)

    # -- the log ----------------------------------------------------------------------------------

    def _write(self, data: bytes, value: str) -> int:
        offset = len(self.batches)
        header = read_header(data)._replace(base_offset=offset, leader_epoch=self.leader_epoch)
        stored = header.base_offset.to_bytes(8, "big") + data[8:]
        self.batches.append(stored)
        self.values.append(value)
        self.producer_ids.append(header.producer_id)
        self._apply(header, stored)
        world, leader_epoch = self.world, self.leader_epoch
        delay_ms = world.random.randint(0, world.plan.replicate_ms)
        world.after(delay_ms, self._replicated, offset + 1, leader_epoch)
        return offset

    def _apply(self, header: BatchHeader, data: bytes) -> None:
        kind = decode_marker(data, verify_crc=False).kind if header.is_control else None
        self.state.apply(header, kind, self.world.now)

    def _replicated(self, end: int, leader_epoch: int) -> None:
        if leader_epoch != self.leader_epoch or end <= self.high_watermark:
            return
        self.high_watermark = end
        self._advanced()

    def _advanced(self) -> None:
        self.state.producers.forget_decided(Offset(self.high_watermark))
        due = [act for end, act in self._waiting if end <= self.high_watermark]
        self._waiting = [item for item in self._waiting if item[0] > self.high_watermark]
        for act in due:
            act()

    def _when_committed(self, end: int, act: Callable[[], None]) -> None:
        if end <= self.high_watermark:
            act()
        else:
            self._waiting.append((end, act))

    def fail(self) -> None:
        """The leader is gone; another one has all that was committed."""
        random = self.world.random
        self.leader_epoch += 1
        self._waiting.clear()
        kept = random.randint(self.high_watermark, len(self.batches))
        truncated = kept < len(self.batches)
        del self.batches[kept:], self.values[kept:], self.producer_ids[kept:]
        restored = None if truncated else decode_state(self.state.encode())
        if restored is not None and random.random() < 0.5:
            self.state = restored
        else:
            self.state = LogState(Offset(0))
            for offset, data in enumerate(self.batches):
                header = read_header(data)._replace(base_offset=offset, leader_epoch=LeaderEpoch(0))
                self._apply(header, data)
        self.high_watermark = len(self.batches)  # what the new leader has, it replicates
        self._advanced()

    def forget(self) -> None:
        """Drop the producers that were quiet for longer than any question is under way."""
        quiet_ms = 3 * self.world.plan.slow_ms + 500
        if self.state.producers.expire(self.world.now - quiet_ms):
            self.forgot = True

    # -- readers ----------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        return self.state.producers.last_stable_offset(Offset(self.high_watermark))

    def visible(self, start: int, end: int) -> list[str]:
        """What a read_committed reader is given of [start, end)."""
        aborted = self.state.aborted.overlapping(Offset(start), Offset(end))
        return [
            self.values[offset]
            for offset in range(start, end)
            if visible_batches(self.batches[offset], aborted)
        ]

    def _read(self) -> None:
        stable = self.last_stable_offset
        self.world.checker.on_stable(self.name, self._position, stable)
        self.world.checker.on_stable_range(self, self._position, stable)
        if stable > self._position:
            self.world.checker.on_read(self.name, self.visible(self._position, stable))
            self._position = stable
        self.world.after(READ_MS, self._read)


class Group:
    """The offsets of a group: pending until the marker, then visible or dropped."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.epochs: dict[int, int] = {}
        self.pending: dict[int, list[str]] = {}
        self.visible: list[str] = []

    def commit(self, sent: Sent, reply: Reply) -> None:
        world = self.world

        def answer(value: Any) -> None:
            world.send(f"answer offset {sent.value}: {_text(value)}", reply, value)

        def verified(result: Any) -> None:
            if isinstance(result, SuiroError):
                answer(result)
            elif sent.identity.producer_epoch < self.epochs.get(sent.identity.producer_id, 0):
                answer(ProducerFenced("the transaction is over"))
            else:
                self._pend(sent)
                answer(0)

        places = Places((), (self.name,))
        world.send(
            f"offset {sent.value}",
            lambda: world.coordinator.ask(
                f"verify offset {sent.value}",
                lambda machine: machine.decide_verify(sent.transactional_id, sent.identity, places),
                verified,
                may_be_late=False,
            ),
        )

    def _pend(self, sent: Sent) -> None:
        pending = self.pending.setdefault(sent.identity.producer_id, [])
        if sent.value not in pending:
            pending.append(sent.value)

    def settle(self, marker: ProducerIdentity, commit: bool, answer: Callable[[], None]) -> None:
        self.world.send(f"settle {_id(marker)} {commit}", self._settle, marker, commit, answer)

    def _settle(self, marker: ProducerIdentity, commit: bool, answer: Callable[[], None]) -> None:
        known = self.epochs.get(marker.producer_id, 0)
        if marker.producer_epoch < known:
            return
        if marker.producer_epoch > known:
            self.epochs[marker.producer_id] = marker.producer_epoch
            settled = self.pending.pop(marker.producer_id, [])
            if commit:
                self.visible += settled
        answer()


def _batch(sent: Sent) -> bytes:
    options = BatchOptions(
        producer_id=sent.identity.producer_id,
        producer_epoch=sent.identity.producer_epoch,
        base_sequence=sent.sequence,
        transactional=True,
    )
    return bytes(encode_lists(None, [sent.value.encode()], timestamps_ms=0, options=options))


def _text(value: Any) -> str:
    return type(value).__name__ if isinstance(value, SuiroError) else str(value)


def _id(identity: ProducerIdentity) -> str:
    return f"{identity.producer_id}.{identity.producer_epoch}"
