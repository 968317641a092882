"""A cursor over one decompressed section: arrays, bitmaps and bytes, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from suiro.model.errors import CorruptBatch
from suiro.model.layout import bitmap_bytes
from suiro.model.strings import SMALL, unpack_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Section:
    """Hands out views from the front; a read past the end is a CorruptBatch."""

    __slots__ = ("_position", "_view")

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._view) - self._position

    def take(self, size: int) -> memoryview:
        """The next `size` bytes."""
        start = self._advance(size)
        return self._view[start : start + size]

    def numbers(self, dtype: np.dtype[np.integer] | None, count: int) -> NDArray[np.integer] | None:
        """The next `count` numbers; None where the column is not stored."""
        if dtype is None:
            return None
        start = self._advance(dtype.itemsize * count)
        return np.frombuffer(self._view, dtype, count, start)

    def bitmap(self, stored: int, count: int) -> NDArray[np.uint8] | None:
        """A validity bitmap of `count` bits, whose last byte holds nothing beyond them; None where
        it is not stored.
        """
        if not stored:
            return None
        size = bitmap_bytes(count)
        bits = np.frombuffer(self._view, np.uint8, size, self._advance(size))
        if count & 7 and bits[-1] >> (count & 7):
            raise CorruptBatch("a validity bitmap has bits after its last record")
        return bits

    def _advance(self, size: int) -> int:
        start = self._position
        if size > len(self._view) - start:
            raise CorruptBatch(f"{size} bytes wanted, {len(self._view) - start} are left")
        self._position = start + size
        return start


def check_strings(lengths: NDArray[np.integer] | None, validity: NDArray[np.uint8] | None) -> None:
    """A null has no bytes."""
    if (
        lengths is not None
        and validity is not None
        and lengths[~unpack_bits(validity, len(lengths))].any()
    ):
        raise CorruptBatch("a null has a length")


def total_bytes(lengths: NDArray[np.integer] | None) -> int:
    """The sum of a column of lengths, whatever its width."""
    if lengths is None:
        return 0
    if len(lengths) <= SMALL:
        return sum(lengths.tolist())
    return int(lengths.sum(dtype=np.int64))
