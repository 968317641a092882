"""What must hold of transactions, checked from outside: by values, answers and committed records.

Shares no rule with the product: a value says which transaction and partition it belongs to, and the
checker keeps what producers were told and what readers were given.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cluster.txncoord.txn import DECIDED, NOBODY, Txn, TxnState

if TYPE_CHECKING:
    from suiro.model.ids import ProducerIdentity, TopicPartition

    from tests.sim.txn_places import Group, Partition


class Violation(AssertionError):
    """A promise is broken."""


@dataclass(slots=True)
class Known:
    """One transaction, or one writer of a shared one, as its producer knows it."""

    acked: list[str] = field(default_factory=list)
    commit_asked: bool = False
    told: bool | None = None
    """Committed, aborted, or nobody was told."""
    has_offset: bool = False


class TxnChecker:
    """All that was said and seen in one run."""

    def __init__(self, epoch_max: int) -> None:
        self.epoch_max = epoch_max
        self.known: dict[str, Known] = {}
        self.seen_batches = 0
        self.reads: dict[TopicPartition, list[str]] = {}
        self.counts: Counter[str] = Counter()
        self.batches: dict[tuple[str, int], dict[str, list[str]]] = {}
        """Of shared transactions: (query, sequence) -> attempt -> the writers that count."""
        self.told_batches: dict[tuple[str, int], str] = {}
        self._decisions: dict[ProducerIdentity, bool] = {}
        self._owners: dict[int, str] = {}
        self._last: dict[str, Txn] = {}
        self._held: set[ProducerIdentity] = set()
        self._given: dict[ProducerIdentity, str] = {}

    # -- producers --------------------------------------------------------------------------------

    def on_begin(self, uid: str) -> None:
        self.known[uid] = Known()

    def on_told(self, uid: str, *, commit: bool) -> None:
        self.known[uid].told = commit
        self.counts["commits told" if commit else "aborts told"] += 1

    def on_given(self, identity: ProducerIdentity, who: str) -> None:
        """A producer has learnt what it goes on with."""
        if identity not in self._held:
            raise Violation(f"I1: {who} was given {identity}, which is not in the log")
        if self._given.setdefault(identity, who) != who:
            raise Violation(f"I1: {identity} was given to {self._given[identity]} and to {who}")

    def on_duplicate(
        self, name: TopicPartition, value: str, values: list[str], offset: int
    ) -> None:
        if offset >= len(values) or values[offset] != value:
            raise Violation(f"I2: {value} is said to be at {offset} of {name}, and is not")

    # -- the coordinator's log --------------------------------------------------------------------

    def on_decided(self, txn: Txn) -> None:
        """A record is committed: decisions never change, identities only grow."""
        former = self._last.get(txn.transactional_id)
        self._last[txn.transactional_id] = txn
        self._held.add(txn.holder)
        markers = [writer.marker for writer in txn.writers]
        if any(marker.producer_epoch > self.epoch_max for marker in (*markers, txn.identity)):
            raise Violation(f"I1: {txn.transactional_id} has left the space of epochs")
        for identity in (txn.identity, *(writer.identity for writer in txn.writers)):
            if identity != NOBODY:
                owner = self._owners.setdefault(identity.producer_id, txn.transactional_id)
                if owner != txn.transactional_id:
                    raise Violation(f"I1: {identity} belongs to {owner}")
        if txn.state in DECIDED:
            for writer in txn.writers:
                decided = self._decisions.setdefault(writer.marker, writer.commits)
                if decided != writer.commits:
                    raise Violation(f"T4: {writer.marker} was decided otherwise")
        if former is not None:
            self._check_step(former, txn)
        if txn.ended is not None and (former is None or former.ended != txn.ended):
            self.counts[f"ended by {txn.ended.by.name.lower()}"] += 1

    def _check_step(self, old: Txn, new: Txn) -> None:
        if _order(new.identity) < _order(old.identity):
            raise Violation(f"I1: {new.transactional_id} went back to {new.identity}")
        if old.state is TxnState.PREPARE_COMMIT and new.state in {
            TxnState.PREPARE_ABORT, TxnState.ONGOING,
        }:  # fmt: skip
            raise Violation(f"T4: {new.transactional_id} from commit to {new.state}")
        if new.state is TxnState.EMPTY and new.identity == old.identity:
            raise Violation(f"I1: {new.transactional_id} gives {new.identity} out twice")
        if new.came_from not in {NOBODY, old.came_from} and new.client != old.client:
            raise Violation(f"I1: {new.client} goes on although {old.client} has taken the id")
        if new.identity.producer_id != old.identity.producer_id:
            self.counts["producer ids rolled"] += 1
        is_new_end = new.ended is not None and new.ended != old.ended
        if is_new_end and not new.is_shared and new.identity == old.identity:
            raise Violation(f"T5: {new.transactional_id} ended and kept {new.identity}")
        if new.committed_sequence < old.committed_sequence:
            raise Violation(f"C4: {new.transactional_id} forgot {old.committed_sequence}")

    # -- readers ----------------------------------------------------------------------------------

    def on_stable(self, name: TopicPartition, before: int, stable: int) -> None:
        if stable < before:
            raise Violation(f"P10: the last stable offset of {name} goes from {before} to {stable}")

    def on_stable_range(self, partition: Partition, start: int, end: int) -> None:
        """Whatever is stable is decided by a marker that is itself committed (T3)."""
        open_ones: dict[int, int] = {}
        for offset in range(partition.high_watermark):
            producer_id = partition.producer_ids[offset]
            if partition.values[offset].partition(" ")[0] in {"commit", "abort"}:
                open_ones.pop(producer_id, None)
            else:
                open_ones.setdefault(producer_id, offset)
        first = min(open_ones.values(), default=end)
        if start <= first < end:
            raise Violation(f"T3: {partition.name} is stable to {end}, undecided from {first}")

    def on_read(self, name: TopicPartition, values: list[str]) -> None:
        self.counts["values read"] += len(values)
        self.reads.setdefault(name, []).extend(values)

    # -- the end ----------------------------------------------------------------------------------

    def check_end(self, partitions: list[Partition], group: Group) -> None:
        """Everything has come to rest: what is visible now is visible for good."""
        seen: Counter[str] = Counter(group.visible)
        for partition in partitions:
            end = len(partition.batches)
            final = partition.visible(0, end)
            seen.update(final)
            read = self.reads.get(partition.name, [])
            if read != final[: len(read)]:
                raise Violation(f"T1, T3: readers of {partition.name} saw {read}, it is {final}")
            self._check_markers(partition)
        twice = sorted(value for value, count in seen.items() if count > 1)
        if twice:
            raise Violation(f"P3: {twice} twice")
        for uid in sorted(self.known):
            self._check_outcome(uid, self.known[uid], {v for v in seen if _uid(v) == uid})
        for batch in sorted(self.batches):
            self._check_shared(batch, seen)

    def _check_markers(self, partition: Partition) -> None:
        kinds: dict[str, str] = {}
        for value in partition.values:
            word, _, identity = value.partition(" ")
            if word in {"commit", "abort"} and kinds.setdefault(identity, word) != word:
                raise Violation(f"T4: {identity} has two kinds of markers in {partition.name}")
        twice = [v for v, n in Counter(partition.values).items() if n > 1]
        if partition.forgot:  # a marker that comes after its producer is forgotten ends nothing
            twice = [v for v in twice if v.partition(" ")[0] not in {"commit", "abort"}]
        if twice:
            raise Violation(f"T4, P3: {twice} twice in {partition.name}")

    def _check_outcome(self, uid: str, known: Known, visible: set[str]) -> None:
        acked = set(known.acked)
        if known.told is True and not acked <= visible:
            raise Violation(f"T5: {uid} was told committed, {sorted(acked - visible)} is not there")
        if visible and (known.told is False or not known.commit_asked):
            raise Violation(f"T1: {uid} is aborted and shows {sorted(visible)}")
        if visible and not acked <= visible:
            raise Violation(f"T2: {uid} shows {sorted(visible)} of {sorted(acked)}")

    def _check_shared(self, batch: tuple[str, int], seen: Counter[str]) -> None:
        prefix = f"{batch[0]}:{batch[1]}:"
        visible = {value for value in seen if value.startswith(prefix)}
        whole = [set(values) for values in self.batches[batch].values()]
        if visible and visible not in whole:
            raise Violation(f"C4: {batch} shows {sorted(visible)}, which no commit named")
        attempt = self.told_batches.get(batch)
        if attempt is not None and attempt in self.batches[batch]:
            counted = set(self.batches[batch][attempt])
            if counted != visible:
                raise Violation(f"C4: {batch} was committed by {attempt}, {sorted(visible)} shows")


def _uid(value: str) -> str:
    return value.partition("@")[0]


def _order(identity: ProducerIdentity) -> tuple[int, int]:
    return identity.producer_id, identity.producer_epoch
