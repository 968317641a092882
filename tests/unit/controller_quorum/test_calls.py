"""A node's calls over one stream: answered by id, refused one by one, found again after a failover.

On virtual time with real controllers.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from suiro._proto import admin_pb2, broker_pb2
from suiro.model.errors import (
    InternalError,
    InvalidRequest,
    NotController,
    Overloaded,
    TimedOut,
    Unavailable,
)
from suiro.model.ids import Address
from suiro.model.limits import CALLS_IN_FLIGHT_MAX
from suiro.transport.api import Route
from suiro.transport.methods import AdminMethods, BrokerMethods

from cluster.controller_quorum.calls import CallsService
from cluster.host.call_line import CallLine
from cluster.host.quorum_client import QuorumClient
from tests.sim.loop import run
from tests.unit.controller_quorum.quorum_sim import QuorumWorld, quorum_world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from random import Random

    from suiro.transport.api import Peer

TIMEOUT_S = 20.0


def set_default(partitions: int) -> admin_pb2.AlterConfigsRequest:
    return admin_pb2.AlterConfigsRequest(
        resource=admin_pb2.ConfigResource.CLUSTER, set={"num.partitions": str(partitions)}
    )


@contextlib.asynccontextmanager
async def node_client(
    world: QuorumWorld, controllers: list[Address] | None = None
) -> AsyncIterator[QuorumClient]:
    """A node's client with its streams held."""
    env = next(node.controller for node in world.nodes.values() if node.controller).env
    client = QuorumClient(env, controllers or [node.address for node in world.nodes.values()])
    holding = world.tasks.create_task(client.run())
    try:
        yield client
    finally:
        holding.cancel()


@contextlib.asynccontextmanager
async def line_to(world: QuorumWorld, address: Address) -> AsyncIterator[CallLine]:
    line = CallLine(world.client, address)
    running = world.tasks.create_task(line.run())
    try:
        yield line
    finally:
        running.cancel()


