"""Whether money was moved as transactions promise: I1, T1, T2, T10. Knows nothing of the product.

A transfer takes an amount from one account and gives it to another; its parts lie in different
partitions, whose markers come one by one. So what a reader of committed records may see of a
transfer is: nothing, or all of it, or for a moment some of it, and then the rest. `Ledger` is one
reader's view: money seen and money owed by the other parts always add up to nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random


class Part(NamedTuple):
    """One record of a transfer: the amounts of all of its parts, and which of them this is."""

    writer: int
    number: int
    """Counted by the writer."""
    nth: int
    amounts: tuple[int, ...]

    @property
    def transfer(self) -> tuple[int, int]:
        return self.writer, self.number

    def encode(self) -> bytes:
        return json.dumps(self, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> Part:
        writer, number, nth, amounts = json.loads(value)
        return cls(writer, number, nth, tuple(amounts))


def transfer(rng: Random, writer: int, number: int, accounts: int) -> list[tuple[int, Part]]:
    """Money from one account to one or two others: (account, part)."""
    chosen = rng.sample(range(accounts), rng.choice((2, 2, 3)))
    gifts = [rng.randint(1, 100) for _ in chosen[1:]]
    amounts = (-sum(gifts), *gifts)
    return [(account, Part(writer, number, i, amounts)) for i, account in enumerate(chosen)]


@dataclass(slots=True)
class _Half:
    missing: set[int]
    since_s: float


@dataclass(slots=True)
class Ledger:
    """What one reader has seen, from the beginning of every partition on."""

    violations: list[str] = field(default_factory=list)
    whole: set[tuple[int, int]] = field(default_factory=set)
    half_s_max: float = 0.0
    """The longest time for which a transfer was seen in part."""
    _half: dict[tuple[int, int], _Half] = field(default_factory=dict)
    _newest: dict[tuple[int, int], int] = field(default_factory=dict)
    _ends: dict[int, int] = field(default_factory=dict)
    _seen: int = 0
    _owed: int = 0

    def see(self, partition: int, offset: int, value: bytes, now_s: float) -> None:
        part = Part.decode(value)
        where = f"{part.transfer} part {part.nth} at {partition}@{offset}"
        if offset <= self._ends.get(partition, -1):
            self._complain(f"offset went back: {where}")
        self._ends[partition] = offset
        newest = self._newest.get((partition, part.writer), -1)
        if part.number < newest:
            self._complain(f"order: {where} after number {newest} of the same writer")
        self._newest[partition, part.writer] = max(newest, part.number)
        self._count(part, where, now_s)

    def _count(self, part: Part, where: str, now_s: float) -> None:
        if part.transfer in self.whole:
            self._complain(f"duplicate: {where}")
            return
        half = self._half.get(part.transfer)
        if half is None:
            half = self._half[part.transfer] = _Half(set(range(len(part.amounts))), now_s)
            self._owed += sum(part.amounts)
        if part.nth not in half.missing:
            self._complain(f"duplicate: {where}")
            return
        half.missing.discard(part.nth)
        self._seen += part.amounts[part.nth]
        self._owed -= part.amounts[part.nth]
        if self._seen + self._owed != 0:
            self._complain(f"money was made or lost: {self._seen} + {self._owed} at {where}")
        if not half.missing:
            del self._half[part.transfer]
            self.whole.add(part.transfer)
            self.half_s_max = max(self.half_s_max, now_s - half.since_s)

    def close(self) -> None:
        """Everything has been read: nothing may be half."""
        for name, half in self._half.items():
            self._complain(f"half: of {name}, parts {sorted(half.missing)} never came")
        if not self._half and self._seen:
            self._complain(f"the sum changed by {self._seen}")

    def _complain(self, violation: str) -> None:
        self.violations.append(violation)


@dataclass(slots=True)
class Book:
    """What the writers were told of their transfers."""

    committed: set[tuple[int, int]] = field(default_factory=set)
    aborted: set[tuple[int, int]] = field(default_factory=set)
    unknown: set[tuple[int, int]] = field(default_factory=set)
    """Begun, and no answer that says how it ended: either is right."""

    def check(self, ledgers: Sequence[Ledger]) -> list[str]:
        """All that is wrong, once every ledger has been closed."""
        found = [line for ledger in ledgers for line in ledger.violations]
        for number, ledger in enumerate(ledgers):
            found += _named(f"reader {number}: lost", self.committed - ledger.whole)
            found += _named(f"reader {number}: aborted, and seen", self.aborted & ledger.whole)
            strange = ledger.whole - self.committed - self.aborted - self.unknown
            found += _named(f"reader {number}: nobody wrote", strange)
            found += _named(f"reader {number} differs from 0", ledger.whole ^ ledgers[0].whole)
        return found


def _named(what: str, transfers: Iterable[tuple[int, int]]) -> list[str]:
    return [f"{what}: {name}" for name in sorted(transfers)]
