"""A session that breaks is told of at once, as the controller fences after a short grace."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from suiro._proto import controller_pb2 as pb
from suiro.model.errors import NotController, Unavailable
from suiro.model.ids import Address

from cluster.host.clock import SystemClock
from cluster.host.node_session import NodeSession

if TYPE_CHECKING:
    from suiro.model.error_base import SuiroError


class BreakingStream:
    """Answers one heartbeat, then breaks."""

    def __init__(self, error: SuiroError) -> None:
        self._error = error
        self._answered = False

    async def send(self, _: object) -> None:
        return

    async def receive(self) -> pb.NodeNotice:
        await asyncio.sleep(0)  # the heartbeat leaves first
        if self._answered:
            raise self._error
        self._answered = True
        return pb.NodeNotice(session_timeout_ms=3_000)

    def cancel(self) -> None:
        return


class Quorum:
    """A controller whose sessions all break in the same way."""

    def __init__(self, error: SuiroError) -> None:
        self._error = error
        self._opened = 0
        self.broke_twice = asyncio.Event()

    async def open(self, _: object) -> tuple[Address, BreakingStream]:
        self._opened += 1
        if self._opened > 2:
            self.broke_twice.set()
        return Address("h", 1), BreakingStream(self._error)

    def leave(self, *_: object) -> None:
        return


@pytest.mark.parametrize(
    ("error", "tells"),
    [(Unavailable("the connection was reset"), True), (NotController(None), False)],
)
async def test_a_broken_session_is_told_of(error: SuiroError, tells: bool) -> None:
    """Unless the controller has stepped down: that one fences nobody any more."""
    heard: list[pb.NodeNotice | None] = []
    quorum = Quorum(error)
    env = SimpleNamespace(clock=SystemClock(), rng=random.Random(1))
    session = NodeSession(
        cast("Any", env),
        cast("Any", quorum),
        pb.RegisterNodeRequest(),
        session_timeout_ms=3_000,
        image_index=lambda: 0,
        on_notice=lambda notice, _: heard.append(notice),
    )
    running = asyncio.create_task(session.run())
    await quorum.broke_twice.wait()
    running.cancel()
    await asyncio.wait([running])
    assert heard[0] is not None
    assert (None in heard) is tells
