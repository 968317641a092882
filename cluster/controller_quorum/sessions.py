"""The life lines of the nodes, as the active controller sees them: who is due to be fenced.

A node that is silent has the session timeout: it hangs, or the network swallows everything. One
whose stream broke is out at once if its process is known to be gone: its machine answers that
nobody listens there. That is evidence; a broken stream alone is none, and a node that lives may act
for its whole lease. A controller that has just become active has heard nobody yet, and gives
everyone a fresh session. Facts about an incarnation that is no longer the current one are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.ids import BrokerEpoch, NodeId

SESSION_TIMEOUT_MS: Final = 3_000
_NO_STREAM: Final = -1


@dataclass(slots=True)
class _Session:
    broker_epoch: BrokerEpoch
    heard_ms: float
    stream: int = _NO_STREAM
    is_broken: bool = False
    is_dead: bool = False


class Sessions:
    """One session per node; a stream is any number that its opener does not use twice."""

    def __init__(self, timeout_ms: float = SESSION_TIMEOUT_MS) -> None:
        self.timeout_ms = timeout_ms
        self._by_node: dict[NodeId, _Session] = {}

    def restart(self, nodes: Iterable[tuple[NodeId, BrokerEpoch]], now_ms: float) -> None:
        """This controller has become active: everyone who is not fenced gets a fresh session."""
        self._by_node = {node_id: _Session(epoch, now_ms) for node_id, epoch in nodes}

    def on_registered(self, node_id: NodeId, broker_epoch: BrokerEpoch, now_ms: float) -> None:
        self._by_node[node_id] = _Session(broker_epoch, now_ms)

    def on_opened(
        self, node_id: NodeId, broker_epoch: BrokerEpoch, stream: int, now_ms: float
    ) -> None:
        """A session stream was opened; it takes the place of an earlier one."""
        session = self._by_node.get(node_id)
        if session is None or session.broker_epoch < broker_epoch:
            session = self._by_node[node_id] = _Session(broker_epoch, now_ms)
        if session.broker_epoch == broker_epoch:
            session.stream = stream
            session.is_broken = session.is_dead = False
            session.heard_ms = now_ms

    def on_heard(self, node_id: NodeId, broker_epoch: BrokerEpoch, now_ms: float) -> None:
        session = self._by_node.get(node_id)
        if session is not None and session.broker_epoch == broker_epoch:
            session.heard_ms = now_ms

    def on_broken(self, node_id: NodeId, broker_epoch: BrokerEpoch, stream: int) -> None:
        """The stream broke; nothing follows from it if a newer one is open."""
        session = self._by_node.get(node_id)
        if session is not None and (session.broker_epoch, session.stream) == (broker_epoch, stream):
            session.is_broken = True

    def on_dead(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> None:
        """Nobody listens where the node was, and its stream is still broken."""
        session = self._by_node.get(node_id)
        if session is not None and session.broker_epoch == broker_epoch and session.is_broken:
            session.is_dead = True

    def broken(self) -> list[tuple[NodeId, BrokerEpoch]]:
        """Those whose stream broke: somebody should look whether they are there."""
        return [
            (node_id, self._by_node[node_id].broker_epoch)
            for node_id in sorted(self._by_node)
            if self._by_node[node_id].is_broken and not self._by_node[node_id].is_dead
        ]

    def forget(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> None:
        """It was fenced or has left: it has no session until it opens one."""
        session = self._by_node.get(node_id)
        if session is not None and session.broker_epoch == broker_epoch:
            del self._by_node[node_id]

    def is_alive(self, node_id: NodeId, now_ms: float) -> bool:
        """Whether another process may not take this node's id: it is there, as far as we know."""
        session = self._by_node.get(node_id)
        return session is not None and not session.is_broken and now_ms < self._ends_ms(session)

    def due(self, now_ms: float) -> list[tuple[NodeId, BrokerEpoch]]:
        """Whose session is over, by id; they stay due until `forget`."""
        return [
            (node_id, self._by_node[node_id].broker_epoch)
            for node_id in sorted(self._by_node)
            if now_ms >= self._ends_ms(self._by_node[node_id])
        ]

    def next_due_ms(self) -> float | None:
        """When to ask `due` again, if nothing is heard before."""
        return min(map(self._ends_ms, self._by_node.values()), default=None)

    def _ends_ms(self, session: _Session) -> float:
        return session.heard_ms if session.is_dead else session.heard_ms + self.timeout_ms
