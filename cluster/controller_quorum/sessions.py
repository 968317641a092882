"""The life lines of the nodes, as the active controller sees them: who is due to be fenced.

A node whose session stream broke has a short grace to open another: a dead process is out in well
under a second. One whose stream is open but silent has the session timeout: it hangs, or the
network swallows everything. A controller that has just become active has heard nobody yet, and
gives everyone a fresh session. Facts about an incarnation that is no longer the current one are
ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from suiro.model.ids import BrokerEpoch, NodeId

SESSION_TIMEOUT_MS: Final = 3_000
SESSION_GRACE_MS: Final = 300
_NO_STREAM: Final = -1


@dataclass(slots=True)
class _Session:
    broker_epoch: BrokerEpoch
    heard_ms: float
    stream: int = _NO_STREAM
    broken_ms: float | None = None


class Sessions:
    """One session per node; a stream is any number that its opener does not use twice."""

    def __init__(
        self, timeout_ms: float = SESSION_TIMEOUT_MS, grace_ms: float = SESSION_GRACE_MS
    ) -> None:
        self.timeout_ms = timeout_ms
        self.grace_ms = grace_ms
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
            session.broken_ms = None
            session.heard_ms = now_ms

    def on_heard(self, node_id: NodeId, broker_epoch: BrokerEpoch, now_ms: float) -> None:
        session = self._by_node.get(node_id)
        if session is not None and session.broker_epoch == broker_epoch:
            session.heard_ms = now_ms

    def on_broken(
        self, node_id: NodeId, broker_epoch: BrokerEpoch, stream: int, now_ms: float
    ) -> None:
        """The stream broke; nothing follows from it if a newer one is open."""
        session = self._by_node.get(node_id)
        if session is None or session.broker_epoch != broker_epoch or session.stream != stream:
            return
        if session.broken_ms is None:
            session.broken_ms = now_ms

    def forget(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> None:
        """It was fenced or has left: it has no session until it opens one."""
        session = self._by_node.get(node_id)
        if session is not None and session.broker_epoch == broker_epoch:
            del self._by_node[node_id]

    def is_alive(self, node_id: NodeId, now_ms: float) -> bool:
        """Whether another process may not take this node's id: it is there, as far as we know."""
        session = self._by_node.get(node_id)
        return session is not None and session.broken_ms is None and now_ms < self._ends_ms(session)

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
        silence = session.heard_ms + self.timeout_ms
        if session.broken_ms is None:
            return silence
        return min(silence, session.broken_ms + self.grace_ms)
