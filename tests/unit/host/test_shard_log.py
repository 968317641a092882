"""Replaying a shard's partition leaves the loop to others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from suiro._proto import broker_pb2 as pb
from suiro.model.encode import encode_lists
from suiro.model.ids import OwnerEpoch, TopicPartition

from cluster.host.shard_log import TURN_BATCHES, ShardLog

if TYPE_CHECKING:
    from suiro.model.image import ClusterImage

    from cluster.host.env import Env

TURNS = 10
BATCHES = TURNS * TURN_BATCHES


class Written(ShardLog):
    """One that finds many small commits, all in one answer of the broker."""

    def __init__(self) -> None:
        nowhere = cast("Env", None)
        where = TopicPartition("__consumer_offsets", 0)
        super().__init__(nowhere, where, OwnerEpoch(1), lambda: cast("ClusterImage", None))
        self._end = BATCHES

    async def _start(self) -> int:
        return 0

    async def _fetch(self, offset: int) -> tuple[pb.FetchResult, memoryview]:
        batch = bytes(encode_lists([b"key"], [b"value"], timestamps_ms=1))
        return pb.FetchResult(next_offset=offset + BATCHES), memoryview(batch * BATCHES)


async def test_a_long_replay_lets_the_node_keep_its_session() -> None:
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    records = [record async for record in Written().replay()]
    beating.cancel()
    assert records == [(b"key", b"value")] * BATCHES
    assert turns >= TURNS
