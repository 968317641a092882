"""The service on a real host with a log in memory: sessions, pushes, deadlines, offsets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from suiro._proto import groupcoord_pb2 as pb
from suiro._proto.common_pb2 import Hello, HelloReply, NodeAddress
from suiro._proto.common_pb2 import TopicPartition as WirePartition
from suiro.model.error_base import ErrorCode
from suiro.model.errors import CoordinatorLoading, InvalidRequest, UnknownGroup
from suiro.model.ids import TopicId
from suiro.transport.api import Peer

from cluster.groupcoord.program import GroupProgram
from cluster.groupcoord.service import GroupService
from cluster.groupcoord.sessions import GRACE_MS
from cluster.groupcoord.subscriptions import TopicFact
from cluster.host.clock import SystemClock
from cluster.host.machine_host import MachineHost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.groupcoord.machine import GroupMachine

PEER = Peer("here")
WAIT_S = 5.0


class MemoryLog:
    """Commits at once."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def append(self, records: Any) -> int:
        self.records += records
        return len(self.records)

    async def committed(self, position: int) -> int:
        return len(self.records)


class FakeShard:
    """As `Shard`: an index and a host."""

    def __init__(self, program: GroupProgram) -> None:
        self.index = 0
        self.log = MemoryLog()
        self.host: MachineHost[GroupMachine] = MachineHost(
            self.log,
            program.encode,
            lambda effect: program.perform(self, effect),  # type: ignore[arg-type]
        )


