"""Whoever follows a stream in a loop ends when it is cancelled, also if the stream breaks with it.

gRPC fails what is under way on a stream that is cancelled, so failure and cancellation come
together, and the TaskGroup of Python 3.11 then tells of the failure alone.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, cast

import pytest
from suiro._proto.common_pb2 import Hello, Isolation
from suiro.aio.broker_line import BrokerLine
from suiro.aio.fetch_line import FetchLine
from suiro.model.errors import Unavailable
from suiro.model.ids import Address, BrokerEpoch, NodeId

from cluster.broker.replicator import Replicator

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

HERE = Address("localhost", 1)


class BreakingStream:
    """Nothing comes; whatever is under way when it is cancelled fails."""

    async def _wait(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Unavailable("the stream was cancelled") from None

    async def send(self, _: object) -> None:
        await self._wait()

    async def receive(self) -> None:
        await asyncio.Event().wait()

    def cancel(self) -> None:
        return


class BreakingTransport:
    """Opens streams that break when they are cancelled."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def open(self, *_: object) -> BreakingStream:
        self.opened.set()
        return BreakingStream()


class World:
    """As much of a consumer, a producer, a broker's environment as the lines look at."""

    def __init__(self) -> None:
        self.transport = BreakingTransport()
        self.rng = random.Random(1)
        self.connection = self

    def hello(self) -> Hello:
        return Hello()

    def take_for(self, *_: object, **__: object) -> tuple[list[Any], float | None]:
        return [], None


class WaitingLine(BrokerLine):
    """A broker line with something under way."""

    async def _send(self, stream: Any) -> None:
        await stream.send(None)


def broker_line(world: World) -> Coroutine[Any, Any, None]:
    line = WaitingLine(cast("Any", world), NodeId(1), HERE)
    line.wake()
    return line.run()


def fetch_line(world: World) -> Coroutine[Any, Any, None]:
    line = FetchLine(cast("Any", world), HERE, Isolation.READ_COMMITTED)
    line.stop(1)
    return line.run()


def replicator(world: World) -> Coroutine[Any, Any, None]:
    line = Replicator(
        cast("Any", world), NodeId(2), lambda _: HERE, Hello(), lambda: BrokerEpoch(1)
    )
    line._partitions = cast("Any", _OneAtHand())
    return line.run()


class _OneAtHand(dict[Any, Any]):
    """Something to follow, which has nothing to say."""

    def __bool__(self) -> bool:
        return True


@pytest.mark.parametrize("line", [broker_line, fetch_line, replicator])
async def test_a_line_that_is_cancelled_ends(
    line: Callable[[World], Coroutine[Any, Any, None]],
) -> None:
    world = World()
    running = asyncio.create_task(line(world))
    await world.transport.opened.wait()
    for _ in range(5):
        await asyncio.sleep(0)  # until its tasks have begun
    running.cancel()
    done, _ = await asyncio.wait({running}, timeout=5)
    running.cancel()
    assert done
    assert running.cancelled()
