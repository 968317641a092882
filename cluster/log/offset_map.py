"""Pure: the newest offset of each key, in bounded memory: `OffsetMap`, and `hash_keys`.

A key is known by 128 bits of hash, so a map has 24 bytes per key whatever the keys are. Always:
what `newest` answers is the offset of a record with that very key (but for a collision of all 128
bits, seeded anew in each pass), and never above that of its newest one. An older answer, which a
collision of the first 64 bits can cause, keeps a record too many and loses none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOT_THERE: Final = -1
BYTES_PER_KEY: Final = 24
SCRATCH: Final = 3
"""While the map is put in order, so many copies of it exist."""

_WORD: Final = 8
_FIRST: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_SECOND: Final = np.uint64(0xC2B2_AE3D_27D4_EB4F)
_MIX: Final = np.uint64(0xFF51_AFD7_ED55_8CCD)
_HALF: Final = np.uint64(32)


class KeyHashes(NamedTuple):
    """128 bits of each key."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]


def hash_keys(data: NDArray[np.uint8], lengths: NDArray[np.int64], seed: int) -> KeyHashes:
    """The hash of each string; they lie one after the other in `data`."""
    padded = np.concatenate((data, np.zeros(_WORD, np.uint8)))
    # Every byte begins a little-endian word, whatever its alignment
    words = np.ndarray((len(padded) - _WORD + 1,), "<u8", padded, strides=(1,))
    at = np.cumsum(lengths) - lengths
    start = lengths.astype(np.uint64) * _FIRST + np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)
    first, second = _mixed(start), _mixed(start ^ _SECOND)
    for step in range(int(lengths.max(initial=0) + _WORD - 1) // _WORD):
        left = lengths - step * _WORD
        active = np.flatnonzero(left > 0)
        word = words[at[active] + step * _WORD] & _MASKS[np.minimum(left[active], _WORD)]
        first[active] = _mixed((first[active] ^ word) * _FIRST)
        second[active] = _mixed((second[active] + word) * _SECOND)
    return KeyHashes(first, second)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    once = (bits ^ (bits >> _HALF)) * _MIX
    twice: NDArray[np.uint64] = once ^ (once >> _HALF)
    return twice


_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)


class OffsetMap:
    """Filled in the order of offsets, asked when it is full or all is in it."""

    def __init__(self, bytes_max: int) -> None:
        self._keys_max = max(1, bytes_max // (BYTES_PER_KEY * SCRATCH))
        self._hashes = KeyHashes(np.empty(0, np.uint64), np.empty(0, np.uint64))
        self._offsets = np.empty(0, np.int64)
        self._pending: list[tuple[KeyHashes, NDArray[np.int64]]] = []
        self._pending_count = 0

    def __len__(self) -> int:
        self._merge()
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether it has as many keys as it may have; one more call of `add` is still taken."""
        if len(self._offsets) + self._pending_count >= self._keys_max:
            self._merge()
        return len(self._offsets) >= self._keys_max

    def add(self, hashes: KeyHashes, offsets: NDArray[np.int64]) -> None:
        """More records, with higher offsets than all before."""
        self._pending.append((hashes, offsets))
        self._pending_count += len(offsets)
        if self._pending_count > max(1024, self._keys_max // 4):
            self._merge()

    def newest(self, hashes: KeyHashes) -> NDArray[np.int64]:
        """For each key the offset of its newest record, or NOT_THERE."""
        self._merge()
        if not len(self._offsets):
            return np.full(len(hashes.first), NOT_THERE, np.int64)
        at = np.searchsorted(self._hashes.first, hashes.first)
        at[at == len(self._offsets)] = 0
        is_there = (self._hashes.first[at] == hashes.first) & (
            self._hashes.second[at] == hashes.second
        )
        return np.where(is_there, self._offsets[at], NOT_THERE)

    def _merge(self) -> None:
        """Sort what is pending into the rest: stable, so that of equal keys the newest is last."""
        if not self._pending:
            return
        parts = [(self._hashes, self._offsets), *self._pending]
        first = np.concatenate([hashes.first for hashes, _ in parts])
        order = np.argsort(first, kind="stable")
        first = first[order]
        second = np.concatenate([hashes.second for hashes, _ in parts])[order]
        offsets = np.concatenate([found for _, found in parts])[order]
        is_newest = np.ones(len(first), np.bool_)
        is_newest[:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        self._hashes = KeyHashes(first[is_newest], second[is_newest])
        self._offsets = offsets[is_newest]
        self._pending.clear()
        self._pending_count = 0
