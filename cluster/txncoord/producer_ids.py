"""Producer ids out of a block that the controller allocated to this node: `ProducerIds`.

A block is a fact that arrives from outside and is in no log: what a coordinator had left when it
died is never used, by anyone. So an id that was used once is not given out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro.model.errors import Unavailable
from suiro.model.ids import ProducerId

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProducerIds:
    """The ids that this node may give out; `peek` decides, `use` takes."""

    __slots__ = ("_blocks", "_low")

    def __init__(self, low: int = 1) -> None:
        self._blocks: list[range] = []
        self._low = low

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    @property
    def wants_block(self) -> bool:
        """Whether another block should be asked for."""
        return len(self) < self._low

    def add(self, start: ProducerId, end: ProducerId) -> None:
        """The controller has allocated [start, end)."""
        assert start < end
        self._blocks.append(range(start, end))

    def peek(self) -> ProducerId:
        """The id that will be used next. Raises Unavailable until a block has come."""
        if not self._blocks:
            raise Unavailable("the producer ids of this coordinator have run out for the moment")
        return ProducerId(self._blocks[0][0])

    def take(self) -> ProducerId:
        """The next id, at once: for whoever keeps no log of it."""
        producer_id = self.peek()
        self.use([producer_id])
        return producer_id

    def use(self, producer_ids: Sequence[ProducerId]) -> None:
        """These are taken; ids of other blocks, as a replayed log has them, change nothing."""
        for producer_id in producer_ids:
            if self._blocks and producer_id in self._blocks[0]:
                rest = range(producer_id + 1, self._blocks[0].stop)
                self._blocks[:1] = [rest] if rest else []
