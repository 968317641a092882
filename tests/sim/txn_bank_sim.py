"""A bank on the SDK's transactions, real nodes and virtual time, while everything is killed, or
messages are lost, doubled and late.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from suiro.verify.bank import Book, Ledger
from suiro.verify.bank_clients import ACCOUNTS, BankWriter, read_bank, until_stable

from tests.sim.client_scene import client_scene
from tests.sim.loop import run
from tests.sim.wire import Conditions

if TYPE_CHECKING:
    from random import Random

    from suiro.aio import Producer

    from tests.sim.client_scene import ClientScene

PARTITIONS = 4
WRITERS = 3
READERS = 2
KILLS = 4
CUTS = 6
PAUSE_S = 0.5
TIMEOUT_MS = 10_000
STABLE_S_MAX = TIMEOUT_MS / 1000 + 10

BAD = Conditions(loss=0.000_5, duplicate=0.05, duplicate_s_max=120.0, delay_s_max=0.02)


@dataclass
class Story:
    """What became of a bank, to be compared with that of the same seed."""

    book: Book = field(default_factory=Book)
    ledgers: list[Ledger] = field(default_factory=list)
    stable_s: float = 0.0
    digest: str = ""


async def killing(scene: ClientScene) -> None:
    for _ in range(KILLS):
        await asyncio.sleep(scene.rng.uniform(0, 2))
        await scene.fail_over(scene.rng.choice(scene.victims))


async def cutting(scene: ClientScene) -> None:
    """Every message may be lost, or come again minutes later; nodes are cut off one after another,
    also from one side only.
    """
    network, rng = scene.cluster.network, scene.rng
    network.set_conditions(BAD)
    names = [node.name for node in scene.victims]
    for _ in range(CUTS):
        await asyncio.sleep(rng.uniform(1, 5))
        one, other = rng.sample(names, 2)
        refuse = rng.random() < 0.5
        network.cut(one, other, refuse=refuse)
        if rng.random() < 0.5:
            network.cut(other, one, refuse=refuse)
        await asyncio.sleep(rng.uniform(0.5, 4))
        network.heal_all()
    network.set_conditions(Conditions())


async def bank(scene: ClientScene, faults: str) -> Story:
    story = Story(ledgers=[Ledger() for _ in range(READERS)])
    await scene.create_topic(ACCOUNTS, PARTITIONS)
    enough, stable = asyncio.Event(), asyncio.Event()

    def writer(number: int) -> BankWriter:
        def make_producer() -> Producer:
            return scene.producer(
                f"w{number}", transactional_id=f"w{number}", transaction_timeout_ms=TIMEOUT_MS
            )

        made = BankWriter(number, make_producer, story.book, PARTITIONS, scene.rng)
        made.pause_s = PAUSE_S
        return made

    async def reader(number: int) -> None:
        async with scene.consumer(f"r{number}") as consumer:
            await read_bank(consumer, story.ledgers[number], PARTITIONS, stable)

    async with asyncio.TaskGroup() as readers:
        for number in range(READERS):
            readers.create_task(reader(number))
        async with asyncio.TaskGroup() as writers:
            for number in range(WRITERS):
                writers.create_task(writer(number).run(enough))
            await (killing(scene) if faults == "kills" else cutting(scene))
            await asyncio.sleep(2)
            enough.set()
        async with (
            scene.consumer("committed") as committed,
            scene.consumer("uncommitted", isolation="read_uncommitted") as uncommitted,
        ):
            story.stable_s = await until_stable(committed, uncommitted, PARTITIONS)
        if faults == "network":
            await asyncio.sleep(BAD.duplicate_s_max)  # whatever is still to come again
        stable.set()
    story.digest = scene.cluster.trace.digest()
    return story


async def banking(rng: Random, faults: str) -> Story:
    async with client_scene(rng) as scene:
        return await bank(scene, faults)


@cache
def story(seed: int, faults: str) -> Story:
    return run(lambda rng: banking(rng, faults), seed=seed)


def main() -> None:
    """`python -m tests.sim.txn_bank_sim 20`: so many seeds of both kinds of faults."""
    wrong = 0
    for seed in range(int(sys.argv[1])):
        for faults in ("kills", "network"):
            told = story(seed, faults)
            found = told.book.check(told.ledgers)
            wrong += bool(found) or told.stable_s > STABLE_S_MAX
            print(
                f"seed {seed:4} {faults:8} committed {len(told.book.committed):4} "
                f"aborted {len(told.book.aborted):3} unknown {len(told.book.unknown):2} "
                f"stable after {told.stable_s:5.2f} s, wrong: {found[:3] or 'nothing'}",
                flush=True,
            )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    logging.disable(logging.ERROR)  # killed nodes complain
    main()
