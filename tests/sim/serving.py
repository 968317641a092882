"""The serving side of a simulated node: what `cluster.host.server.Server` is to a real one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.sim.loop import on_machine

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from suiro.model.ids import Address
    from suiro.transport.api import Method, Route, Service

    from tests.sim.net import SimNetwork


class SimServer:
    """Has what `cluster.host.server.Server` has, on the simulated network."""

    def __init__(self, network: SimNetwork, node: str, services: Sequence[Service]) -> None:
        self._network = network
        self._routes = {
            route.method.name: route for service in services for route in service.routes()
        }
        self.node = node
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._context = on_machine(node)
        self.is_serving = False

    async def start(self, listen: Address) -> int:
        """Listen and serve; the port, which is a free one if port 0 was asked for."""
        port = listen.port or self._network.free_port(listen.host)
        self._network.listen(type(listen)(listen.host, port), self)
        return port

    async def set_serving(self, serving: bool) -> None:
        self.is_serving = serving

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls at once, give open ones `grace_s` to end."""
        self._network.unlisten(self)
        if self._tasks and grace_s:
            await asyncio.wait(self._tasks, timeout=grace_s)
        left = tuple(self._tasks)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)

    def run(self, handling: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """A handler's task: the server owns it until it ends."""
        task = self._network.loop.create_task(handling, name=name, context=self._context)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def route(self, method: Method[Any, Any]) -> Route | None:
        return self._routes.get(method.name)
