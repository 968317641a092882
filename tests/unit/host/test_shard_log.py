"""Replaying a shard's partition: what counts, and that it leaves the loop to others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from suiro._proto import broker_pb2 as pb
from suiro.model.encode import encode_lists
from suiro.model.ids import OwnerEpoch, TopicPartition

from cluster.host.shard_log import CLAIM_KEY, TURN_RECORDS, ShardLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.image import ClusterImage

    from cluster.host.env import Env
    from cluster.host.shard_log import Keyed

TURNS = 10
BATCHES = TURNS * TURN_RECORDS


class Written(ShardLog):
    """One that finds batches of these records, all in one answer of the broker."""

    def __init__(self, *batches: Sequence[Keyed]) -> None:
        nowhere = cast("Env", None)
        where = TopicPartition("__consumer_offsets", 0)
        super().__init__(nowhere, where, OwnerEpoch(1), lambda: cast("ClusterImage", None))
        self._batches = batches
        self._end = len(batches)

    async def _start(self) -> int:
        return 0

    async def _fetch(self, offset: int) -> tuple[pb.FetchResult, memoryview]:
        body = b"".join(
            bytes(encode_lists([k for k, _ in batch], [v for _, v in batch], timestamps_ms=1))
            for batch in self._batches
        )
        return pb.FetchResult(next_offset=offset + self._end), memoryview(body)


async def test_the_last_change_of_each_key_is_replayed_in_the_order_of_these() -> None:
    log = Written(
        [(b"a", b"1"), (b"b", b"1")],
        [(CLAIM_KEY, None)],
        [(b"a", b"2"), (b"c", b"1")],
        [(b"c", None)],
    )
    assert [record async for record in log.replay()] == [(b"b", b"1"), (b"a", b"2"), (b"c", None)]


@pytest.mark.parametrize("keys", [1, BATCHES])
async def test_a_long_replay_lets_the_node_keep_its_session(keys: int) -> None:
    turns = 0

    async def beat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(beat())
    log = Written(*([(b"%d" % (number % keys), b"value")] for number in range(BATCHES)))
    records = [record async for record in log.replay()]
    beating.cancel()
    assert len(records) == keys
    assert turns >= TURNS * (2 if keys == BATCHES else 1)
