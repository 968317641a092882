"""What a node says of itself, whatever its role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suiro._proto import node_pb2 as pb
from suiro.transport.api import Route
from suiro.transport.methods import NodeMethods
from suiro.version import SOFTWARE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from suiro.model.ids import NodeId
    from suiro.transport.api import Peer

    from cluster.host.env import Env


class NodeDesk:
    """The Node service."""

    def __init__(
        self,
        env: Env,
        cluster_id: str,
        node_id: NodeId,
        roles: Sequence[str],
        is_ready: Callable[[], bool],
    ) -> None:
        self._env = env
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._roles = tuple(roles)
        self._is_ready = is_ready
        self._started_ms = env.clock.monotonic_ms()

    def routes(self) -> list[Route]:
        return [Route(NodeMethods.DESCRIBE, self.handle_describe)]

    async def handle_describe(
        self, request: pb.DescribeNodeRequest, _peer: Peer
    ) -> pb.DescribeNodeReply:
        clock = self._env.clock
        return pb.DescribeNodeReply(
            cluster_id=self._cluster_id,
            node_id=self._node_id,
            roles=self._roles,
            software=SOFTWARE,
            now_ms=clock.now_ms(),
            uptime_ms=int(clock.monotonic_ms() - self._started_ms),
            ready=self._is_ready(),
            metrics=self._env.metrics.render() if request.with_metrics else b"",
        )
