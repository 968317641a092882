"""The simulated network breaks what gRPC does not promise, the same way for the same seed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from suiro.model.error_base import SuiroError
from suiro.model.errors import TimedOut, Unavailable

from tests.sim.loop import run
from tests.sim.net import NetworkSettings
from tests.sim.wire import Conditions
from tests.unit.sim.stage import CALL, CHAT, HERE, Stage, story

if TYPE_CHECKING:
    from random import Random

ROOT = Path(__file__).parents[3]

# -- partitions and crashes -----------------------------------------------------------------------


@story()
async def test_a_short_cut_only_delays(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("a")
    stage.network.partition(["client"], ["server"])
    stage.loop.call_later(3, stage.network.heal_all)
    await stream.send("b")
    result, seconds = await stage.took_s(stream.receive())
    assert (result, await stream.receive()) == ("A", "B")
    assert seconds == pytest.approx(3, abs=0.1)
    stream.cancel()


@story()
async def test_a_long_cut_breaks_both_ends_and_lets_no_one_connect(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("sleep")
    await asyncio.sleep(1)
    stage.network.cut("client", "server")
    error, seconds = await stage.took_s(stream.receive())
    assert isinstance(error, Unavailable)
    assert seconds == pytest.approx(10, abs=0.1)
    await asyncio.sleep(1)
    assert stage.talker.cancelled == 1
    error, seconds = await stage.took_s(stage.call("x", timeout_s=100))
    assert isinstance(error, Unavailable)
    assert seconds == pytest.approx(20)
    error, seconds = await stage.took_s(stage.call("x", timeout_s=5))
    assert isinstance(error, TimedOut)
    assert seconds == pytest.approx(5)
    assert "x" not in stage.talker.executed
    stage.network.cut("client", "server", refuse=True)
    error, seconds = await stage.took_s(stage.call("x", timeout_s=5))
    assert isinstance(error, Unavailable)
    assert seconds == pytest.approx(0.001)
    stage.network.heal("client", "server")
    assert await stage.call("x") == "X"


@story()
async def test_a_one_way_cut_executes_what_it_does_not_answer(stage: Stage) -> None:
    stage.network.cut("server", "client")
    error = await stage.call("x", timeout_s=2)
    assert isinstance(error, TimedOut)
    assert stage.talker.executed == ["x"]


@story()
async def test_a_partial_partition_leaves_the_others_alone(stage: Stage) -> None:
    stage.network.partition(["client"], ["server"])
    third = stage.network.transport("third")
    assert await third.call(HERE, CALL, "x", timeout_s=1) == "X"
    assert isinstance(await stage.call("x", timeout_s=1), TimedOut)


@story()
async def test_a_cut_that_heals_and_comes_again_starts_its_keepalive_again(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("a")
    await stream.receive()
    for _ in range(3):
        stage.network.cut("client", "server")
        await asyncio.sleep(8)
        stage.network.heal("client", "server")
        await asyncio.sleep(1)
    await stream.send("b")
    assert await stream.receive() == "B"
    stream.cancel()


@pytest.mark.parametrize(("silent", "after_s"), [(False, 0.001), (True, 10.001)])
def test_a_crash_breaks_the_streams_of_a_node(silent: bool, after_s: float) -> None:
    @story()
    async def crash(stage: Stage) -> None:
        stream = await stage.client.open(HERE, CHAT)
        await stream.send("sleep")
        await asyncio.sleep(1)
        stage.network.crash("server", silent=silent)
        error, seconds = await stage.took_s(stream.receive())
        assert isinstance(error, Unavailable)
        assert seconds == pytest.approx(after_s)
        assert stage.talker.cancelled == 1
        assert isinstance(await stage.call("x"), Unavailable)
        stage.network.serve(HERE, [stage.talker], "server")
        assert await stage.call("x") == "X"

    crash()


@story()
async def test_a_crashed_client_is_heard_of_no_more(stage: Stage) -> None:
    stream = await stage.client.open(HERE, CHAT)
    await stream.send("sleep")
    await asyncio.sleep(1)
    stage.network.crash("client")
    with pytest.raises(Unavailable):
        await stream.send("from the grave")
    assert isinstance(await stage.call("x"), Unavailable)
    await asyncio.sleep(1)
    assert stage.talker.cancelled == 1
    assert stage.talker.executed == []


# -- determinism ----------------------------------------------------------------------------------


NODES = ["server", *(f"client {number}" for number in range(6))]


async def storm(rng: Random) -> str:
    """Many clients under every fault at once; the digest of what happened."""
    stage = Stage(rng, Conditions(loss=0.02, duplicate=0.1), NetworkSettings(keepalive_s=2))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(do_harm(stage, rng))
        for node in NODES[1:]:
            tasks.create_task(use(stage, node))
    await asyncio.sleep(1000)
    await stage.network.close()
    await asyncio.sleep(60)
    assert not stage.network.rpcs, "an rpc was never retired"
    assert not stage.network.defects
    return f"{stage.trace.digest()} {len(stage.trace)} {len(stage.talker.executed)}"


async def use(stage: Stage, node: str) -> None:
    transport = stage.network.transport(node)
    for number in range(40):
        try:
            await transport.call(HERE, CALL, f"{node} {number}", timeout_s=1)
            stream = await transport.open(HERE, CHAT)
            for _ in range(5):
                await stream.send("x")
                await stream.receive()
            stream.cancel()
        except SuiroError as error:
            stage.trace.add("failed", node, str(error))
            if transport.is_closed:
                transport = stage.network.transport(node)


async def do_harm(stage: Stage, rng: Random) -> None:
    network = stage.network
    for _ in range(40):
        await asyncio.sleep(rng.random() * 5)
        one, other = rng.sample(NODES, 2)
        match rng.randrange(4):
            case 0:
                network.cut(one, other, refuse=rng.random() < 0.5)
            case 1:
                network.heal_all()
            case 2:
                network.crash(one, silent=rng.random() < 0.5)
                if one == "server":
                    network.serve(HERE, [stage.talker], "server")
            case _:
                network.partition([one], [other])
    network.heal_all()


def test_a_storm_is_the_same_in_every_process() -> None:
    code = (
        "from tests.sim.loop import run\n"
        "from tests.unit.sim.test_net_faults import storm\n"
        "for seed in range(5): print(run(storm, seed=seed))\n"
    )
    outputs = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(set(outputs.pop().splitlines())) == 5


def test_storms_leave_nothing_behind() -> None:
    for seed in range(100, 110):
        events = int(run(storm, seed=seed).split()[1])
        assert events > 500
