"""Identities for idempotent producers: any broker gives them out, none is ever given twice.

A broker takes blocks of ids from the controller, which never gives a block twice, and asks for the
next one before the last runs out. What is left of a block when the process ends is never used.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from suiro._proto import controller_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import Overloaded, TimedOut
from suiro.model.ids import ProducerId
from suiro.retry import Backoff
from suiro.transport.methods import ControllerMethods

if TYPE_CHECKING:
    from random import Random

    from suiro.model.ids import BrokerEpoch, NodeId

    from cluster.host.quorum_client import QuorumClient

ALLOCATE_TIMEOUT_S: Final = 10.0
LOW: Final = 100
"""With so few ids left the next block is asked for."""
WAITING_MAX: Final = 10_000
"""Producers that may wait for a block while no controller answers."""


class IdBlock:
    """The ids at hand. Pure."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: deque[range] = deque()

    def __len__(self) -> int:
        return sum(map(len, self._ranges))

    def add(self, first: int, count: int) -> None:
        """A block that the controller gave to this broker alone."""
        assert count > 0, "a block has ids"
        self._ranges.append(range(first, first + count))

    def take(self) -> ProducerId | None:
        """One that nobody has had."""
        if not self._ranges:
            return None
        ids = self._ranges.popleft()
        if len(ids) > 1:
            self._ranges.appendleft(ids[1:])
        return ProducerId(ids[0])


class ProducerIds:
    """`run` is a task of the broker: it keeps ids at hand for `new_id`."""

    def __init__(self, quorum: QuorumClient, node: NodeId, rng: Random) -> None:
        self._quorum = quorum
        self._node = node
        self._rng = rng
        self._block = IdBlock()
        self._low = asyncio.Event()
        self._waiting: deque[asyncio.Future[ProducerId]] = deque()

    async def new_id(self) -> ProducerId:
        """An id; waits for the controller only if none is at hand."""
        found = self._block.take()
        if len(self._block) <= LOW:
            self._low.set()
        if found is not None:
            return found
        if len(self._waiting) >= WAITING_MAX:
            raise Overloaded(f"{WAITING_MAX} producers wait for an identity")
        waiter: asyncio.Future[ProducerId] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout(ALLOCATE_TIMEOUT_S):
                return await waiter
        except TimeoutError:
            raise TimedOut("no controller gave this broker producer ids") from None

    async def run(self, broker_epoch: BrokerEpoch) -> None:
        backoff = Backoff(self._rng)
        request = pb.AllocateProducerIdsRequest(node_id=self._node, broker_epoch=broker_epoch)
        while True:
            await self._low.wait()
            try:
                block = await self._quorum.call(
                    ControllerMethods.ALLOCATE_PRODUCER_IDS, request, timeout_s=ALLOCATE_TIMEOUT_S
                )
            except SuiroError:
                await asyncio.sleep(backoff.next_s())
                continue
            backoff.reset()
            self._low.clear()
            self._block.add(block.first, block.count)
            self._serve_waiting()

    def _serve_waiting(self) -> None:
        while self._waiting and len(self._block):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(self._taken())
        if self._waiting:
            self._low.set()

    def _taken(self) -> ProducerId:
        found = self._block.take()
        assert found is not None
        return found
