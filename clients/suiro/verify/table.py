"""Whether a compacted topic kept the newest acknowledged value of every key (P16). Knows nothing of
the product.

A key has one writer, which numbers its versions and sends one at a time. A version whose outcome is
unknown may be there or not, but never behind a later one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Key:
    sent: int = 0
    acknowledged: int = 0
    deletes: set[int] = field(default_factory=set)
    """The versions that are tombstones."""


@dataclass(slots=True)
class Table:
    """What was written, and what was found at the end."""

    violations: list[str] = field(default_factory=list)
    acknowledged: int = 0
    _keys: dict[bytes, _Key] = field(default_factory=lambda: defaultdict(_Key))
    _newest: dict[bytes, int | None] = field(default_factory=dict)
    """By key the newest version that was read; None for a tombstone, which has no number."""
    _end: int = -1

    def next(self, key: bytes, *, deletes: bool) -> int:
        """A version that is about to be sent."""
        state = self._keys[key]
        state.sent += 1
        if deletes:
            state.deletes.add(state.sent)
        return state.sent

    def acknowledge(self, key: bytes, version: int) -> None:
        self._keys[key].acknowledged = version
        self.acknowledged += 1

    def see(self, offset: int, key: bytes, value: bytes | None) -> None:
        """One record of the last read, in the order of offsets."""
        if offset <= self._end:
            self.violations.append(f"P8 offset {offset} after {self._end}")
        self._end = offset
        state = self._keys.get(key)
        if state is None:
            self.violations.append(f"P6 nobody wrote key {key!r}")
            return
        version = None if value is None else int(value.partition(b":")[0])
        before = self._newest.get(key)
        if version is not None and (version > state.sent or version in state.deletes):
            self.violations.append(f"P6 {key!r}: version {version} was never sent")
        if version is not None and before is not None and version <= before:
            self.violations.append(f"P4 {key!r}: version {version} after {before}")
        self._newest[key] = version

    def check(self) -> list[str]:
        """All that is wrong."""
        return [*self.violations, *filter(None, map(self._lost, sorted(self._keys)))]

    def _lost(self, key: bytes) -> str:
        state = self._keys[key]
        wanted = set(range(max(state.acknowledged, 1), state.sent + 1))
        if not state.acknowledged:
            return ""
        found = self._newest.get(key)
        if found is None:
            is_deleted = bool(wanted & state.deletes)
            return "" if is_deleted else f"P16 {key!r}: {state.acknowledged} is lost"
        if found not in wanted:
            return f"P16 {key!r}: {found} is there, {state.acknowledged} was acknowledged"
        return ""