class Hanging:
    """A service that answers when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.asked = 0

    def routes(self) -> list[Route]:
        return [
            Route(AdminMethods.DESCRIBE_CLUSTER, self.handle),
            Route(AdminMethods.CREATE_TOPICS, self.fail),
        ]

    async def handle(self, _request: Any, _peer: Peer) -> admin_pb2.DescribeClusterReply:
        self.asked += 1
        await self.go_on.wait()
        return admin_pb2.DescribeClusterReply(cluster_id="here")

    async def fail(self, _request: Any, _peer: Peer) -> None:
        raise ZeroDivisionError


def test_many_calls_share_a_stream_and_its_messages() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            await world.wait_for_leader()
            async with node_client(world) as client:
                await client.call(AdminMethods.ALTER_CONFIGS, set_default(9), timeout_s=TIMEOUT_S)
                rpcs = world.network.rpcs_made
                end = world.leader().controller.driver.end
                async with asyncio.TaskGroup() as callers:
                    for n in range(1, 65):
                        callers.create_task(
                            client.call(
                                AdminMethods.ALTER_CONFIGS, set_default(n), timeout_s=TIMEOUT_S
                            )
                        )
                assert world.network.rpcs_made == rpcs
                assert world.leader().controller.driver.end - end == 64

    run(main, seed=1)


@pytest.mark.parametrize("seed", range(4))
def test_calls_find_the_next_leader(seed: int) -> None:
    """Every call is answered once the quorum is back, wherever it leads from then on; a client that
    knows only one controller is told where the others are.
    """

    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            first = await world.wait_for_leader()
            other = next(node for node in world.nodes.values() if node is not first)
            async with node_client(world, [other.address]) as client:

                async def change(caller: int) -> None:
                    for number in range(20):
                        request = set_default(1 + caller * 100 + number)
                        await client.call(AdminMethods.ALTER_CONFIGS, request, timeout_s=TIMEOUT_S)

                async with asyncio.TaskGroup() as callers:
                    for caller in range(4):
                        callers.create_task(change(caller))
                    await asyncio.sleep(0.02)
                    await world.ask(
                        AdminMethods.TRANSFER_CONTROLLER,
                        admin_pb2.TransferControllerRequest(to=-1),
                    )
                await world.settle()
                assert len(await world.hashes()) == 1

    run(main, seed=seed)


def test_refusals_are_the_callers_own() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            leader = await world.wait_for_leader()
            async with line_to(world, leader.address) as line:
                with pytest.raises(InvalidRequest, match="no call of a controller"):
                    await line.call(
                        BrokerMethods.DESCRIBE_PRODUCERS,
                        broker_pb2.DescribeProducersRequest(),
                        timeout_s=TIMEOUT_S,
                    )
                await line.call(AdminMethods.ALTER_CONFIGS, set_default(3), timeout_s=TIMEOUT_S)
            follower = next(node for node in world.nodes.values() if node is not leader)
            async with line_to(world, follower.address) as line:
                with pytest.raises(NotController) as refusal:
                    await line.call(AdminMethods.ALTER_CONFIGS, set_default(3), timeout_s=TIMEOUT_S)
                assert refusal.value.hints["address"] == str(leader.address)

    run(main, seed=2)


def test_a_break_fails_those_who_wait_and_a_new_line_is_made() -> None:
    async def main(rng: Random) -> None:
        async with quorum_world(rng) as world:
            world.found(3)
            leader = await world.wait_for_leader()
            line = CallLine(world.client, leader.address)
            running = world.tasks.create_task(line.run())
            world.network.partition([leader.name], ["client"])
            waiting = asyncio.gather(
                line.call(AdminMethods.ALTER_CONFIGS, set_default(3), timeout_s=TIMEOUT_S),
                return_exceptions=True,
            )
            await running
            assert isinstance((await waiting)[0], Unavailable)
            assert line.is_broken
            world.network.heal_all()

    run(main, seed=3)


def test_a_defect_is_answered_as_one() -> None:
    async def main(rng: Random) -> None:
        async with (
            quorum_world(rng) as world,
            hanging_service(world) as (_, address),
            line_to(world, address) as line,
        ):
            with pytest.raises(InternalError, match="ZeroDivisionError"):
                await line.call(
                    AdminMethods.CREATE_TOPICS,
                    admin_pb2.CreateTopicsRequest(),
                    timeout_s=TIMEOUT_S,
                )

    run(main, seed=4)


def test_a_line_holds_so_many_calls_and_no_more() -> None:
    async def main(rng: Random) -> None:
        async with (
            quorum_world(rng) as world,
            hanging_service(world) as (service, address),
            line_to(world, address) as line,
        ):

            async def describe(timeout_s: float) -> admin_pb2.DescribeClusterReply:
                request = admin_pb2.DescribeClusterRequest()
                return await line.call(AdminMethods.DESCRIBE_CLUSTER, request, timeout_s=timeout_s)

            with pytest.raises(TimedOut):
                await describe(0.5)
            many = (describe(60) for _ in range(CALLS_IN_FLIGHT_MAX))
            calls = asyncio.gather(*many, return_exceptions=True)
            await asyncio.sleep(1)
            with pytest.raises(Overloaded):
                await describe(1)
            service.go_on.set()
            # The one that was given up is still being served, so one of these was too many.
            refused = [reply for reply in await calls if isinstance(reply, Overloaded)]
            assert len(refused) == 1
            assert service.asked == CALLS_IN_FLIGHT_MAX
            assert (await describe(1)).cluster_id == "here"

    run(main, seed=5)


@contextlib.asynccontextmanager
async def hanging_service(world: QuorumWorld) -> AsyncIterator[tuple[Hanging, Address]]:
    service, address = Hanging(), Address("slow", 1)
    world.network.serve(address, [CallsService([service])], "slow")
    yield service, address
