"""Kafka's murmur2 over a whole column of keys at once. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

KAFKA_SEED: Final = 0x9747B28C
_M: Final = np.uint32(0x5BD1E995)
_WORD: Final = 4


def murmur2(
    data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """The hash of each string: `lengths[i]` bytes of `data` from `starts[i]` on."""
    padded = np.concatenate((data, np.zeros(_WORD, np.uint8)))
    # Every byte begins a little-endian word, whatever its alignment
    words = np.ndarray((len(padded) - _WORD + 1,), "<u4", padded, strides=(1,))
    hashes = np.uint32(KAFKA_SEED) ^ lengths.astype(np.uint32)
    whole = lengths // _WORD
    active, at = None, starts
    for step in range(int(whole.max(initial=0))):
        if active is None and (whole > step).all():
            hashes = _mix(hashes, words[at + step * _WORD])
            continue
        active = np.flatnonzero(whole > step)
        hashes[active] = _mix(hashes[active], words[at[active] + step * _WORD])
    return _finish(_tail(hashes, words, starts + whole * _WORD, lengths % _WORD))


def _mix(hashes: NDArray[np.uint32], word: NDArray[np.uint32]) -> NDArray[np.uint32]:
    k = word.astype(np.uint32) * _M
    k ^= k >> np.uint32(24)
    k *= _M
    mixed: NDArray[np.uint32] = (hashes * _M) ^ k
    return mixed


def _tail(
    hashes: NDArray[np.uint32],
    words: NDArray[np.uint32],
    at: NDArray[np.int64],
    left: NDArray[np.int64],
) -> NDArray[np.uint32]:
    """The last one to three bytes of those that have them."""
    some = np.flatnonzero(left)
    if len(some):
        masks = np.array([0, 0xFF, 0xFFFF, 0xFF_FFFF], np.uint32)
        rest = words[at[some]] & masks[left[some]]
        hashes[some] = (hashes[some] ^ rest) * _M
    return hashes


def _finish(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    hashes = (hashes ^ (hashes >> np.uint32(13))) * _M
    finished: NDArray[np.uint32] = hashes ^ (hashes >> np.uint32(15))
    return finished