class FakeStream:
    """One session stream, both ends in this process."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[pb.MemberMessage | None] = asyncio.Queue()
        self.heard: asyncio.Queue[pb.MemberNotice] = asyncio.Queue()

    async def send(self, message: pb.MemberNotice) -> None:
        self.heard.put_nowait(message)

    async def receive(self) -> pb.MemberMessage | None:
        return await self.said.get()

    async def finish(self) -> None:
        return None

    def cancel(self) -> None:
        self.said.put_nowait(None)

    async def notice(self) -> pb.MemberNotice:
        async with asyncio.timeout(WAIT_S):
            return await self.heard.get()

    def say(self, member_id: str, epoch: int = 0, *owned: int, **fields: Any) -> None:
        self.said.put_nowait(
            pb.MemberMessage(
                hello=Hello(),
                group="g",
                member_id=member_id,
                member_epoch=epoch,
                owned=[WirePartition(topic="orders", partition=p) for p in owned],
                topics=["orders"],
                session_timeout_ms=2_000,
                subscription_version=1,
                **fields,
            )
        )


class OneShard:
    """All that is owned, and its terms."""

    def __init__(self, program: GroupProgram) -> None:
        self.shard: Any = FakeShard(program)
        self._program = program
        self._is_serving = asyncio.Event()

    async def run(self) -> None:
        """One term after another: a new one knows what was written, and nothing else."""
        while True:
            machine = self._program.new_machine(0)
            for key, value in self.shard.log.records:
                machine.apply(self._program.decode(key, value))
            async with asyncio.TaskGroup() as tasks:
                serving = tasks.create_task(self.shard.host.serve(machine, 0))
                await asyncio.sleep(0)
                tending = tasks.create_task(self._program.tend(self.shard))
                self._is_serving.set()
                await serving
                tending.cancel()

    async def begin_term(self) -> None:
        """End the present one, if any, and wait for the next."""
        self._is_serving.clear()
        self.shard.host.stop(CoordinatorLoading("an append has failed"))
        await self._is_serving.wait()

    def shard_for(self, _name: str) -> Any:
        return self.shard

    def owned(self) -> list[Any]:
        return [self.shard]


async def verified(*_: object) -> None:
    """The coordinator of every transaction says yes."""


class Coordinator(NamedTuple):
    service: GroupService
    tasks: asyncio.TaskGroup
    shards: OneShard


@asynccontextmanager
async def serving() -> AsyncIterator[Coordinator]:
    program = GroupProgram(SystemClock(), lambda: 1_000_000)
    program._topics = {"orders": TopicFact(TopicId(b"1" * 16), 2)}
    shards = OneShard(program)
    service = GroupService(
        shards,
        program,
        SystemClock(),
        lambda _hello: HelloReply(protocol=1),
        NodeAddress,
        verified,
    )
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(shards.run())
        await shards.begin_term()
        yield Coordinator(service, tasks, shards)
        running.cancel()


def partitions(notice: pb.MemberNotice) -> list[int]:
    return [p.partition for p in notice.assigned]


async def test_two_members_share_and_one_goes() -> None:
    async with serving() as (service, tasks, _shards):
        a, b = FakeStream(), FakeStream()
        tasks.create_task(service.handle_session(a, PEER))
        a.say("a", number=1)
        joined = await a.notice()
        assert joined.hello.protocol == 1
        assert (joined.answers, partitions(joined)) == (1, [])
        told = await a.notice()
        assert (told.answers, partitions(told)) == (0, [0, 1])
        tasks.create_task(service.handle_session(b, PEER))
        b.say("b")
        assert partitions(await b.notice()) == []
        less = await a.notice()
        assert partitions(less) == [0]
        a.say("a", less.member_epoch, 0, number=2)
        assert not (await a.notice()).has_assignment
        assert partitions(await b.notice()) == [1]
        described = await service.handle_describe_group(
            pb.DescribeGroupRequest(group="g", history=True), PEER
        )
        assert described.summary.state == "stable"
        assert [done.moved for done in described.history] == [2, 1]
        assert all(member.last_heard_ms > 10**12 for member in described.members)
        b.say("b", leaving=True)
        assert partitions(await a.notice()) == [0, 1]
        a.cancel()


async def test_a_member_whose_stream_broke_is_put_out() -> None:
    async with serving() as (service, tasks, _shards):
        a, b = FakeStream(), FakeStream()
        for stream, name in ((a, "a"), (b, "b")):
            tasks.create_task(service.handle_session(stream, PEER))
            stream.say(name)
            await stream.notice()
        assigned = await a.notice()
        a.cancel()
        while partitions(await b.notice()) != [0, 1]:
            pass
        again = FakeStream()
        tasks.create_task(service.handle_session(again, PEER))
        again.say("a", assigned.member_epoch, *partitions(assigned))
        assert (await again.notice()).error.code == int(ErrorCode.UNKNOWN_MEMBER)
        b.cancel()


async def test_the_end_of_a_stream_that_is_not_the_newest_says_nothing() -> None:
    """Seed 20984: after a new term an old stream was heard again before it broke, and the member,
    which had another one open, was put out half a second later.
    """
    async with serving() as (service, tasks, shards):
        old, new = FakeStream(), FakeStream()
        on_old = tasks.create_task(service.handle_session(old, PEER))
        old.say("a")
        await old.notice()
        assigned = await old.notice()
        tasks.create_task(service.handle_session(new, PEER))
        new.say("a", assigned.member_epoch, 0, 1)
        await new.notice()
        await shards.begin_term()
        old.say("a", assigned.member_epoch, 0, 1)
        await old.notice()
        old.cancel()
        await on_old
        now_ms = SystemClock().monotonic_ms()
        due_ms = await shards.shard.host.read(lambda machine: machine.next_deadline_ms(now_ms))
        assert due_ms - now_ms > GRACE_MS
        new.cancel()


async def test_a_message_of_another_member_on_the_stream_is_refused() -> None:
    async with serving() as (service, _tasks, _shards):
        stream = FakeStream()
        stream.say("a")
        stream.say("b")
        with pytest.raises(InvalidRequest):
            await service.handle_session(stream, PEER)


async def test_a_second_process_of_a_static_member_ends_the_session_of_the_first() -> None:
    async with serving() as (service, tasks, _shards):
        first, second = FakeStream(), FakeStream()
        tasks.create_task(service.handle_session(first, PEER))
        first.say("a", instance_id="one")
        await first.notice()
        await first.notice()
        tasks.create_task(service.handle_session(second, PEER))
        second.say("a2", instance_id="one")
        assert partitions(await second.notice()) == [0, 1]
        assert (await first.notice()).error.code == int(ErrorCode.FENCED_INSTANCE)
        second.cancel()


async def test_offsets_and_administration() -> None:
    async with serving() as (service, _tasks, _shards):
        where = WirePartition(topic="orders", partition=1)
        commit = pb.CommitOffsetsRequest(
            group="g", offsets=[pb.OffsetCommit(partition=where, offset=7, leader_epoch=3)]
        )
        reply = await service.handle_commit_offsets(commit, PEER)
        assert [result.error.code for result in reply.results] == [0]
        commit.transactional_id, commit.producer_id, commit.producer_epoch = "t", 5, 1
        commit.offsets[0].offset = 9
        await service.handle_commit_offsets(commit, PEER)
        fetch = pb.FetchOffsetsRequest(group="g", require_stable=True)
        (found,) = (await service.handle_fetch_offsets(fetch, PEER)).offsets
        assert found.error.code == int(ErrorCode.UNSTABLE_OFFSET)
        await service.handle_settle_offsets(
            pb.SettleOffsetsRequest(group="g", producer_id=5, producer_epoch=1, commit=True), PEER
        )
        (found,) = (await service.handle_fetch_offsets(fetch, PEER)).offsets
        assert (found.offset, found.leader_epoch) == (9, 3)
        await service.handle_delete_group(pb.DeleteGroupRequest(group="g"), PEER)
        with pytest.raises(UnknownGroup):
            await service.handle_describe_group(pb.DescribeGroupRequest(group="g"), PEER)
