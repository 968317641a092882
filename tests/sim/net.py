"""The simulated network: `Transport` and `Server` in memory, with everything a network does wrong.

Nodes are names; links between them have delays, lose, duplicate and can be cut one way. As gRPC is
reliable and in order, a loss is a broken rpc: before the handler ran, or after it, or a silence up
to the deadline. A cut holds what is under way; an rpc whose nodes are cut for longer than the
keepalive breaks on both sides, and a new one gets no connection. Time is the loop's, chance is the
Random that was handed in, and no order depends on an address.

What a node does when it crashes is the caller's part; `crash` is what the network sees of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from suiro.model.error_base import SuiroError
from suiro.model.errors import InternalError, TimedOut, Unavailable
from suiro.transport.api import Kind, Peer

from tests.sim.serving import SimServer
from tests.sim.wire import (
    CLOSED,
    DROPPED,
    NOBODYS,
    OPEN,
    Conditions,
    End,
    Ending,
    Failed,
    Last,
    Link,
    Wire,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from suiro.model.ids import Address
    from suiro.transport.api import Method, Route, Service, Stream

    from tests.sim.trace import Trace

Q = TypeVar("Q")
R = TypeVar("R")

FIRST_FREE_PORT: Final = 20_000


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """What is the same for all links."""

    keepalive_s: float = 10.0
    connect_s: float = 20.0
    stream_window: int = 16
    check_codecs: bool = False


class SimNetwork:
    """Everything between the nodes. Make it inside the running loop."""

    def __init__(
        self,
        rng: Random,
        trace: Trace,
        *,
        conditions: Conditions | None = None,
        settings: NetworkSettings | None = None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.rng = rng
        self.trace = trace
        self.settings = settings or NetworkSettings()
        self.defects: list[Exception] = []
        """What handlers raised besides SuiroErrors: every one is a bug."""
        self.rpcs: dict[int, Rpc] = {}
        self.rpcs_made = 0
        self._conditions = conditions or Conditions()
        self._links: dict[tuple[str, str], Link] = {}
        self._servers: dict[Address, SimServer] = {}
        self._node_at: dict[Address, str] = {}
        self._dark: set[str] = set()
        self._transports: dict[str, list[SimTransport]] = {}

    def transport(self, node: str, *, principal: str = "anonymous") -> SimTransport:
        """The calling side of a node, until it crashes."""
        transport = SimTransport(self, node, principal)
        self._transports.setdefault(node, []).append(transport)
        return transport

    def serve(self, address: Address, services: Sequence[Service], node: str) -> SimServer:
        """Serve at once; `SimServer.start` is the same for who builds servers first."""
        server = SimServer(self, node, services)
        self.listen(address, server)
        return server

    async def close(self) -> None:
        """Stop all servers, so that no task is left behind."""
        for address in sorted(self._servers):
            await self._servers[address].stop(0)

    # -- faults -----------------------------------------------------------------------------------

    def link(self, source: str, target: str) -> Link:
        """One direction; its `conditions` may be replaced at any time."""
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = Link(self.rng, self._conditions)
        return link

    def set_conditions(self, conditions: Conditions) -> None:
        """For all links, those to come included."""
        self._conditions = conditions
        for link in self._links.values():
            link.conditions = conditions

    def cut(self, source: str, target: str, *, refuse: bool = False) -> None:
        """Nothing gets from `source` to `target`; new connections hang, or are refused."""
        self.trace.add("cut", source, target)
        link = self.link(source, target)
        now_s = self.loop.time()
        link.cut(now_s, refuse=refuse)
        self.later(self.settings.keepalive_s, self._on_keepalive, link, now_s)

    def heal(self, source: str, target: str) -> None:
        self.trace.add("heal", source, target)
        self.link(source, target).heal()

    def partition(self, *sides: Sequence[str]) -> None:
        """Cut every node from the nodes of the other sides, both ways."""
        for side in sides:
            for other in sides:
                if side is not other:
                    for source in side:
                        for target in other:
                            self.cut(source, target)

    def heal_all(self) -> None:
        for (source, target), link in tuple(self._links.items()):
            if link.cut_at_s is not None:
                self.heal(source, target)

    def crash(self, node: str, *, silent: bool = False) -> None:
        """The node is gone: its handlers end, its transports are dead, nobody listens. The others
        see their rpcs break at once, or after the keepalive when the whole machine went silently.
        """
        self.trace.add("crash", node)
        if silent:
            self._dark.add(node)
        for address in [a for a, server in self._servers.items() if server.node == node]:
            del self._servers[address]
        for transport in self._transports.pop(node, []):
            transport.is_closed = True
        after_s = self.settings.keepalive_s if silent else 0.0
        for rpc in tuple(self.rpcs.values()):
            if node in (rpc.caller.node, rpc.server_node):
                rpc.break_off(f"{node} crashed", gone=node, after_s=after_s)

    def on_silence(self, node: str) -> None:
        """The node has been paused for longer than the keepalive: the others give its rpcs up."""
        for rpc in tuple(self.rpcs.values()):
            if node in (rpc.caller.node, rpc.server_node):
                rpc.break_off("no answer to keepalive pings")

    def _on_keepalive(self, link: Link, cut_at_s: float) -> None:
        if link.cut_at_s != cut_at_s:
            return  # healed meanwhile
        for rpc in tuple(self.rpcs.values()):
            if link in (rpc.up_link, rpc.down_link):
                rpc.break_off("no answer to keepalive pings")

    # -- what servers, transports and rpcs need ---------------------------------------------------

    def later(self, delay_s: float, callback: Callable[..., None], *args: Any) -> None:
        self.loop.call_later(delay_s, callback, *args, context=NOBODYS)

    def listen(self, address: Address, server: SimServer) -> None:
        if address in self._servers:
            raise Unavailable(f"cannot listen on {address}: it is in use")
        self._servers[address] = server
        self._node_at[address] = server.node
        self._dark.discard(server.node)

    def unlisten(self, server: SimServer) -> None:
        for address in [a for a, other in self._servers.items() if other is server]:
            del self._servers[address]

    def server_at(self, address: Address) -> SimServer | None:
        return self._servers.get(address)

    def free_port(self, host: str) -> int:
        used = {address.port for address in self._node_at if address.host == host}
        return max([FIRST_FREE_PORT - 1, *used]) + 1

    def refuses(self, caller: str, address: Address) -> bool:
        """Whether the machine there can be asked, and nobody listens on it."""
        node = self.node_at(address)
        both = (self.link(caller, node), self.link(node, caller))
        is_cut = any(link.cut_at_s is not None for link in both)
        return not is_cut and node not in self._dark and address not in self._servers

    def node_at(self, address: Address) -> str:
        """Who listens there, or last did."""
        return self._node_at.get(address, f"nobody at {address}")


class Rpc:
    """One call or stream: what the client sends goes up, what the handler sends comes down.

    It is over for each side on its own, and forgotten by the network when it is over for both.
    """

    __slots__ = (
        "_client_done", "_down", "_server", "_server_done", "_task", "_up", "address", "caller",
        "client", "down_link", "method", "network", "number", "server_node", "up_link",
    )  # fmt: skip

    def __init__(
        self,
        network: SimNetwork,
        caller: SimTransport,
        address: Address,
        method: Method[Any, Any],
    ) -> None:
        network.rpcs_made += 1
        self.number = network.rpcs_made
        self.network = network
        self.caller = caller
        self.address = address
        self.method = method
        self.server_node = network.node_at(address)
        self.up_link = network.link(caller.node, self.server_node)
        self.down_link = network.link(self.server_node, caller.node)
        self._up = Wire(self.up_link, self._at_server, self._on_loss)
        self._down = Wire(self.down_link, self._at_client, self._on_loss)
        self.client = self._end(self._up, self._on_client_gone, at_client=True)
        self._server: End | None = None
        self._task: asyncio.Task[Any] | None = None
        self._client_done = False
        self._server_done = False
        network.rpcs[self.number] = self
        network.trace.add("call", self.number, caller.node, str(address), method.name)
        self._connect()

    def open(self) -> None:
        """Send the headers of a stream."""
        self._up.put(OPEN)

    def expire(self) -> None:
        """The deadline of a unary call, which both sides know."""
        self.fail_client(TimedOut(f"{self.method} at {self.address} was not answered in time"))
        self.network.later(self.up_link.delay_s(), self._end_server)

    def break_off(self, why: str, *, gone: str | None = None, after_s: float = 0.0) -> None:
        """Nothing arrives any more; each side learns of it a moment later, one that crashed now."""
        self._up.close()
        self._down.close()
        error = Unavailable(f"{self.address}: the connection broke: {why}")
        later = self.network.later
        if gone == self.caller.node:
            self.fail_client(error)
        else:
            later(after_s + self.down_link.delay_s(), self.fail_client, error)
        if gone == self.server_node:
            self._end_server()
        else:
            later(after_s + self.up_link.delay_s(), self._end_server)

    def fail_client(self, error: SuiroError) -> None:
        if not self._client_done:
            self.network.trace.add("broken", self.number, int(error.code))
            self.client.fail(error, unread_lost=self.network.rng.random() < 0.5)
            self._client_done = True
            self._retire()

    def _connect(self) -> None:
        """A cut that is older than the keepalive has broken the connection that was there."""
        settings, loop = self.network.settings, self.network.loop
        for link in (self.up_link, self.down_link):
            if link.cut_at_s is not None and loop.time() - link.cut_at_s >= settings.keepalive_s:
                self._up.close()
                self._server_done = True
                wait_s = link.delay_s() if link.refuses else settings.connect_s
                error = Unavailable(f"{self.address}: no connection")
                self.network.later(wait_s, self.fail_client, error)
                return

    def _at_server(self, item: Any) -> None:
        self.network.trace.add("up", self.number)
        if self._server_done:
            return
        if item is DROPPED:
            self._end_server()
        elif self._task is None:
            self._accept(item)
        elif self._server is not None:
            self._server.on_item(item)

    def _accept(self, first: Any) -> None:
        """The first item has come: start the handler, or refuse."""
        server = self.network.server_at(self.address)
        route = None if server is None else server.route(self.method)
        if server is None or route is None:
            why = "connection refused" if server is None else f"does not serve {self.method}"
            self._server_done = True
            self._down.put(Failed.of(Unavailable(f"{self.address}: {why}")))
            return
        if self.method.kind is Kind.UNARY:
            self._duplicate(first)
            handling = self._handle_call(route, first)
        else:
            self._server = self._end(self._down, self._end_server, at_client=False)
            self.client.other, self._server.other = self._server, self.client
            if first is not OPEN:
                self._server.on_item(first)
            handling = self._handle_stream(route, self._server)
        self._task = server.run(handling, self.method.name)
        self._task.add_done_callback(self._on_handled)

    def _duplicate(self, request: Any) -> None:
        conditions, rng = self.up_link.conditions, self.network.rng
        if conditions.duplicate > 0 and rng.random() < conditions.duplicate:
            after_s = rng.random() * conditions.duplicate_s_max
            self.network.later(after_s, self._replay, request)

    def _replay(self, request: Any) -> None:
        """The request comes once more, perhaps to a restarted server; nobody reads the reply."""
        ghost = Rpc(self.network, self.caller, self.address, self.method)
        ghost.fail_client(Unavailable("a duplicate has no caller"))
        ghost._up.put(request)

    async def _handle_call(self, route: Route, request: Any) -> Any:
        """Run the handler of a unary call; the result is what travels down."""
        codecs = self.network.settings.check_codecs
        try:
            if codecs:
                request = self.method.request.decode(request)
            reply = await route.handler(request, self.caller.peer)
            return Last(self.method.reply.encode(reply) if codecs else reply)
        except Exception as error:
            return self._failed(error)

    async def _handle_stream(self, route: Route, server: End) -> Any:
        try:
            await route.handler(server, self.caller.peer)
        except Exception as error:
            return self._failed(error)
        return CLOSED

    def _failed(self, error: Exception) -> Failed:
        """A SuiroError travels; anything else is a defect: answered, and kept for the test."""
        if not isinstance(error, SuiroError):
            self.network.defects.append(error)
            error = InternalError(f"{self.method} failed: {error!r}")
        return Failed.of(error)

    def _on_handled(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._down.put(Failed.of(Unavailable(f"{self.address}: the call was cancelled")))
        else:
            self._down.put(task.result())
        if self._server is not None:
            self._server.fail(Unavailable("the handler has ended"), unread_lost=True)
        self._server_done = True
        self._retire()

    def _end_server(self) -> None:
        """gRPC cancels the handler of an rpc that broke."""
        if self._task is None:
            self._server_done = True
            self._retire()
            return
        if self._server is not None:
            self._server.fail(Unavailable("the client is gone"), unread_lost=True)
        self._task.cancel()

    def _at_client(self, item: Any) -> None:
        self.network.trace.add("down", self.number)
        if self._client_done:
            return
        if item is DROPPED:
            self.fail_client(Unavailable(f"{self.address}: the server dropped the stream"))
            return
        self.client.on_item(item)
        if isinstance(item, Ending):
            self._client_done = True
            self._retire()

    def _on_client_gone(self) -> None:
        self.fail_client(Unavailable("the stream was cancelled"))

    def _on_loss(self) -> None:
        """A call that waits for its reply may stay silent until its deadline; all else breaks."""
        self.network.trace.add("lost", self.number)
        is_waiting = self.method.kind is Kind.UNARY and not self._client_done
        if not is_waiting or self.network.rng.random() < 0.5:
            self.break_off("reset")
        elif self._task is None:
            self._server_done = True

    def _retire(self) -> None:
        if self._client_done and self._server_done:
            self.network.rpcs.pop(self.number, None)

    def _end(self, out: Wire, dropped: Callable[[], None], *, at_client: bool) -> End:
        settings = self.network.settings
        if not settings.check_codecs:
            return End(out, settings.stream_window, dropped, None, None)
        up, down = self.method.request, self.method.reply
        send, receive = (up, down) if at_client else (down, up)
        return End(out, settings.stream_window, dropped, send, receive)


class SimTransport:
    """Implements `Transport` for one life of one node."""

    def __init__(self, network: SimNetwork, node: str, principal: str) -> None:
        self._network = network
        self.node = node
        self.peer = Peer(address=f"sim:{node}", principal=principal)
        self.is_closed = False

    async def call(
        self, address: Address, method: Method[Q, R], request: Q, *, timeout_s: float
    ) -> R:
        rpc = self._begin(address, method)
        deadline = self._network.loop.call_later(timeout_s, rpc.expire)
        try:
            rpc.client.push(request)
            reply: R | None = await rpc.client.receive()
        except BaseException:
            rpc.client.cancel()  # nothing, if it is over already
            raise
        finally:
            deadline.cancel()
        assert reply is not None, "a unary call ends with its reply or an error"
        return reply

    async def open(self, address: Address, method: Method[Q, R]) -> Stream[Q, R]:
        rpc = self._begin(address, method)
        if method.kind is Kind.BIDIRECTIONAL:
            rpc.open()
        return rpc.client

    async def refuses(self, address: Address, *, timeout_s: float) -> bool:
        await asyncio.sleep(self._network.rng.random() * timeout_s / 10)
        return self._network.refuses(self.node, address)

    async def close(self) -> None:
        self.is_closed = True
        for rpc in tuple(self._network.rpcs.values()):
            if rpc.caller is self:
                rpc.client.cancel()

    def _begin(self, address: Address, method: Method[Any, Any]) -> Rpc:
        if self.is_closed:
            raise Unavailable("the transport is closed")
        return Rpc(self._network, self, address, method)
