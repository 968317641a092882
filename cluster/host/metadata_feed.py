"""Follows the cluster metadata: a snapshot, then every committed record, applied to an image.

Whatever happens to the stream, the image only moves forward: a new stream goes on from the index
that was reached, or replaces the image by a newer snapshot.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from suiro._proto import controller_pb2 as pb
from suiro.model.codec import decode
from suiro.model.error_base import SuiroError
from suiro.model.image import ClusterImage, Delta
from suiro.retry import Backoff
from suiro.transport.methods import ControllerMethods

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from suiro._proto.common_pb2 import Hello

    from cluster.host.env import Env
    from cluster.host.quorum_client import QuorumClient

log = logging.getLogger("suiro.node")


class MetadataFeed:
    """`run` is a task of the node; `image` and `index` are what it has learnt."""

    def __init__(
        self,
        env: Env,
        quorum: QuorumClient,
        hello: Hello,
        on_delta: Callable[[ClusterImage, Delta, int], Awaitable[None]],
    ) -> None:
        self.image = ClusterImage()
        self.index = 0
        self._env = env
        self._quorum = quorum
        self._hello = hello
        self._on_delta = on_delta
        self._moved = asyncio.Event()
        self._settled = asyncio.Event()
        self._snapshot: tuple[ClusterImage, Delta] | None = None

    async def reached(self, index: int) -> None:
        """Wait until the image is at least that far."""
        while self.index < index:
            self._moved.clear()
            await self._moved.wait()

    async def changed(self) -> None:
        """Wait for the next change."""
        self._moved.clear()
        await self._moved.wait()

    async def settled(self) -> None:
        """Wait until this node has acted on all that its image shows."""
        await self._settled.wait()

    async def run(self) -> None:
        backoff = Backoff(self._env.rng)
        while True:
            try:
                await self._follow(backoff)
            except SuiroError as error:
                log.debug("the metadata feed broke: %s", error)
            await asyncio.sleep(backoff.next_s())

    async def _follow(self, backoff: Backoff) -> None:
        address, stream = await self._quorum.open(ControllerMethods.FOLLOW_METADATA)
        try:
            await stream.send(pb.FollowMetadataRequest(hello=self._hello, from_index=self.index))
            await stream.finish()
            while (message := await stream.receive()) is not None:
                backoff.reset()
                await self._take(message)
        finally:
            self._snapshot = None
            self._quorum.leave(address)
            stream.cancel()

    async def _take(self, message: pb.MetadataFeed) -> None:
        if message.snapshot:
            self._snapshot = (ClusterImage(), Delta())
        image, delta = self._snapshot or (self.image, Delta())
        for encoded in message.records:
            record = decode(encoded)
            image.apply(record)
            delta.add(record)
        if message.index <= self.index:
            return  # a snapshot that is still arriving, or one that brings nothing new
        self._settled.clear()
        self.image, self._snapshot = image, None
        await self._on_delta(image, delta, message.index)
        self.index = message.index
        self._settled.set()
        self._moved.set()
