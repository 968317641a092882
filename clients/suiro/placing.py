"""A run of records is divided among the partitions of its topic. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, Self

import numpy as np

from suiro.accumulator import Run
from suiro.partitioner import KeyColumn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from suiro.handle import Outcomes
    from suiro.partitioner import Partitioner


UNSAID: Final = -1
"""In the column of wanted partitions: the sender leaves it to the partitioner."""


class StagedRun(Run, KeyColumn, Protocol):
    """Records of one topic in the order in which they were sent, in whatever form."""

    outcomes: Outcomes
    partitions: NDArray[np.int64] | None

    def pick(self, places: NDArray[np.int64]) -> Self:
        """Some of the records, by their positions here, which rise."""

    def split(self, size_max: int) -> Sequence[Self]:
        """Runs of at most `size_max` bytes, or of one record where that is larger."""


def place(run: StagedRun, partitioner: Partitioner, count: int) -> Iterator[tuple[int, StagedRun]]:
    """Each partition's part of the run, also of partitions that are wanted and not there."""
    wanted = run.partitions
    if wanted is None:
        chosen = partitioner.choose(run, run.size, count)
    else:
        unsaid = wanted == UNSAID
        chosen = wanted
        if unsaid.any():
            chosen = np.where(unsaid, partitioner.choose(run, run.size, count), wanted)
    yield from _divide(run, chosen)


def _divide(run: StagedRun, chosen: int | NDArray[np.int64]) -> Iterator[tuple[int, StagedRun]]:
    if isinstance(chosen, int):
        yield chosen, run
        return
    first = int(chosen[0])
    if (chosen == first).all():
        yield first, run
        return
    order = np.argsort(chosen, kind="stable")
    numbers, starts = np.unique(chosen[order], return_index=True)
    for number, group in zip(numbers, np.split(order, starts[1:]), strict=True):
        yield int(number), run.pick(group)
