"""What a leader knows of its followers, and what follows from it: the high watermark.

Pure: facts and `now_ms` in, effects out. A replica *holds* a record when it would survive what the
topic's flush policy promises: once appended, or once synced where the policy is `ack`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from suiro.model.errors import NotEnoughReplicas

if TYPE_CHECKING:
    from suiro.model.ids import NodeId, Offset, TopicPartition
    from suiro.model.records import PartitionState


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Everything below this offset is held by every in-sync replica."""

    offset: Offset


Effect = HighWatermark


class Leader:
    """One partition in one leader epoch."""

    def __init__(
        self,
        partition: TopicPartition,
        node: NodeId,
        state: PartitionState,
        *,
        log_end: Offset,
        high_watermark: Offset,
    ) -> None:
        self.partition = partition
        self.state = state
        self.high_watermark = high_watermark
        self._node = node
        self._held: dict[NodeId, Offset] = {node: log_end}

    def on_held(self, end: Offset) -> list[Effect]:
        """This broker's own log is held up to `end`."""
        self._held[self._node] = end
        return self._advance()

    def on_state(self, state: PartitionState) -> list[Effect]:
        """The controller has changed the partition, in the same leader epoch."""
        self.state = state
        return self._advance()

    def check_acks_all(self, min_isr: int) -> None:
        """Refuse acks=all while too few replicas are in sync."""
        if len(self.state.isr) < min_isr:
            isr = ", ".join(map(str, self.state.isr))
            raise NotEnoughReplicas(
                f"{self.partition}: in sync are [{isr}], min.insync.replicas is {min_isr}"
            )

    def _advance(self) -> list[Effect]:
        held = min(self._held.get(node, self.high_watermark) for node in self.state.isr)
        if held <= self.high_watermark:
            return []
        self.high_watermark = held
        return [HighWatermark(held)]
