"""The log of one coordinator shard: a partition of an internal topic, written by its owner alone.

One term of one owner: `claim`, `replay`, then `append` and `committed` as `MachineHost` wants them,
with `run` as the task that carries the appends out. Any failure ends the term, because its outcome
may be unknown; the owner claims and replays again, and so finds out.

Why nothing late can do harm: the broker takes a write only under the owner epoch that its metadata
show, and only where the log ends (`append_at`). The claim is a record of its own: once it is
committed, whatever an earlier term or owner still has under way is meant for a place that is taken.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from suiro._proto import broker_pb2 as pb
from suiro._proto.common_pb2 import READ_UNCOMMITTED
from suiro.model.batch import walk
from suiro.model.columns import decode
from suiro.model.encode import encode_lists
from suiro.model.errors import LeaderNotAvailable, NotCoordinator
from suiro.transport.framing import Framed
from suiro.transport.methods import BrokerMethods
from suiro.transport.wire_errors import raise_if_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from suiro.model.error_base import SuiroError
    from suiro.model.ids import Address, OwnerEpoch, TopicPartition
    from suiro.model.image import ClusterImage

    from cluster.host.env import Env

    Keyed = tuple[bytes, bytes | None]

CLAIM_KEY: Final = b""
"""Of the record that begins a term; no machine's record has this key."""

ACKS_ALL: Final = -1
ANYWHERE: Final = 0
APPEND_TIMEOUT_S: Final = 10.0
FETCH_TIMEOUT_S: Final = 10.0
APPEND_RECORDS_MAX: Final = 5_000
"""Of one batch, unless a single decision has more: a turn's work for the broker."""

GATHER_TURNS: Final = 2
"""Of the loop, before a batch is closed: who was waiting for the decision that opened it makes its
own in the second, and both are one append.
"""
REPLAY_BYTES: Final = 4 << 20
TURN_RECORDS: Final = 200
"""Replayed in one turn of the loop, or batches of them: many take long, and the node keeps a
session.
"""


class ShardLog:
    """Records are (key, value) pairs; the newest of a key counts, None removes it."""

    def __init__(
        self,
        env: Env,
        partition: TopicPartition,
        owner_epoch: OwnerEpoch,
        image: Callable[[], ClusterImage],
    ) -> None:
        self.partition = partition
        self._env = env
        self._owner_epoch = owner_epoch
        self._image = image
        self._end = ANYWHERE
        self._waiting: deque[Sequence[Keyed]] = deque()
        self._arrived = asyncio.Event()
        self._moved = asyncio.Event()
        self._written = 0
        self._committed = 0
        self._failure: SuiroError | None = None

    # -- the beginning of a term ------------------------------------------------------------------

    async def claim(self) -> None:
        """Write this term's first record; returns once it is committed."""
        await self._append([(CLAIM_KEY, None)])

    async def replay(self) -> AsyncIterator[Keyed]:
        """What each key had come to before the claim, in the order of these last changes.

        Most of a log are commits that others followed: only the last of them is worth decoding.
        """
        newest = await self._newest()
        for count, record in enumerate(newest.items(), 1):
            if count % TURN_RECORDS == 0:
                await asyncio.sleep(0)
            yield record

    async def _newest(self) -> dict[bytes, bytes | None]:
        newest: dict[bytes, bytes | None] = {}
        offset = await self._start()
        while offset < self._end:
            result, body = await self._fetch(offset)
            for count, (position, _) in enumerate(walk(body), 1):
                if count % TURN_RECORDS == 0:
                    await asyncio.sleep(0)
                columns = decode(body, position)
                for key, value in zip(columns.keys_list(), columns.values_list(), strict=True):
                    if key:
                        newest.pop(key, None)  # so that it goes to the end
                        newest[key] = value
            offset = result.next_offset
        return newest

    # -- for MachineHost --------------------------------------------------------------------------

    def append(self, records: Sequence[Keyed]) -> int:
        """Queue them, as one unit; the position counts this term's records."""
        if self._failure is not None:
            raise self._failure
        self._waiting.append(records)
        self._written += len(records)
        self._arrived.set()
        return self._written

    async def committed(self, position: int) -> int:
        while self._committed < position:
            if self._failure is not None:
                raise self._failure
            self._moved.clear()
            await self._moved.wait()
        return self._committed

    def fail(self, error: SuiroError) -> None:
        """End the term: nothing more is written, and whoever waits is told."""
        if self._failure is None:
            self._failure = error
        self._moved.set()

    async def run(self) -> None:
        """Write what is queued, one batch at a time; what comes meanwhile goes into the next."""
        while True:
            await self._arrived.wait()
            for _ in range(GATHER_TURNS):
                await asyncio.sleep(0)
            batch: list[Keyed] = []
            while self._waiting and len(batch) < APPEND_RECORDS_MAX:
                batch += self._waiting.popleft()
            if not self._waiting:
                self._arrived.clear()
            await self._append(batch)
            self._committed += len(batch)
            self._moved.set()

    # -- the broker -------------------------------------------------------------------------------

    async def _append(self, records: Sequence[Keyed]) -> None:
        batch = encode_lists(
            [key for key, _ in records],
            [value for _, value in records],
            timestamps_ms=self._env.clock.now_ms(),
        )
        topic, number = self.partition.topic, self.partition.partition
        part = pb.ProducePart(topic=topic, partition=number, size=len(batch), append_at=self._end)
        request = pb.ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=int(APPEND_TIMEOUT_S * 1000),
            parts=[part],
            owner_epoch=self._owner_epoch,
        )
        reply = await self._env.transport.call(
            self._leader(),
            BrokerMethods.PRODUCE,
            Framed(request, (batch,)),
            timeout_s=APPEND_TIMEOUT_S,
        )
        result = reply.results[0]
        raise_if_error(result.error)
        self._end = result.base_offset + len(records)

    async def _start(self) -> int:
        query = pb.OffsetQuery(
            topic=self.partition.topic,
            partition=self.partition.partition,
            bound=pb.OffsetQuery.EARLIEST,
        )
        reply = await self._env.transport.call(
            self._leader(),
            BrokerMethods.LIST_OFFSETS,
            pb.ListOffsetsRequest(isolation=READ_UNCOMMITTED, queries=[query]),
            timeout_s=FETCH_TIMEOUT_S,
        )
        answer = reply.answers[0]
        raise_if_error(answer.error)
        return answer.offset

    async def _fetch(self, offset: int) -> tuple[pb.FetchResult, memoryview]:
        part = pb.FetchPart(
            topic=self.partition.topic,
            partition=self.partition.partition,
            offset=offset,
            max_bytes=REPLAY_BYTES,
            last_epoch=-1,
        )
        request = pb.FetchRequest(
            isolation=READ_UNCOMMITTED, max_bytes=REPLAY_BYTES, min_bytes=1, parts=[part]
        )
        reply = await self._env.transport.call(
            self._leader(), BrokerMethods.FETCH, request, timeout_s=FETCH_TIMEOUT_S
        )
        result = reply.header.results[0]
        raise_if_error(result.error)
        return result, memoryview(reply.body)

    def _leader(self) -> Address:
        image = self._image()
        topic = image.topic(self.partition.topic)
        if topic is None:
            raise NotCoordinator(f"{self.partition} does not exist")
        node = image.nodes.get(topic.partitions[self.partition.partition].leader)
        if node is None:
            raise LeaderNotAvailable(f"{self.partition} has no leader")
        return node.registration.address
