"""The simulated network keeps gRPC's promises: calls, streams, deadlines, errors, servers."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest
from suiro.model.errors import InternalError, NotController, TimedOut, TopicExists, Unavailable
from suiro.model.ids import Address
from suiro.transport.api import Kind, Method

from tests.sim.loop import run
from tests.sim.net import NetworkSettings
from tests.sim.wire import Conditions, Link, Wire
from tests.unit.sim.stage import CALL, CHAT, FAST, HERE, LIST, TEXT, Stage, story

UNKNOWN = Method("/test/Unknown", Kind.UNARY, TEXT, TEXT)


# -- calls ----------------------------------------------------------------------------------------


@story()
async def test_a_call_takes_a_round_trip(stage: Stage) -> None:
    reply, seconds = await stage.took_s(stage.call("hello"))
    assert reply == "HELLO"
    assert seconds == pytest.approx(0.002)
    assert stage.talker.peers[0].address == "sim:client"


@story()
async def test_errors_travel_with_code_message_and_hints(stage: Stage) -> None:
    error = await stage.call("controller")
    assert isinstance(error, NotController)
    assert error.leader == 7
    assert not stage.network.defects


@story()
async def test_a_defect_is_answered_as_one_and_kept_for_the_test(stage: Stage) -> None:
    error = await stage.call("defect")
    assert isinstance(error, InternalError)
    assert isinstance(stage.network.defects[0], KeyError)


@story()
async def test_nobody_listens(stage: Stage) -> None:
    with pytest.raises(Unavailable, match="refused"):
        await stage.client.call(Address("nowhere", 1), CALL, "x", timeout_s=5)
    with pytest.raises(Unavailable, match="does not serve"):
        await stage.client.call(HERE, UNKNOWN, "x", timeout_s=5)


@story()
async def test_a_deadline_fails_the_call_and_cancels_its_handler(stage: Stage) -> None:
    error, seconds = await stage.took_s(stage.call("hang", timeout_s=2))
    assert isinstance(error, TimedOut)
    assert seconds == pytest.approx(2)
    await asyncio.sleep(0.01)
    assert stage.talker.cancelled == 1


@story()
async def test_a_caller_that_gives_up_cancels_the_handler(stage: Stage) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await stage.client.call(HERE, CALL, "hang", timeout_s=60)
    await asyncio.sleep(0.01)
    assert stage.talker.cancelled == 1


@story(settings=NetworkSettings(check_codecs=True))
async def test_messages_can_be_made_to_go_through_their_codecs(stage: Stage) -> None:
    assert await stage.call("hello") == "HELLO"
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("a")
    assert await stream.receive() == "A"
    await stream.finish()
    assert await stream.receive() is None
    wrong: Any = 5
    with pytest.raises(TypeError):  # a message of the wrong type is found where it is sent
        await stage.client.call(HERE, CALL, wrong, timeout_s=5)


@story(Conditions(loss=0.3))
async def test_a_lost_call_may_or_may_not_have_been_executed(stage: Stage) -> None:
    seen = Counter[tuple[str, bool]]()
    for number in range(200):
        result = await stage.call(str(number), timeout_s=1)
        executed = str(number) in stage.talker.executed
        seen[type(result).__name__, executed] += 1
    assert seen["str", False] == 0
    for fate in ("Unavailable", "TimedOut"):
        for executed in (False, True):
            assert seen[fate, executed] > 5, seen


@story(Conditions(duplicate=0.5, duplicate_s_max=120))
async def test_a_request_may_come_again_minutes_later(stage: Stage) -> None:
    for number in range(50):
        assert await stage.call(str(number)) == str(number)
    assert len(stage.talker.executed) == 50
    await asyncio.sleep(60)
    some = len(stage.talker.executed)
    await asyncio.sleep(61)
    assert 50 < some < len(stage.talker.executed)
    assert max(Counter(stage.talker.executed).values()) >= 2
    stage.network.set_conditions(FAST)  # a duplicate can be duplicated too: let it end
    await asyncio.sleep(600)


@story(Conditions(delay_s_min=0, delay_s_max=1))
async def test_calls_overtake_one_another(stage: Stage) -> None:
    await asyncio.gather(*(stage.call(str(number)) for number in range(30)))
    assert sorted(stage.talker.executed, key=int) != stage.talker.executed


# -- streams --------------------------------------------------------------------------------------


@story(Conditions(delay_s_min=0, delay_s_max=1))
async def test_a_stream_is_in_order_and_ends_cleanly(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    messages = [f"m{number}" for number in range(200)]

    async def send() -> None:
        for message in messages:
            await stream.send(message)
        await stream.finish()

    received: list[str] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(send())
        while (message := await stream.receive()) is not None:
            received.append(message.lower())
    assert received == messages


def test_a_late_message_holds_back_those_behind_it() -> None:
    class Scripted(Random):
        """The first message takes the longest delay, the others the shortest."""

        draws = iter([1.0, 0.0, 0.0])

        def random(self) -> float:
            return next(self.draws)

    async def main(_rng: Random) -> list[tuple[float, str]]:
        loop = asyncio.get_running_loop()
        began_s, arrived = loop.time(), list[tuple[float, str]]()
        link = Link(Scripted(), Conditions(delay_s_min=0, delay_s_max=1))
        wire = Wire(link, lambda item: arrived.append((loop.time() - began_s, item)), pytest.fail)
        for item in "abc":
            wire.put(item)
        await asyncio.sleep(2)
        return arrived

    assert run(main, seed=1) == [(1.0, "a"), (1.0, "b"), (1.0, "c")]


@story()
async def test_a_server_stream_has_one_request(stage: Stage) -> None:
    stream = await stage.client.open(HERE, LIST)
    await stream.send("abc")
    await stream.finish()
    assert [await stream.receive() for _ in range(4)] == ["a", "b", "c", None]


@story()
async def test_the_error_of_a_stream_comes_after_its_messages(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("a")
    await stream.send("fail")
    await asyncio.sleep(1)
    assert await stream.receive() == "A"
    for attempt in (stream.receive, stream.receive, lambda: stream.send("x")):
        with pytest.raises(TopicExists, match="because you asked"):
            await attempt()


@story()
async def test_a_stream_that_the_server_has_ended_takes_nothing(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("end")
    assert await stream.receive() is None
    with pytest.raises(Unavailable):
        await stream.send("more")


@story()
async def test_a_refused_stream_fails_when_it_is_used(stage: Stage) -> None:
    stream = await stage.client.open(Address("nowhere", 1), CHAT)
    with pytest.raises(Unavailable):
        await stream.receive()


@story(settings=NetworkSettings(stream_window=4))
async def test_a_slow_reader_holds_the_sender_back(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    sent: list[int] = []

    async def send() -> None:
        for number in range(100):
            await stream.send(str(number))
            sent.append(number)
        await stream.finish()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(send())
        await asyncio.sleep(10)
        # 4 that we do not read, 1 that the handler cannot send, 4 that it has not read.
        assert len(sent) == 9
        for number in range(100):
            assert await stream.receive() == str(number)
        assert await stream.receive() is None


@story()
async def test_dropping_a_stream_cancels_the_handler_and_breaks_our_end(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("sleep")
    await asyncio.sleep(1)
    stream.cancel()
    with pytest.raises(Unavailable):
        await stream.receive()
    await asyncio.sleep(1)
    assert stage.talker.cancelled == 1


@story()
async def test_a_server_can_drop_a_stream(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("drop")
    with pytest.raises(Unavailable, match="dropped"):
        await stream.receive()


@story(Conditions(loss=0.02))
async def test_a_lost_message_breaks_the_stream_and_what_came_is_a_prefix(stage: Stage) -> None:
    broken = 0
    for _ in range(20):
        stage.talker.received.clear()
        stream = await stage.client.open(HERE, CHAT)
        try:
            for number in range(50):
                await stream.send(str(number))
                await stream.receive()
        except Unavailable:
            broken += 1
        stream.cancel()
        await asyncio.sleep(1)
        prefix = [str(number) for number in range(len(stage.talker.received))]
        assert stage.talker.received == prefix
    assert 5 < broken <= 20


@story()
async def test_a_closed_transport_breaks_its_own_streams_only(stage: Stage) -> None:
    other = stage.network.transport("client")
    ours, theirs = await stage.client.open(HERE, CHAT), await other.open(HERE, CHAT)
    await stage.client.close()
    with pytest.raises(Unavailable):
        await ours.receive()
    with pytest.raises(Unavailable):
        await stage.client.call(HERE, CALL, "x", timeout_s=1)
    await theirs.send("a")
    assert await theirs.receive() == "A"
    theirs.cancel()


# -- servers --------------------------------------------------------------------------------------


@story()
async def test_a_server_that_stops_gives_open_calls_their_grace(stage: Stage) -> None:
    async with asyncio.TaskGroup() as tasks:
        slow = tasks.create_task(stage.call("slow"))
        hanging = tasks.create_task(stage.call("hang", timeout_s=60))
        await asyncio.sleep(0.5)
        stopping = tasks.create_task(stage.took_s(stage.server.stop(2)))
        await asyncio.sleep(0.1)
        assert isinstance(await stage.call("late"), Unavailable)
        assert await slow == "SLOW"
        assert isinstance(await hanging, Unavailable)
        assert (await stopping)[1] == pytest.approx(2)


@story()
async def test_an_address_belongs_to_one_server_and_port_zero_is_a_free_one(stage: Stage) -> None:
    with pytest.raises(Unavailable, match="in use"):
        stage.network.serve(HERE, [], "other")
    ports = set()
    for _ in range(3):
        server = type(stage.server)(stage.network, "other", [stage.talker])
        ports.add(await server.start(Address("other", 0)))
    assert len(ports) == 3
    reply = await stage.client.call(Address("other", min(ports)), CALL, "x", timeout_s=1)
    assert reply == "X"
