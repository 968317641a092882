"""The GroupCoordinator service: the wire's messages to the machine's questions, and back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from suiro._proto import groupcoord_pb2 as pb
from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidRequest
from suiro.model.ids import ProducerEpoch, ProducerId, ProducerIdentity
from suiro.transport.api import Route
from suiro.transport.methods import GroupCoordinatorMethods
from suiro.transport.wire_errors import error_to_proto

from cluster.groupcoord import wire
from cluster.groupcoord.requests import GroupPhase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from suiro._proto.common_pb2 import Hello, HelloReply, NodeAddress
    from suiro.model.ids import TopicPartition
    from suiro.transport.api import Peer, Stream

    from cluster.groupcoord.machine import GroupMachine
    from cluster.groupcoord.program import GroupProgram, Session
    from cluster.groupcoord.requests import GroupView, Standing
    from cluster.host.clock import Clock
    from cluster.host.shards import Shard

    Verify = Callable[
        [str, ProducerIdentity, Sequence[TopicPartition], Sequence[str]], Awaitable[None]
    ]
    MemberStream = Stream[pb.MemberNotice, pb.MemberMessage]


class OwnedShards(Protocol):
    """The shards of this node, as `Shards` has them."""

    def shard_for(self, name: str) -> Shard[GroupMachine]:
        """Raises NotCoordinator for a group that is not ours."""

    def owned(self) -> list[Shard[GroupMachine]]: ...


class GroupService:
    """What members, consumers, transaction coordinators and administrators ask.

    `greet` answers a Hello, or refuses who sent it; `verify` asks a transaction's coordinator.
    """

    def __init__(
        self,
        shards: OwnedShards,
        program: GroupProgram,
        clock: Clock,
        greet: Callable[[Hello], HelloReply],
        address: Callable[[], NodeAddress],
        verify: Verify,
    ) -> None:
        self._shard_for = shards.shard_for
        self._owned = shards.owned
        self._program = program
        self._clock = clock
        self._greet = greet
        self._address = address
        self._verify = verify
        self._streams = 0

    def routes(self) -> list[Route]:
        return [
            Route(GroupCoordinatorMethods.SESSION, self.handle_session),
            Route(GroupCoordinatorMethods.COMMIT_OFFSETS, self.handle_commit_offsets),
            Route(GroupCoordinatorMethods.FETCH_OFFSETS, self.handle_fetch_offsets),
            Route(GroupCoordinatorMethods.SETTLE_OFFSETS, self.handle_settle_offsets),
            Route(GroupCoordinatorMethods.LIST_GROUPS, self.handle_list_groups),
            Route(GroupCoordinatorMethods.DESCRIBE_GROUP, self.handle_describe_group),
            Route(GroupCoordinatorMethods.DELETE_GROUP, self.handle_delete_group),
        ]

    # -- sessions ---------------------------------------------------------------------------------

    async def handle_session(self, stream: MemberStream, peer: Peer) -> None:
        """One member's stream, until it breaks, the member leaves, or it is told that it is out."""
        first = await stream.receive()
        if first is None or not first.HasField("hello"):
            raise InvalidRequest("a session begins with a message that has a hello")
        greeting = self._greet(first.hello)
        self._streams += 1
        line = _Line(stream, first, peer, self._streams)
        session = self._program.open_session(first.group, first.member_id)
        try:
            await self._converse(line, session, greeting)
        finally:
            if self._program.close_session(first.group, first.member_id, session):
                await self._on_broken(line)

    async def _converse(self, line: _Line, session: Session, greeting: HelloReply) -> None:
        """Answer what the member says, and tell it what changes, each on a task of its own; the
        session is over when one of the two is.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                both = (
                    tasks.create_task(self._listen(line, greeting), name="listen"),
                    tasks.create_task(self._push(line, session), name="push"),
                )
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in both:
                    task.cancel()
        except* SuiroError as errors:
            raise errors.exceptions[0] from None

    async def _listen(self, line: _Line, greeting: HelloReply) -> None:
        message: pb.MemberMessage | None = line.first
        while message is not None:
            if (message.group, message.member_id) != (line.first.group, line.first.member_id):
                raise InvalidRequest("a session belongs to one member of one group")
            try:
                notice = await self._answer(line, message)
            except SuiroError as error:
                await line.send(pb.MemberNotice(error=error_to_proto(error)))
                return
            if notice is None:
                return
            if message is line.first:
                notice.hello.CopyFrom(greeting)
            await line.send(notice)
            message = await line.stream.receive()

    async def _answer(self, line: _Line, message: pb.MemberMessage) -> pb.MemberNotice | None:
        """The answer to one message; None to a good-bye."""
        shard = self._shard_for(message.group)
        wall_ms = self._clock.now_ms()
        if message.leaving:
            name, member_id, reason = message.group, message.member_id, message.leave_reason
            await self._program.decide(
                shard, lambda machine: machine.decide_leave(name, member_id, reason, wall_ms)
            )
            return None
        said = wire.member_message(message, line.peer.host)

        def speak(machine: GroupMachine) -> Any:
            self._hear(machine, line)
            return machine.decide_message(said, wall_ms)

        standing: Standing = await self._program.decide(shard, speak)
        # Again: a member that has just joined was not known before, and a commit takes its time.
        await shard.host.read(lambda machine: self._hear(machine, line))
        return wire.notice(standing, message.member_epoch, message.number)

    def _hear(self, machine: GroupMachine, line: _Line) -> None:
        now_ms = self._clock.monotonic_ms()
        machine.on_heard(line.first.group, line.first.member_id, line.number, now_ms)

    async def _push(self, line: _Line, session: Session) -> None:
        """Tell the member of changes until it is out; what is lost it learns by its heartbeats."""
        group, member_id = line.first.group, line.first.member_id
        while True:
            await session.has_news.wait()
            session.has_news.clear()
            try:
                if session.error is not None:
                    raise session.error
                standing = await self._shard_for(group).host.read(
                    lambda machine: machine.standing(group, member_id)
                )
            except SuiroError as error:
                await line.send(pb.MemberNotice(error=error_to_proto(error)))
                return
            await line.send(wire.notice(standing, 0))

    async def _on_broken(self, line: _Line) -> None:
        """Its only stream is over: the member has a short grace to open another."""
        group, member_id, now_ms = (
            line.first.group,
            line.first.member_id,
            self._clock.monotonic_ms(),
        )
        try:
            shard = self._shard_for(group)
            await shard.host.read(
                lambda machine: machine.on_broken(group, member_id, line.number, now_ms)
            )
        except SuiroError:
            return  # whoever owns the shard now gives everyone a fresh session
        self._program.wake(shard)

    # -- offsets ----------------------------------------------------------------------------------

    async def handle_commit_offsets(
        self, request: pb.CommitOffsetsRequest, _peer: Peer
    ) -> pb.CommitOffsetsReply:
        wanted, wall_ms = wire.commit_request(request), self._clock.now_ms()
        if request.transactional_id:
            # A group that its coordinator does not know of would never be told how it ended (T6).
            await self._verify(request.transactional_id, _identity(request), (), [request.group])
        outcomes = await self._shard_for(request.group).host.decide(
            lambda machine: machine.decide_commit(wanted, wall_ms)
        )
        return pb.CommitOffsetsReply(
            results=[
                pb.OffsetCommitResult(
                    partition=where,
                    error=None if outcome.error is None else error_to_proto(outcome.error),
                )
                for where, outcome in zip(
                    wire.partitions(o.partition for o in outcomes), outcomes, strict=True
                )
            ]
        )

    async def handle_fetch_offsets(
        self, request: pb.FetchOffsetsRequest, _peer: Peer
    ) -> pb.FetchOffsetsReply:
        wanted = [wire.partition(p) for p in request.partitions]
        found = await self._shard_for(request.group).host.read(
            lambda machine: machine.fetch(
                request.group, wanted, require_stable=request.require_stable
            )
        )
        reply = pb.FetchOffsetsReply(offsets=[wire.committed_offset(one) for one in found])
        for offset, one in zip(reply.offsets, found, strict=True):
            if one.error is not None:
                offset.error.CopyFrom(error_to_proto(one.error))
        return reply

    async def handle_settle_offsets(
        self, request: pb.SettleOffsetsRequest, _peer: Peer
    ) -> pb.SettleOffsetsReply:
        end, wall_ms = wire.settle(request), self._clock.now_ms()
        await self._shard_for(request.group).host.decide(
            lambda machine: machine.decide_settle(end, wall_ms)
        )
        return pb.SettleOffsetsReply()

    # -- administration ---------------------------------------------------------------------------

    async def handle_list_groups(
        self, request: pb.ListGroupsRequest, _peer: Peer
    ) -> pb.ListGroupsReply:
        """The groups of the shards that this node owns; who wants all asks every coordinator."""
        try:
            phases = {GroupPhase(state) for state in request.states}
        except ValueError as error:
            raise InvalidRequest(str(error)) from None
        reply = pb.ListGroupsReply()
        for shard in self._owned():
            for name, phase, members in await shard.host.read(
                lambda machine: machine.list_groups()
            ):
                if not phases or phase in phases:
                    reply.groups.add(group=name, state=phase.value, members=members)
        return reply

    async def handle_describe_group(
        self, request: pb.DescribeGroupRequest, _peer: Peer
    ) -> pb.DescribeGroupReply:
        def look(machine: GroupMachine) -> tuple[GroupView, dict[str, float | None]]:
            view = machine.describe(request.group)
            return view, {m.member_id: machine.sessions.heard_ms(m) for m in view.members}

        view, heard = await self._shard_for(request.group).host.read(look)
        to_wall_ms = self._clock.now_ms() - self._clock.monotonic_ms()
        return pb.DescribeGroupReply(
            summary=pb.GroupSummary(
                group=view.group, state=view.phase.value, members=len(view.members)
            ),
            assignor=view.assignor,
            group_epoch=view.epoch,
            members=[
                wire.member_state(
                    member,
                    view.targets[member.member_id],
                    int((heard[member.member_id] or 0) + to_wall_ms),
                )
                for member in view.members
            ],
            history=[wire.rebalance(done) for done in view.history] if request.history else (),
            coordinator=self._address(),
        )

    async def handle_delete_group(
        self, request: pb.DeleteGroupRequest, _peer: Peer
    ) -> pb.DeleteGroupReply:
        doomed = [wire.partition(p) for p in request.offsets]
        await self._shard_for(request.group).host.decide(
            lambda machine: machine.decide_delete(request.group, doomed)
        )
        return pb.DeleteGroupReply()


def _identity(request: pb.CommitOffsetsRequest) -> ProducerIdentity:
    return ProducerIdentity(ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch))


class _Line:
    """One session stream; two tasks send on it, one at a time."""

    def __init__(
        self, stream: MemberStream, first: pb.MemberMessage, peer: Peer, number: int
    ) -> None:
        self.stream = stream
        self.first = first
        self.peer = peer
        self.number = number
        self._sending = asyncio.Lock()

    async def send(self, notice: pb.MemberNotice) -> None:
        async with self._sending:
            await self.stream.send(notice)
