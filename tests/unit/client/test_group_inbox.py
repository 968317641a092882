"""What a poll hears of the group: in order, once it is known where to begin, or not at all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from suiro.aio.group_inbox import Begin, GroupInbox
from suiro.aio.group_offsets import OffsetAndMetadata
from suiro.aio.tasks import TaskScope
from suiro.membership import Assign, Fail, Lost, Revoke
from suiro.model.error_base import ErrorCode
from suiro.model.errors import FencedInstance, NotCoordinator, Unauthorized
from suiro.model.ids import TopicPartition

from tests.sim.loop import run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from suiro.membership import Partitions
    from suiro.model.error_base import SuiroError

A, B, C = (TopicPartition("t", number) for number in range(3))
AT = OffsetAndMetadata(7)


class Desk:
    """An inbox, and somebody who looks offsets up when told to."""

    def __init__(self, rng: Random) -> None:
        self.given_up: list[Partitions] = []
        self.errors: list[SuiroError] = []
        self.may_answer = asyncio.Event()
        self.scope = TaskScope("test")
        self.inbox = GroupInbox(self.find, self.given_up.append, lambda: None, self.scope, rng)

    async def find(self, partitions: Partitions) -> dict[TopicPartition, OffsetAndMetadata]:
        await self.may_answer.wait()
        if self.errors:
            raise self.errors.pop(0)
        return dict.fromkeys(partitions, AT)

    async def answered(self) -> None:
        self.may_answer.set()
        await asyncio.sleep(5)


def at_a_desk(story: Callable[[Desk], Awaitable[None]]) -> None:
    async def main(rng: Random) -> None:
        desk = Desk(rng)
        try:
            await story(desk)
        finally:
            await desk.scope.close()

    run(main, seed=1)


def test_a_share_begins_when_it_is_known_where() -> None:
    async def story(desk: Desk) -> None:
        desk.inbox.add(Assign((A, B)))
        await asyncio.sleep(1)
        assert desk.inbox.next() is None
        await desk.answered()
        assert desk.inbox.next() == Begin((A, B), {A: AT, B: AT})
        assert desk.inbox.next() is None

    at_a_desk(story)


def test_what_is_taken_away_before_it_began_is_given_up_unheard() -> None:
    async def story(desk: Desk) -> None:
        desk.inbox.add(Assign((A,)))
        await desk.answered()
        desk.may_answer.clear()
        desk.inbox.add(Assign((B, C)))
        desk.inbox.add(Revoke((A, B)))
        assert desk.given_up == [(B,)]
        await desk.answered()
        heard = [desk.inbox.next() for _ in range(4)]
        assert heard == [Begin((A,), {A: AT}), Revoke((A,)), Begin((C,), {C: AT}), None]

    at_a_desk(story)


def test_what_comes_back_while_it_was_looked_up_begins_once() -> None:
    async def story(desk: Desk) -> None:
        desk.inbox.add(Assign((A,)))
        desk.inbox.add(Revoke((A,)))
        desk.inbox.add(Assign((A,)))
        await desk.answered()
        assert [desk.inbox.next(), desk.inbox.next()] == [Begin((A,), {A: AT}), None]

    at_a_desk(story)


def test_what_is_lost_is_told_at_once() -> None:
    async def story(desk: Desk) -> None:
        desk.inbox.add(Assign((A,)))
        await desk.answered()
        desk.may_answer.clear()
        desk.inbox.add(Assign((B,)))
        desk.inbox.add(Lost((A, B)))
        heard = [desk.inbox.next() for _ in range(3)]
        assert heard == [Begin((A,), {A: AT}), Lost((A,)), None]
        await desk.answered()
        assert desk.inbox.next() is None

    at_a_desk(story)


def test_a_failure_is_tried_again_or_told() -> None:
    async def story(desk: Desk) -> None:
        desk.errors = [NotCoordinator("moved"), NotCoordinator("moved")]
        desk.inbox.add(Assign((A,)))
        await desk.answered()
        assert desk.inbox.next() == Begin((A,), {A: AT})
        desk.errors = [Unauthorized("not yours")]
        desk.inbox.add(Assign((B,)))
        await desk.answered()
        with pytest.raises(Unauthorized):
            desk.inbox.next()
        desk.inbox.add(Fail(ErrorCode.FENCED_INSTANCE, "another one"))
        with pytest.raises(FencedInstance):
            desk.inbox.next()

    at_a_desk(story)
