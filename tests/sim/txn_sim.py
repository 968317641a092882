"""The micro-simulation of transactions: a phase full of faults, then calm and liveness.

    python -m tests.sim.txn_sim --seeds 20000 --jobs 2      many seeds
    python -m tests.sim.txn_sim --seed 7 --verbose          one, with its story

Producers and Spark queries, a coordinator, partitions and a group: the machine, the client's core,
the log's producer states and the reader's filter are the real ones. After the faults everyone must
succeed again, and every last stable offset reach the end of its log.
"""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING

from suiro.transaction import State

from cluster.txncoord.txn import TxnState
from tests.sim.txn_checker import Violation
from tests.sim.txn_plan import draw_plan
from tests.sim.txn_world import LATE_MS, World

if TYPE_CHECKING:
    from tests.sim.txn_places import Partition
from tests.sim.seeds import Outcome, main

SETTLE_MS = 30_000


def run_seed(seed: int, *, verbose: bool = False) -> Outcome:
    """One run; a violation is an outcome, not an exception."""
    random = Random(seed)
    world = World(seed, draw_plan(random), random, verbose=verbose)
    failure = None
    try:
        world.after(world.plan.fault_gap_ms, _strike, world)
        world.run_until(world.plan.duration_ms)
        _settle(world)
    except AssertionError as violation:
        failure = str(violation) if isinstance(violation, Violation) else f"{violation!r}"
        world.tell(f"!! {failure}")
    counts = world.counts + world.checker.counts
    return Outcome(seed, world.trace, world.events, counts, failure, world.story or [])


# -- faults ---------------------------------------------------------------------------------------


def _strike(world: World) -> None:
    """One fault of those that the seed drew, and the next one later."""
    if world.is_calm:
        return
    if world.plan.faults:
        fault = world.random.choice(world.plan.faults)
        world.tell(f"-- {fault}")
        world.counts[fault] += 1
        _FAULTS[fault](world)
    world.after(world.random.randint(1, 2 * world.plan.fault_gap_ms), _strike, world)


def _kill_producer(world: World) -> None:
    """It dies, and another one takes its id; or only the driver of a query does."""
    if world.queries and world.random.random() < 0.4:
        world.random.choice(world.queries).begin_attempt()
        return
    living = [producer for producer in world.producers if producer.alive]
    if living:
        victim = world.random.choice(living)
        victim.alive = False
        world.start_producer(victim.core.transactional_id)


def _double_producer(world: World) -> None:
    """Another one takes the id of one that lives on."""
    if len(world.producers) < 30:
        world.start_producer(world.random.choice(world.producers).core.transactional_id)


def _pause_producer(world: World) -> None:
    world.random.choice(world.producers).pause(world.random.randint(50, 2500))


def _abort(world: World) -> None:
    names = [txn.transactional_id for txn in world.coordinator.machine.transactions()]
    if names:
        name, now = world.random.choice(names), world.now
        world.coordinator.decide(lambda machine: machine.decide_abort(name, "operator", now))


def _forget(world: World) -> None:
    for partition in _partitions(world):
        partition.forget()


_FAULTS = {
    "coordinator fails": lambda world: world.coordinator.take_over(),
    "partition fails": lambda world: world.random.choice(
        sorted(world.partitions.values(), key=lambda p: p.name)
    ).fail(),
    "producer dies": _kill_producer,
    "producer is doubled": _double_producer,
    "producer pauses": _pause_producer,
    "operator aborts": _abort,
    "broker forgets": _forget,
}


# -- calm -----------------------------------------------------------------------------------------


def _settle(world: World) -> None:
    """A newest instance of every id succeeds, every query too; then all comes to rest."""
    world.tell("-- calm")
    world.is_calm = True
    for producer in world.producers:
        producer.alive = False
    names = sorted({producer.core.transactional_id for producer in world.producers})
    # Where nobody comes back, only the timeout ends what was left open.
    names = [name for name in names if world.random.random() < 0.7]
    before = {query.name: query.succeeded for query in world.queries}
    for query in world.queries:
        query.begin_attempt()
    if not world.run_until(world.now + SETTLE_MS, lambda: _all_succeed(world, names, before)):
        raise Violation("L1: somebody does not succeed any more")
    for producer in world.producers:
        producer.stopping = True
    for query in world.queries:
        query.stopping = True
    if not world.run_until(world.now + SETTLE_MS, lambda: _is_at_rest(world)):
        txns = [f"{t.transactional_id} {t.state}" for t in world.coordinator.machine.transactions()]
        ends = [f"{p.name} {p.last_stable_offset} of {len(p.batches)}" for p in _partitions(world)]
        raise Violation(f"T6: not at rest: {txns}, {ends}, pending {world.group.pending}")
    _forget(world)
    world.run_until(world.now + LATE_MS)  # the last late words
    if not (
        _is_at_rest(world) or world.run_until(world.now + SETTLE_MS, lambda: _is_at_rest(world))
    ):
        raise Violation("T6: something late has opened a transaction that nobody ends")
    world.checker.check_end(_partitions(world), world.group)


def _all_succeed(world: World, names: list[str], before: dict[str, int]) -> bool:
    """Whether everyone has; an instance that a late word has fenced is started again."""
    for name in names:
        mine = [p for p in world.producers if p.core.transactional_id == name]
        if not mine[-1].alive or mine[-1].core.state is State.FENCED:
            world.start_producer(name)
            return False
        if not mine[-1].succeeded:
            return False
    return all(query.succeeded > before[query.name] for query in world.queries)


def _is_at_rest(world: World) -> bool:
    moving = {TxnState.ONGOING, TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT}
    return (
        all(producer.is_idle() for producer in world.producers)
        and not world.coordinator.machine.transactions(moving)
        and not world.group.pending
        and all(p.last_stable_offset == len(p.batches) for p in _partitions(world))
    )


def _partitions(world: World) -> list[Partition]:
    return [world.partitions[name] for name in sorted(world.partitions)]


if __name__ == "__main__":
    sys.exit(main(__doc__, run_seed))
