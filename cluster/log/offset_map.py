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
SCRATCH: Final = 2
"""While the map is put in order, so many copies of it exist at most, all in all."""
PENDING_SHARE: Final = 8
"""Of the keys that fit, so many may wait to be put in order."""

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
    """Filled in the order of offsets, asked when it is full or all is in it. Three columns in the
    order of the first half of the hash; what is new is put in order by itself, and then woven in
    one column after the other, so that no more than one of them exists twice.
    """

    def __init__(self, bytes_max: int) -> None:
        self._keys_max = max(1, bytes_max // (BYTES_PER_KEY * SCRATCH))
        self._first = np.empty(0, np.uint64)
        self._second = np.empty(0, np.uint64)
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
        if self._pending_count > max(1024, self._keys_max // PENDING_SHARE):
            self._merge()

    def newest(self, hashes: KeyHashes) -> NDArray[np.int64]:
        """For each key the offset of its newest record, or NOT_THERE."""
        self._merge()
        at = self._find(hashes)
        found = np.full(len(at), NOT_THERE, np.int64)
        found[at >= 0] = self._offsets[at[at >= 0]]
        return found

    def _find(self, hashes: KeyHashes) -> NDArray[np.int64]:
        """Where each key is, or -1."""
        if not len(self._first):
            return np.full(len(hashes.first), -1, np.int64)
        at = np.searchsorted(self._first, hashes.first)
        at[at == len(self._first)] = 0
        is_there = (self._first[at] == hashes.first) & (self._second[at] == hashes.second)
        at[~is_there] = -1
        return at

    def _merge(self) -> None:
        if not self._pending:
            return
        hashes, offsets = self._take_pending()
        at = self._find(hashes)
        is_known = at >= 0
        self._offsets[at[is_known]] = offsets[is_known]
        fresh = KeyHashes(hashes.first[~is_known], hashes.second[~is_known])
        offsets = offsets[~is_known]
        del hashes, at, is_known
        if not len(offsets):
            return
        where = np.searchsorted(self._first, fresh.first)
        self._first = np.insert(self._first, where, fresh.first)
        self._second = np.insert(self._second, where, fresh.second)
        self._offsets = np.insert(self._offsets, where, offsets)

    def _take_pending(self) -> tuple[KeyHashes, NDArray[np.int64]]:
        """The newest of each key that is not in the columns yet, in their order."""
        pending, self._pending, self._pending_count = self._pending, [], 0
        first = np.concatenate([hashes.first for hashes, _ in pending])
        second = np.concatenate([hashes.second for hashes, _ in pending])
        offsets = np.concatenate([found for _, found in pending])
        pending.clear()
        order = np.argsort(first, kind="stable")  # so that of equal keys the newest is last
        first, second, offsets = first[order], second[order], offsets[order]
        is_newest = np.ones(len(first), np.bool_)
        is_newest[:-1] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        return KeyHashes(first[is_newest], second[is_newest]), offsets[is_newest]
