"""What a `Transport` promises, asked of both of them: the simulated one and gRPC.

Code that was tested on the simulated network runs on gRPC; so where these two differ, the
simulation proves nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from suiro._proto import admin_pb2, controller_pb2
from suiro.model.errors import InternalError, NotController, TimedOut, Unavailable
from suiro.model.ids import Address, NodeId
from suiro.transport.api import Peer, Route, Stream, Transport
from suiro.transport.grpc_transport import GrpcTransport
from suiro.transport.methods import AdminMethods, ControllerMethods

from cluster.host.metrics import Metrics
from cluster.host.server import Server
from tests.sim.loop import run
from tests.sim.net import SimNetwork
from tests.sim.serving import SimServer
from tests.sim.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    Check = Callable[[Transport, Address], Awaitable[None]]

TIMEOUT_S = 10.0


class Echo:
    """Answers, refuses, fails and waits, as it is asked to."""

    def routes(self) -> list[Route]:
        return [
            Route(AdminMethods.DELETE_TOPICS, self.handle_delete_topics),
            Route(ControllerMethods.CALLS, self.handle_calls),
            Route(ControllerMethods.FOLLOW_METADATA, self.handle_follow),
        ]

    async def handle_delete_topics(
        self, request: admin_pb2.DeleteTopicsRequest, _peer: Peer
    ) -> admin_pb2.DeleteTopicsReply:
        if "refuse" in request.names:
            raise NotController(NodeId(7))
        if "fail" in request.names:
            raise ZeroDivisionError
        if "wait" in request.names:
            await asyncio.Event().wait()
        results = [admin_pb2.TopicResult(name=name) for name in request.names]
        return admin_pb2.DeleteTopicsReply(results=results)

    async def handle_calls(self, stream: Stream[Any, Any], _peer: Peer) -> None:
        while (batch := await stream.receive()) is not None:
            for call in batch.calls:
                if call.method == "refuse":
                    raise NotController(NodeId(7))
            answers = [controller_pb2.Answer(id=call.id) for call in batch.calls]
            await stream.send(controller_pb2.AnswerBatch(answers=answers))

    async def handle_follow(self, stream: Stream[Any, Any], _peer: Peer) -> None:
        request = await stream.receive()
        assert request is not None
        for index in range(request.from_index):
            await stream.send(controller_pb2.MetadataFeed(index=index))


async def delete(transport: Transport, address: Address, name: str, timeout_s: float) -> str:
    request = admin_pb2.DeleteTopicsRequest(names=[name])
    reply = await transport.call(address, AdminMethods.DELETE_TOPICS, request, timeout_s=timeout_s)
    return reply.results[0].name


def batch(number: int, method: str = "") -> controller_pb2.CallBatch:
    return controller_pb2.CallBatch(calls=[controller_pb2.Call(id=number, method=method)])


async def a_call_is_answered(transport: Transport, address: Address) -> None:
    assert await delete(transport, address, "orders", TIMEOUT_S) == "orders"


async def a_refusal_arrives_with_its_hints(transport: Transport, address: Address) -> None:
    with pytest.raises(NotController) as refusal:
        await delete(transport, address, "refuse", TIMEOUT_S)
    assert refusal.value.leader == 7


async def a_silent_call_times_out(transport: Transport, address: Address) -> None:
    with pytest.raises(TimedOut):
        await delete(transport, address, "wait", 0.05)


async def a_defect_is_an_internal_error(transport: Transport, address: Address) -> None:
    with pytest.raises(InternalError, match="ZeroDivisionError"):
        await delete(transport, address, "fail", TIMEOUT_S)


async def what_is_not_there_is_unavailable(transport: Transport, address: Address) -> None:
    with pytest.raises(Unavailable):
        await delete(transport, Address(address.host, 1), "orders", 1.0)
    with pytest.raises(Unavailable):
        await transport.call(
            address,
            AdminMethods.CREATE_TOPICS,
            admin_pb2.CreateTopicsRequest(),
            timeout_s=TIMEOUT_S,
        )


async def a_stream_goes_both_ways_and_ends(transport: Transport, address: Address) -> None:
    stream = await transport.open(address, ControllerMethods.CALLS)
    for number in range(1, 40):
        await stream.send(batch(number))
        answer = await stream.receive()
        assert answer is not None
        assert answer.answers[0].id == number
    await stream.finish()
    assert await stream.receive() is None


async def a_stream_fails_with_the_reason(transport: Transport, address: Address) -> None:
    stream = await transport.open(address, ControllerMethods.CALLS)
    await stream.send(batch(1, "refuse"))
    with pytest.raises(NotController) as refusal:
        await stream.receive()
    assert refusal.value.leader == 7
    with pytest.raises(NotController):
        await stream.send(batch(2))


async def a_server_stream_ends_by_itself(transport: Transport, address: Address) -> None:
    stream = await transport.open(address, ControllerMethods.FOLLOW_METADATA)
    await stream.send(controller_pb2.FollowMetadataRequest(from_index=3))
    await stream.finish()
    heard = []
    while (message := await stream.receive()) is not None:
        heard.append(message.index)
    assert heard == [0, 1, 2]


async def a_server_that_goes_breaks_its_streams(transport: Transport, address: Address) -> None:
    stream = await transport.open(address, ControllerMethods.CALLS)
    await stream.send(batch(1))
    assert await stream.receive() is not None
    await SERVERS[address].stop(0)
    with pytest.raises(Unavailable):
        await stream.receive()


async def a_stream_that_is_dropped_here_breaks_here(transport: Transport, address: Address) -> None:
    """For whoever waits for it, as an error: he himself was not cancelled."""
    stream = await transport.open(address, ControllerMethods.CALLS)
    await stream.send(batch(1))
    assert await stream.receive() is not None
    reading = asyncio.ensure_future(stream.receive())
    await asyncio.sleep(0.01)
    stream.cancel()
    await asyncio.wait([reading])
    assert isinstance(reading.exception(), Unavailable)


async def nobody_listening_is_a_refusal(transport: Transport, address: Address) -> None:
    assert not await transport.refuses(address, timeout_s=1.0)
    await SERVERS[address].stop(0)
    assert await transport.refuses(address, timeout_s=1.0)


SERVERS: dict[Address, Any] = {}

CHECKS: list[Check] = [
    a_call_is_answered,
    a_refusal_arrives_with_its_hints,
    a_defect_is_an_internal_error,
    a_silent_call_times_out,
    what_is_not_there_is_unavailable,
    a_stream_goes_both_ways_and_ends,
    a_stream_fails_with_the_reason,
    a_server_stream_ends_by_itself,
    a_server_that_goes_breaks_its_streams,
    a_stream_that_is_dropped_here_breaks_here,
    nobody_listening_is_a_refusal,
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_simulated_network_keeps_it(check: Check) -> None:
    async def main(rng: Random) -> None:
        network = SimNetwork(rng, Trace(asyncio.get_running_loop().time))
        transport = network.transport("client")
        server = SimServer(network, "server", [Echo()])
        address = Address("server", await server.start(Address("server", 0)))
        SERVERS[address] = server
        await check(transport, address)
        await transport.close()
        await network.close()

    run(main, seed=1)


@pytest.mark.parametrize("check", CHECKS)
async def test_grpc_keeps_it(check: Check) -> None:
    server = Server([Echo()], Metrics())
    address = Address("127.0.0.1", await server.start(Address("127.0.0.1", 0)))
    SERVERS[address] = server
    transport = GrpcTransport()
    await check(transport, address)
    await transport.close()
    await server.stop(0)
