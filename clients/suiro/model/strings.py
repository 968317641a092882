"""A column of byte strings, some null, in its two shapes: being written and having been read.

`PackedStrings` is what a batch stores: lengths in the narrowest width, a validity bitmap only where
there are both nulls and strings, and the bytes. Its makers all give the same shape for the same
strings, so a batch's bytes do not depend on where its records came from. `BinaryColumn` is a view
of a decoded section; it copies nothing until asked for Python objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from suiro.model.layout import LENGTH_DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from suiro.model.batch import Buffer

SMALL: Final = 32
"""Up to so many numbers Python's own loops beat the fixed cost of a numpy call (about 2 µs)."""


class PackedStrings(NamedTuple):
    """A column as a batch stores it; `pieces` in order are the string data."""

    width: int
    lengths: bytes
    validity: bytes
    pieces: Sequence[Buffer]


ALL_NULL: Final = PackedStrings(0, b"", b"", ())


def pack_strings(items: Sequence[bytes | None]) -> PackedStrings:
    """Pack Python's byte strings."""
    try:
        lengths = list(map(len, items))  # type: ignore[arg-type]
    except TypeError:
        return _pack_with_nulls(items)
    width, column = pack_lengths(lengths)
    return PackedStrings(width, column, b"", items)  # type: ignore[arg-type]


def pack_arrays(
    lengths: NDArray[np.integer], valid: NDArray[np.bool_] | None, data: Buffer
) -> PackedStrings:
    """Pack a column given as arrays; a null must have length 0."""
    if valid is None or valid.all():
        width, column = narrow_lengths(lengths)
        return PackedStrings(width, column, b"", (data,))
    if not valid.any():
        return ALL_NULL
    width, column = narrow_lengths(lengths)
    return PackedStrings(width, column, pack_bits(valid), (data,))


def pack_lengths(lengths: list[int]) -> tuple[int, bytes]:
    """The width code and the column. Most lengths fit a byte, and finding out costs nothing."""
    try:
        return 1, bytes(lengths)
    except ValueError:
        return narrow_lengths(np.array(lengths, np.int64))


def narrow_lengths(lengths: NDArray[np.integer]) -> tuple[int, bytes]:
    """The same for an array."""
    longest = int(lengths.max(initial=0))
    width = 1 if longest < 1 << 8 else 2 if longest < 1 << 16 else 3
    return width, lengths.astype(LENGTH_DTYPES[width]).tobytes()


def pack_bits(valid: NDArray[np.bool_]) -> bytes:
    """A validity bitmap as Arrow has it; the bits after the last record are zero."""
    return np.packbits(valid, bitorder="little").tobytes()


def unpack_bits(validity: NDArray[np.uint8], count: int) -> NDArray[np.bool_]:
    """One bool per record."""
    return np.unpackbits(validity, count=count, bitorder="little").view(np.bool_)


def _pack_with_nulls(items: Sequence[bytes | None]) -> PackedStrings:
    valid = np.array([item is not None for item in items])
    if not valid.any():
        return ALL_NULL
    width, column = pack_lengths([0 if item is None else len(item) for item in items])
    # An empty string has no data either, so leaving out all that is false leaves the data right
    return PackedStrings(width, column, pack_bits(valid), list(filter(None, items)))


@dataclass(slots=True, eq=False)
class BinaryColumn:
    """A decoded column: the sum of `lengths` is the size of `data`, a null has length 0, and
    `validity` is absent where nothing is null.
    """

    lengths: NDArray[np.integer]
    data: memoryview
    validity: NDArray[np.uint8] | None

    def __len__(self) -> int:
        return len(self.lengths)

    def arrow_offsets(self) -> NDArray[np.int32]:
        """Where each string starts, and where the last one ends. 32 bits hold any decoded size."""
        offsets = np.empty(len(self.lengths) + 1, np.int32)
        offsets[0] = 0
        np.cumsum(self.lengths, out=offsets[1:])
        return offsets

    def valid(self) -> NDArray[np.bool_] | None:
        """One bool per string; None where nothing is null."""
        return None if self.validity is None else unpack_bits(self.validity, len(self.lengths))

    def to_list(self) -> list[bytes | None]:
        """The strings as Python objects."""
        items: list[bytes | None] = self._slices()
        valid = self.valid()
        if valid is not None:
            for index in np.flatnonzero(~valid).tolist():
                items[index] = None
        return items

    def select(self, keep: NDArray[np.bool_]) -> PackedStrings:
        """The strings where `keep` is true, packed again."""
        kept = np.frombuffer(self.data, np.uint8)[np.repeat(keep, self.lengths)]
        valid = self.valid()
        return pack_arrays(
            self.lengths[keep], None if valid is None else valid[keep], kept.tobytes()
        )

    def _slices(self) -> list[bytes | None]:
        count = len(self.lengths)
        if count > SMALL and self.data.nbytes == count * int(self.lengths[0]):
            length = int(self.lengths[0])
            if length and (self.lengths == length).all():  # numpy cuts equal pieces twice as fast
                pieces: list[bytes | None] = np.frombuffer(self.data, f"V{length}").tolist()
                return pieces
        # The fastest cut of unequal pieces: no slice object, no Python frame per string
        return list(map(BytesIO(self.data).read, self.lengths.tolist()))
