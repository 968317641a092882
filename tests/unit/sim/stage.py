"""A client, a server that does as it is told, and a simulated network between them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from suiro.model.error_base import SuiroError
from suiro.model.errors import NotController, TopicExists
from suiro.model.ids import Address, NodeId
from suiro.transport.api import Codec, Kind, Method, Route

from tests.sim.loop import run
from tests.sim.net import NetworkSettings, SimNetwork
from tests.sim.trace import Trace
from tests.sim.wire import Conditions

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from random import Random

    from suiro.transport.api import Peer, Stream

HERE = Address("server", 9092)
TEXT: Codec[str] = Codec(str.encode, bytes.decode)
CALL = Method("/test/Call", Kind.UNARY, TEXT, TEXT)
CHAT = Method("/test/Chat", Kind.BIDIRECTIONAL, TEXT, TEXT)
LIST = Method("/test/List", Kind.SERVER_STREAM, TEXT, TEXT)

FAST = Conditions(delay_s_min=0.001, delay_s_max=0.001)


class Talker:
    """Echoes, fails, hangs and counts, as it is told."""

    def __init__(self) -> None:
        self.executed: list[str] = []
        self.received: list[str] = []
        self.cancelled = 0
        self.peers: list[Peer] = []

    def routes(self) -> list[Route]:
        return [Route(CALL, self.call), Route(CHAT, self.chat), Route(LIST, self.list)]

    async def call(self, request: str, peer: Peer) -> str:
        self.executed.append(request)
        self.peers.append(peer)
        try:
            if request == "controller":
                raise NotController(NodeId(7))
            if request == "defect":
                raise KeyError("a defect")
            if request == "hang":
                await asyncio.Event().wait()
            if request == "slow":
                await asyncio.sleep(1)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return request.upper()

    async def chat(self, stream: Stream[str, str], _peer: Peer) -> None:
        try:
            while (message := await stream.receive()) is not None:
                self.received.append(message)
                if message == "fail":
                    raise TopicExists("because you asked")
                if message == "sleep":
                    await asyncio.Event().wait()
                if message == "drop":
                    stream.cancel()
                if message == "end":
                    return
                await stream.send(message.upper())
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def list(self, stream: Stream[str, str], _peer: Peer) -> None:
        request = await stream.receive()
        assert request is not None
        assert await stream.receive() is None
        for character in request:
            await stream.send(character)


class Stage:
    def __init__(self, rng: Random, conditions: Conditions, settings: NetworkSettings) -> None:
        self.loop = asyncio.get_running_loop()
        self.trace = Trace(self.loop.time)
        self.network = SimNetwork(rng, self.trace, conditions=conditions, settings=settings)
        self.talker = Talker()
        self.server = self.network.serve(HERE, [self.talker], "server")
        self.client = self.network.transport("client")

    async def call(self, request: str, timeout_s: float = 5.0) -> Any:
        """The reply, or the error."""
        try:
            return await self.client.call(HERE, CALL, request, timeout_s=timeout_s)
        except SuiroError as error:
            return error

    async def took_s(self, call: Coroutine[Any, Any, Any]) -> tuple[Any, float]:
        began_s = self.loop.time()
        try:
            result = await call
        except SuiroError as error:
            result = error
        return result, self.loop.time() - began_s


def story(
    conditions: Conditions = FAST, settings: NetworkSettings | None = None
) -> Callable[[Callable[[Stage], Coroutine[Any, Any, None]]], Callable[[], None]]:
    """Run a test on the virtual loop with a network, and look for leftovers at its end."""

    def wrap(test: Callable[[Stage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
        async def main(rng: Random) -> None:
            stage = Stage(rng, conditions, settings or NetworkSettings())
            await test(stage)
            await stage.network.close()
            await asyncio.sleep(60)
            assert not stage.network.rpcs, "an rpc was never retired"

        return lambda: run(main, seed=1)

    return wrap
