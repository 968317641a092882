"""The consumer on asyncio: says what to read, and polls what the fetcher has brought."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from suiro._proto.common_pb2 import READ_COMMITTED, READ_UNCOMMITTED
from suiro.aio.fetcher import Fetcher
from suiro.aio.group_inbox import Begin
from suiro.aio.group_member import GroupMember
from suiro.aio.group_offsets import OffsetAndMetadata
from suiro.client_env import real_env
from suiro.connection import Connection
from suiro.membership import Lost, Revoke
from suiro.model.errors import ClientClosed, InvalidRequest
from suiro.model.ids import TopicPartition
from suiro.settings import ConsumerSettings, build_settings, take_bootstrap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    import pyarrow as pa

    from suiro.aio.offsets import Bound
    from suiro.client_env import ClientEnv
    from suiro.model.record import Record
    from suiro.polled import ColumnRun, Polled

    OnPartitions = Callable[[list[TopicPartition]], Awaitable[None] | None]
    Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]


class Listeners(NamedTuple):
    """What the application wants to be told about its partitions."""

    assigned: OnPartitions | None = None
    revoked: OnPartitions | None = None
    lost: OnPartitions | None = None

    def for_event(self, event: Begin | Revoke | Lost) -> OnPartitions | None:
        match event:
            case Begin():
                return self.assigned
            case Revoke():
                return self.revoked
            case Lost():
                return self.lost


class Consumer:
    """Reads records: of a group's share of topics, or of partitions that it is told to read.

    >>> async with aio.Consumer(group_id="shipping", auto_offset_reset="earliest") as consumer:
    ...     consumer.subscribe("fruit")
    ...     async for record in consumer:
    ...         print(record.offset, record.value)
    ...         break
    0 b'apple'
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        settings: ConsumerSettings | None = None,
        env: ClientEnv | None = None,
        **given: Any,
    ) -> None:
        addresses = take_bootstrap(bootstrap, given)
        self.settings = settings or build_settings(ConsumerSettings, given)
        env = env or real_env()
        self.connection = Connection(
            addresses,
            env.transport,
            client_id=self.settings.client_id,
            rng=env.rng,
        )
        self.listeners = Listeners()
        self.wake: Callable[[], None] | None = None
        """Called in the loop when a poll may go on; None: polls wait in the loop."""
        self._fetcher: Fetcher | None = None
        self._group: GroupMember | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        is_committed = self.settings.isolation == "read_committed"
        self._fetcher = Fetcher(
            self.connection,
            self.settings,
            READ_COMMITTED if is_committed else READ_UNCOMMITTED,
            self._on_arrival,
        )
        if self.settings.group_id:
            self._group = GroupMember(
                self.connection, self._fetcher, self.settings, self._on_arrival
            )
        await self.connection.refresh([], timeout_s=self._timeout_s)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, reason: str = "the consumer was closed") -> None:
        """Commit if that is automatic, leave the group, and let go of everything.

        >>> await consumer.close()
        """
        if self._group is not None:
            await self._group.close(reason)
        if self._fetcher is not None:
            await self._fetcher.close()
        await self.connection.transport.close()

    def _on_arrival(self) -> None:
        self._arrived.set()
        if self.wake is not None:
            self.wake()

    @property
    def fetcher(self) -> Fetcher:
        """Inside the SDK: what keeps the buffers full."""
        if self._fetcher is None:
            raise ClientClosed("the consumer is not open: use it in an `async with`")
        return self._fetcher

    @property
    def group(self) -> GroupMember:
        """Inside the SDK: this consumer as a member of its group."""
        if self._group is None:
            raise InvalidRequest("this consumer has no group_id")
        return self._group

    # -- what to read -----------------------------------------------------------------------------

    def subscribe(
        self,
        *topics: str,
        pattern: str = "",
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> None:
        """Read this group's share of these topics, or of all that match the pattern.

        Partitions come and go while polling: `on_revoked` is called before one goes, and may
        commit; `on_lost` when one is gone already.

        >>> consumer.subscribe("fruit")
        >>> records = await consumer.poll(20)
        >>> records[0].value
        b'apple'
        """
        if not topics and not pattern:
            raise InvalidRequest("subscribe to what? Name topics, or give a pattern")
        if self.fetcher.partitions() and not self.group.has_joined:
            raise InvalidRequest("partitions were assigned by hand: a consumer does one or other")
        self.listeners = Listeners(on_assigned, on_revoked, on_lost)
        self.group.subscribe(tuple(sorted(set(topics))), pattern)

    async def assign(
        self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int]
    ) -> None:
        """Read these partitions, and no others; a mapping says at which offsets to begin.

        Without an offset, the group's committed one counts, if there is a group, and else
        `auto_offset_reset` decides.

        >>> await consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> await consumer.assign({suiro.TopicPartition("fruit", 0): 1})
        >>> records = await consumer.poll(10)
        >>> records[0].value
        b'banana'
        """
        if self._group is not None and self._group.has_joined:
            raise InvalidRequest("the group assigns partitions: a consumer does one or the other")
        wanted = dict(partitions) if isinstance(partitions, dict) else dict.fromkeys(partitions)
        await self.connection.refresh({p.topic for p in wanted}, timeout_s=self._timeout_s)
        for partition in wanted:
            self._check_exists(partition)
        self.fetcher.remove(self.fetcher.partitions())
        self.fetcher.add(wanted)
        for partition, offset in wanted.items():
            if offset is not None:
                self.fetcher.seek(partition, offset)
        if self._group is not None:
            await self._group.resume([p for p, offset in wanted.items() if offset is None])
        await self.fetcher.locate(wanted)

    async def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Every partition of a topic.

        >>> await consumer.partitions_of("fruit")
        [TopicPartition(topic='fruit', partition=0)]
        """
        info = await self.connection.topic(topic, timeout_s=self._timeout_s)
        return [TopicPartition(topic, number) for number in range(len(info.partitions))]

    def assignment(self) -> list[TopicPartition]:
        """What is being read.

        >>> await consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.assignment()
        [TopicPartition(topic='fruit', partition=0)]
        """
        return sorted(self.fetcher.partitions())

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these from now on; no partition named means all of them.

        >>> await consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.pause()
        >>> records = await consumer.poll(0.1)
        >>> len(records)
        0
        """
        for partition in partitions or self.assignment():
            self.fetcher.pause(partition, paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on where they were paused; no partition named means all of them.

        >>> await consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.pause()
        >>> consumer.resume()
        >>> records = await consumer.poll(10)
        >>> len(records)
        2
        """
        for partition in partitions or self.assignment():
            self.fetcher.pause(partition, paused=False)

    def paused(self) -> list[TopicPartition]:
        """What is assigned and paused.

        >>> await consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> consumer.pause()
        >>> consumer.paused() == consumer.assignment()
        True
        """
        return [p for p in self.assignment() if self.fetcher.is_paused(p)]

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that a poll will return.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> await consumer.assign([where])
        >>> consumer.position(where)
        0
        """
        return self.fetcher.position(partition)[0]

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at this offset.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> await consumer.assign([where])
        >>> consumer.seek(where, 1)
        >>> records = await consumer.poll(10)
        >>> records[0].offset
        1
        """
        self.fetcher.seek(partition, offset)

    async def seek_to(self, partition: TopicPartition, bound: Bound | int) -> int:
        """Go on at the earliest or latest offset, or at a timestamp (ms); returns the offset.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> await consumer.assign([where])
        >>> await consumer.seek_to(where, suiro.Bound.LATEST)
        2
        """
        offset = await self.offset_of(partition, bound)
        self.seek(partition, offset)
        return offset

    async def seek_to_committed(self) -> None:
        """Go back to where the group is, after a transaction that was aborted for instance; where
        it has not been yet, `auto_offset_reset` decides.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> await consumer.assign([where])
        >>> records = await consumer.poll(10)
        >>> await consumer.seek_to_committed()
        >>> consumer.position(where)
        0
        """
        found = await self.committed(self.assignment())
        new = [partition for partition in self.assignment() if partition not in found]
        for partition, at in found.items():
            self.fetcher.seek(partition, at.offset, at.leader_epoch, is_reset=False)
        self.fetcher.remove(new)
        self.fetcher.add(new)
        await self.fetcher.locate(new)

    async def offset_of(self, partition: TopicPartition, bound: Bound | int) -> int:
        """The earliest or latest offset, or the first one at or after a timestamp (ms).

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> await consumer.offset_of(where, suiro.Bound.LATEST)
        2
        """
        return await self.fetcher.offset_of(partition, bound)

    # -- reading ----------------------------------------------------------------------------------

    async def poll(self, timeout_s: float = 1.0, *, max_records: int | None = None) -> Polled:
        """Records as soon as there are any, at most `max_records`; none after the timeout.

        >>> await consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> records = await consumer.poll(10)
        >>> [(record.offset, record.key, record.value) for record in records]
        [(0, b'a', b'apple'), (1, b'b', b'banana')]
        """
        wanted = max_records or self.settings.max_poll_records
        until_s = self._loop.time() + timeout_s
        await self._before_poll()
        while not (records := self.fetcher.take(wanted)) and await self._wait(until_s):
            await self._settle_events()
        return records

    async def poll_arrow(
        self, timeout_s: float = 1.0, *, max_records: int | None = None, headers: bool = False
    ) -> pa.Table:
        """The same as a table: topic, partition, offset, timestamp, key, value, and headers if
        asked for. Nothing is done per record, so it is the way to read millions of them.

        >>> await consumer.assign([suiro.TopicPartition("fruit", 0)])
        >>> table = await consumer.poll_arrow(10)
        >>> table["value"].to_pylist()
        [b'apple', b'banana']
        """
        from suiro.polled_table import polled_table

        until_s = self._loop.time() + timeout_s
        await self._before_poll()
        while not (taken := self.take_columns(max_records)) and await self._wait(until_s):
            await self._settle_events()
        return polled_table(taken, headers=headers)

    def take_columns(
        self, max_records: int | None = None
    ) -> list[tuple[TopicPartition, list[ColumnRun]]]:
        """Inside the SDK: what has arrived, undecoded."""
        return self.fetcher.take_columns(max_records or self.settings.max_arrow_records)

    async def __aiter__(self) -> AsyncIterator[Record]:
        while True:
            for record in await self.poll():
                yield record

    async def _before_poll(self) -> None:
        if self._group is None:
            return
        self._group.on_progress()
        if self._group.auto_commit_is_due():
            self._group.auto_commit(self._group.positions())
        await self._settle_events()

    async def _settle_events(self) -> None:
        """Deal with what the group says, in order."""
        if self._group is not None and self._group.has_overslept:
            self._group.wake_up()
        while self._group is not None and (event := self._group.next_event()) is not None:
            if isinstance(event, Begin):
                self._group.begin(event)
                await self._tell(event)
            else:
                await self._tell(event)
                await self.let_go(event)

    async def let_go(self, event: Revoke | Lost) -> None:
        """Inside the SDK: the application has been told."""
        if isinstance(event, Revoke):
            await self.group.give_up(event.partitions)
        else:
            self.group.lose(event.partitions)

    async def _tell(self, event: Begin | Revoke | Lost) -> None:
        listener = self.listeners.for_event(event)
        if listener is not None:
            said = listener(list(event.partitions))
            if isawaitable(said):
                await said

    async def _wait(self, until_s: float) -> bool:
        """Until there is enough to take, something to raise or to deal with; False if it is too
        late for more.
        """
        began_s = now_s = self._loop.time()
        while now_s < until_s:
            self._arrived.clear()
            ready_in_s = self.ready_in_s(now_s - began_s)
            if ready_in_s == 0:
                return True
            left_s = until_s - now_s if ready_in_s is None else min(ready_in_s, until_s - now_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._arrived.wait()
            now_s = self._loop.time()
        return False

    def ready_in_s(self, waited_s: float) -> float | None:
        """Inside the SDK: when a poll that has waited so long should go on; None: when something
        arrives.
        """
        if self._group is not None and self._group.has_events:
            return 0.0
        return self.fetcher.ready_in_s(waited_s)

    # -- the group's offsets ----------------------------------------------------------------------

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Store where the group is: behind what polls have returned, or at these offsets.

        Raises StaleMemberEpoch or UnknownMember if the partitions are no longer this member's.

        >>> consumer.subscribe("fruit")
        >>> records = await consumer.poll(20)
        >>> await consumer.commit()
        """
        await self.group.commit(self._to_commit(offsets))

    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: Callable[[BaseException | None], None] | None = None,
    ) -> asyncio.Task[None]:
        """The same in the background; the callback is told how it ended.

        >>> consumer.subscribe("fruit")
        >>> records = await consumer.poll(20)
        >>> task = consumer.commit_async(callback=lambda error: None)
        """
        return self.group.commit_in_background(self._to_commit(offsets), callback)

    def _to_commit(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self.group.positions()
        return {
            partition: at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at)
            for partition, at in offsets.items()
        }

    async def committed(
        self, partitions: Iterable[TopicPartition] = ()
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed, of these partitions or of all.

        >>> where = suiro.TopicPartition("fruit", 0)
        >>> consumer.subscribe("fruit")
        >>> records = await consumer.poll(20)
        >>> await consumer.commit()
        >>> found = await consumer.committed([where])
        >>> found[where].offset
        2
        """
        return await self.group.offsets.fetch(partitions, timeout_s=self._timeout_s)

    def _check_exists(self, partition: TopicPartition) -> None:
        count = len(self.connection.topics[partition.topic].partitions)
        if not 0 <= partition.partition < count:
            raise InvalidRequest(f"{partition.topic} has {count} partitions, no {partition}")

    @property
    def _timeout_s(self) -> float:
        return self.settings.request_timeout_ms / 1000
