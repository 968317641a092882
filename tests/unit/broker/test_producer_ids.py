"""No producer id is given twice, and the next block is there before the last one is used up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest
from suiro._proto import controller_pb2 as pb
from suiro.model.errors import Unavailable
from suiro.model.ids import BrokerEpoch, NodeId

from cluster.broker.producer_ids import LOW, IdBlock, ProducerIds
from tests.sim.loop import run

if TYPE_CHECKING:
    from random import Random

BLOCK = 150


class Quorum:
    """Gives blocks in a row, and now and then does not answer."""

    def __init__(self, rng: Random) -> None:
        self.asked = 0
        self._rng = rng

    async def call(self, *_: object, timeout_s: float) -> pb.AllocateProducerIdsReply:
        await asyncio.sleep(timeout_s / 100)
        if self._rng.random() < 0.3:
            raise Unavailable("nobody answers")
        self.asked += 1
        return pb.AllocateProducerIdsReply(first=BLOCK * self.asked, count=BLOCK)


def test_a_block_is_given_out_once() -> None:
    block = IdBlock()
    assert block.take() is None
    block.add(10, 2)
    block.add(50, 1)
    assert [block.take() for _ in range(4)] == [10, 11, 50, None]


@pytest.mark.parametrize("seed", range(5))
def test_ids_are_unique_and_mostly_at_hand(seed: int) -> None:
    async def many(rng: Random) -> None:
        quorum = Quorum(rng)
        ids = ProducerIds(cast("Any", quorum), NodeId(1), rng)
        running = asyncio.create_task(ids.run(BrokerEpoch(3)), name="ids")
        at_once = await asyncio.gather(*(ids.new_id() for _ in range(400)))
        one_by_one = []
        for _ in range(400):
            one_by_one.append(await ids.new_id())
            await asyncio.sleep(0.01)
        given = [*at_once, *one_by_one]
        assert len(set(given)) == len(given)
        assert quorum.asked <= (len(given) + LOW) // BLOCK + 2, "no more blocks than needed"
        running.cancel()
        await asyncio.wait([running])

    run(many, seed=seed)
